"""A fast run shows the kept tables of a full run, and says so."""

import re
from dataclasses import replace

import pyarrow as pa
import pytest

from experiments import tables
from experiments.bandit import EXPERIMENTS, __main__, kept, runs
from experiments.bandit.problem import Problem
from experiments.experiment import FAST, FULL
from experiments.runner import run
from experiments.scenarios import SEED

PLAYED = [experiment for experiment in EXPERIMENTS if experiment.name != "bandit-privacy"]


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    directory = tmp_path_factory.mktemp("run")
    run(PLAYED, FAST, directory)
    return directory


def test_a_fast_run_shows_the_kept_tables(output):
    for experiment in PLAYED:
        for task in experiment.plan(FAST):
            shown = tables.read(output / "tables" / f"{experiment.name}-{task.table}.csv")
            # As text: NaN differs from itself.
            assert str(shown.to_pylist()) == str(tables.read(kept.HERE / f"{task.table}.csv").to_pylist())


def test_a_fast_run_says_whose_numbers_it_shows(output):
    facts = {row["name"]: row["value"] for row in tables.read(kept.HERE / "origin.csv").to_pylist()}
    page = (output / "report.html").read_text(encoding="utf-8")
    assert facts["effort"].startswith(f"full: {runs.WORLDS} runs of {runs.PROBLEM.horizon:,} steps")
    assert str(facts["seed"]) == str(SEED)
    assert re.fullmatch(r"[0-9a-f]{40}", facts["commit"]), "made from code that was not committed"
    assert page.count(facts["commit"]) >= len(PLAYED)
    for experiment in PLAYED:
        figure = (output / "figures" / f"{experiment.name}.svg").read_text(encoding="utf-8")
        assert f"Not computed by this fast run: from a kept full run at commit {facts['commit'][:10]}" in figure


def test_the_verdicts_of_a_fast_run_are_those_of_the_kept_full_run(output):
    lines = {row["id"]: row["verdict"] for row in tables.read(output / "tables" / "claims.csv").to_pylist()}
    assert sorted(lines) == ["B1", "B2", "B3", "B4", "B5"]
    assert "needs the full run" not in lines.values()


def test_error_bars_rest_on_many_runs_of_each_policy_under_each_setting(output):
    table = tables.read(output / "tables" / "bandit-settings-settings.csv")
    counts = table.group_by(["policy", "setting"]).aggregate([("world", "count_distinct")])
    assert counts.num_rows == len(runs.VARIED) * len(runs.SETTINGS)
    assert set(counts["world_count_distinct"].to_pylist()) == {runs.WORLDS}
    page = (output / "report.html").read_text(encoding="utf-8")
    assert "Marks are means over 20 runs" in page.replace("\n", " ")


def test_a_full_run_plays_and_has_nothing_to_say_about_kept_tables():
    for experiment in PLAYED:
        *played, origin = experiment.plan(FULL)
        assert not any("kept" in task.label for task in played)
        assert origin.compute().to_pylist() == [{"name": "source", "value": "this run"}]


def test_kept_tables_have_the_columns_of_played_ones():
    short = Problem(horizon=250, shift=150)
    played = {
        "worlds": runs.play_all(short, 2),
        "optimism": runs.play_optimists(short, 2),
        "curves": runs.play_curves(runs.PRINTED, runs.ALL, short, 2),
        "others": runs.play_curves((*runs.REFERENCES, *runs.OTHERS), runs.EARNINGS, short, 2),
        "rewards": runs.thin_rewards(short, 2),
        "stuck": runs.play_stuck(short, 2),
        "settings": runs.play_settings(short, 2),
    }
    tasks = {task.table for experiment in PLAYED for task in experiment.plan(FULL)}
    assert tasks == {*played, "origin"}
    for name, table in played.items():
        found = tables.read(kept.HERE / f"{name}.csv")
        assert found.column_names == table.column_names
        for column in {"policy", "setting"} & set(table.column_names):
            assert tables.unique(found, column) == tables.unique(table, column)


def test_keeping_replaces_tables_and_names_their_origin(tmp_path):
    tables.write(pa.table({"world": [1]}), tmp_path / "bandit-worlds.csv")
    kept.keep({"worlds": tmp_path / "bandit-worlds.csv"}, {"commit": "abc"}, tmp_path / "results")
    plan = kept.tasks(FAST, [replace(runs.plan(FULL)[0], table="worlds")], tmp_path / "results")
    assert {task.table: task.compute().to_pylist() for task in plan} == {
        "worlds": [{"world": 1}],
        "origin": [{"name": "source", "value": "a kept full run"}, {"name": "commit", "value": "abc"}],
    }
    # Other kept tables are other inputs: nothing old is reused.
    tables.write(pa.table({"world": [2]}), tmp_path / "results" / "worlds.csv")
    again = kept.tasks(FAST, [replace(runs.plan(FULL)[0], table="worlds")], tmp_path / "results")
    assert [old.inputs != new.inputs for old, new in zip(plan, again, strict=True)] == [True, False]


def test_the_command_explains_itself(capsys):
    with pytest.raises(SystemExit) as ended:
        __main__.main(["--help"])
    assert ended.value.code == 0
    assert "experiments/bandit/results" in capsys.readouterr().out.replace("\n", " ")
