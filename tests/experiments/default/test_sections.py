"""The sections on the default, from their tables alone."""

from pathlib import Path

import numpy as np
import pytest

import dpselect as dps
from experiments import tables
from experiments.default.distance import OPTIMUM
from experiments.default.everywhere import EVERYWHERE
from experiments.default.keep import KEEP, cells, heavy, keep_of
from experiments.default.scenarios import CORRELATIONS
from experiments.default.styles import BESIDE, DEFAULT, style
from experiments.drawing import look
from experiments.experiment import FAST
from experiments.mechanisms import STYLES
from experiments.recommender import results
from experiments.scenarios import SCENARIOS


def computed(experiment, *names):
    """Return an experiment's tables of a fast run, or some of them."""
    parts = {}
    for task in experiment.plan(FAST):
        if not names or task.table in names:
            parts.setdefault(task.table, []).append(task.compute())
    return {name: tables.pa.concat_tables(found) for name, found in parts.items()}


@pytest.fixture(scope="module")
def everywhere():
    return computed(EVERYWHERE, "scenarios", "users")


def drawn(experiment, data):
    with look():
        return experiment.draw(data)


def test_no_mechanism_looks_like_the_default():
    others = [look for name, look in STYLES.items() if name != DEFAULT]
    assert style(DEFAULT).color not in {other.color for other in others}
    assert style(DEFAULT).marker not in {other.marker for other in others}


def test_the_default_is_below_noisy_max_in_every_scenario_at_every_budget(everywhere):
    rows = everywhere["scenarios"].to_pylist()
    assert len({row["scenario"] for row in rows}) == len(SCENARIOS)
    assert all(row["ratio"] == pytest.approx(row["default"] / row["rnm"]) for row in rows)
    assert max(row["ratio"] for row in rows) < 1


def test_ratios_of_the_first_scenario_are_those_of_an_independent_program(everywhere):
    found = tables.where(everywhere["scenarios"], scenario=SCENARIOS[1]().title)["ratio"].to_pylist()
    assert found == pytest.approx([0.997, 0.980, 0.952, 0.871, 0.666, 0.351, 0.098, 0.008], abs=6e-4)


def test_users_of_all_kept_runs_are_shown_with_shares_and_ratios(everywhere):
    users = everywhere["users"].to_pylist()
    titles = {results.read_summary(folder)["title"] for folder in results.shown()}
    assert {row["data"] for row in users} == titles
    assert all(0 <= row["worse"] <= row["users"] for row in users)
    assert all((row["worse"] == 0) == (row["largest_ratio"] <= 1 + 1e-6) for row in users)


def test_without_results_on_real_data_the_figure_says_so(everywhere):
    rows = tables.from_rows(
        ("kind", "candidates", "ratio", "scores", "sensitivities"),
        [("search", 3, 1.1, "0 -1 -2", "1 1 0"), ("family", 3, 1.1, "0 -1 -2", "1 1 0")],
    )
    with_users = {**everywhere, "rows": rows}
    without = {name: table for name, table in with_users.items() if name != "users"}
    shown = [
        [text.get_text() for axes in drawn(EVERYWHERE, data).axes for text in axes.texts]
        for data in (with_users, without)
    ]
    assert "no results on real data" in shown[1]
    assert "no results on real data" not in shown[0]
    assert [len(EVERYWHERE.listings(data)) for data in (with_users, without)] == [2, 1]


def test_keep_counts_from_either_end():
    assert keep_of("least", 0.1) == (0.0, 0.1)
    assert keep_of("most", 0.25) == (0.75, 1.0)


def test_keeping_few_beats_keeping_all_under_heavy_tails_and_gem_does_too():
    plan = [task for task in KEEP.plan(FAST) if "σ = 2" in task.label]
    assert len(plan) == 2
    for table in (task.compute() for task in plan):
        kept = tables.where(table, mechanism=DEFAULT, setting="least")
        errors = dict(zip(kept["share"].to_pylist(), kept["mean_squared_error"].to_pylist(), strict=True))
        gem = tables.where(table, mechanism="gem")["mean_squared_error"][0].as_py()
        assert min(errors.values()) < gem < errors[1.0] / 10


def test_errors_under_keep_are_measured_against_the_best_of_all_candidates():
    scenario = heavy(1.0).first(3)
    mechanism = dps.HeterogeneousNoisyMax(epsilon=1.0, keep=(0.0, 0.25))
    law = mechanism.pmf(scenario.scores, scenario.sensitivities)
    best = scenario.scores.max(axis=1, keepdims=True)
    direct = (law * (best - scenario.scores) ** 2).sum(axis=1)
    np.testing.assert_allclose(
        dps.expected_error(mechanism, scenario.scores, scenario.sensitivities), direct, rtol=1e-9
    )
    assert (np.count_nonzero(law, axis=1) <= 26).all()


def test_the_figure_over_keep_has_a_panel_for_each_case_and_a_row_in_its_table():
    shown = ("Scenario 1", "Lognormal, σ = 1")
    tasks = [task for task in KEEP.plan(FAST) if task.label.startswith(shown)]
    data = {"errors": tables.pa.concat_tables([task.compute() for task in tasks])}
    figure = drawn(KEEP, data)
    assert [axes.get_title() for axes in figure.axes] == ["Lognormal, σ = 1, ε = 1", "Lognormal, σ = 1, ε = 8"]
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    (listing,) = KEEP.listings(data)
    assert all(len(row) == len(listing.columns) for row in listing.rows)
    # With the insensitive half left out, only good candidates remain.
    assert listing.rows[0][4].startswith("0 (")


def test_the_section_on_the_optimum_lists_what_its_table_holds():
    data = computed(OPTIMUM)
    for row in [*data["errors"].to_pylist(), *data["grids"].to_pylist()]:
        assert row["optimum"] <= row["proportional"] * (1 + 1e-9)
        assert all(row["optimum"] <= row[name] * (1 + 1e-7) for name in BESIDE)
    figure = drawn(OPTIMUM, data)
    assert [axes.get_title() for axes in figure.axes] == tables.unique(data["errors"], "sensitivities")
    for listing in OPTIMUM.listings(data):
        assert listing.rows
        assert all(len(row) == len(listing.columns) for row in listing.rows)


def test_the_readmes_picture_shows_the_default_below_noisy_max():
    data = computed(CORRELATIONS)
    for title in tables.unique(data["errors"], "scenario"):
        ours, theirs = (
            tables.where(data["errors"], scenario=title, mechanism=name)["mean_squared_error"].to_numpy()
            for name in (DEFAULT, "rnm")
        )
        assert (ours < theirs).all()
    figure = drawn(CORRELATIONS, data)
    assert len(figure.axes) == 3


def test_the_table_in_the_theory_is_what_the_section_computes():
    page = (Path(__file__).resolve().parents[3] / "docs/theory/heterogeneous-noisy-max.md").read_text("utf-8")
    # Scenario 3 has one trial, so a fast run computes its numbers in full.
    for task in KEEP.plan(FAST):
        if task.label.startswith("Scenario 3"):
            title = f"Scenario 3, {task.label.rpartition(', ')[2]}"
            assert f"| {' | '.join([title, *cells(task.compute())])} |" in page
