"""Runs from files to tables on a small dataset, interrupted and resumed; and the command line."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from experiments.recommender import __main__ as command_line
from experiments.recommender import lists, pipeline, private, private_lists, protocol, results
from experiments.recommender.datasets import Run
from experiments.recommender.generated import generate
from experiments.recommender.scoring import quiet

RUN = Run(name="tiny", title="Tiny", dataset="tiny", sansa=None, l2=20.0)


MECHANISMS = ("rnm", "rs", "gem", "mgem", "combined-gem", "krr", "uniform", "top-share")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    likes = generate(users=260, items=760, seed=9)
    home = tmp_path_factory.mktemp("data")
    test = np.random.default_rng(1).random(likes.users.size) < 0.2
    pq.write_table(pa.table({"user": likes.users, "item": likes.items}), home / "tiny.parquet")
    pq.write_table(
        pa.table({"user": likes.users, "item": likes.items, "split": test.astype(np.int8)}), home / "split.parquet"
    )
    return home


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(protocol, "EPSILONS", (0.01, 1.0))
    monkeypatch.setattr(protocol, "TILTS", (-8.0, -1.0, 1.0))
    monkeypatch.setattr(protocol, "MEASURED", {name: protocol.MEASURED[name] for name in MECHANISMS})
    monkeypatch.setattr(pipeline, "TILT_EPSILONS", (1.0,))
    monkeypatch.setattr(lists, "EPSILONS", (10.0,))
    monkeypatch.setattr(private, "EPSILONS", (1.0,))
    monkeypatch.setattr(private_lists, "EPSILONS", (10.0,))
    monkeypatch.setattr(pipeline, "DOMINATED_USERS", 5)


def files(home):
    return {path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file()}


def seeded(path):
    """Return the lines of a table that do not come from OpenDP, which takes no seed."""
    return [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith('"opendp')]


@pytest.mark.parametrize("name", ["tiny", "split"])
def test_a_run_writes_every_table_and_a_summary(name, folder, tmp_path):
    run = Run(name=name, title=name, dataset=name, sansa=None, l2=20.0)
    home = pipeline.execute(run, folder, tmp_path, quiet)
    assert results.complete(home)
    assert set(results.read_tables(home)) == set(results.TABLES)
    summary = results.read_summary(home)
    assert summary["test users"] == ("26" if name == "tiny" else summary["test users"])
    assert "760 items" in summary["data"]
    assert float(summary["recall@20"]) > 0.02
    errors = results.read_tables(home)["errors"].to_pylist()
    assert {row["mechanism"] for row in errors} == set(MECHANISMS)
    assert {row["variant"] for row in errors} == {"clipped", "unclipped"}
    text = "".join(path.read_text(encoding="utf-8") for path in home.glob("*.csv"))
    assert str(folder) not in text
    assert str(tmp_path) not in text


def test_an_interrupted_run_goes_on_from_where_it_was_and_ends_with_the_same_tables(folder, tmp_path, monkeypatch):
    whole = pipeline.execute(RUN, folder, tmp_path / "whole", quiet)
    calls = []
    original = protocol.error_row

    def interrupted(users, mechanism, epsilon, **options):
        calls.append((mechanism, epsilon))
        if len(calls) == len(MECHANISMS) + 3:
            raise KeyboardInterrupt
        return original(users, mechanism, epsilon, **options)

    monkeypatch.setattr(protocol, "error_row", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pipeline.execute(RUN, folder, tmp_path / "parts", quiet)
    home = tmp_path / "parts" / "recommender" / "tiny"
    assert not results.complete(home)
    assert not (home / "errors.csv").exists()
    assert not [name for name in files(home) if name.endswith(".part")]
    kept = (home / "scores.npz").stat().st_mtime_ns
    calls[:] = [("", 0.0)] * 100
    assert pipeline.execute(RUN, folder, tmp_path / "parts", quiet) == home
    assert (home / "scores.npz").stat().st_mtime_ns == kept
    # The first ε was complete and is not computed again.
    assert ("rnm", 0.01) in calls[100:]  # unclipped
    assert len(calls) - 100 == 3 * len(MECHANISMS)
    for name in results.TABLES:
        assert seeded(home / f"{name}.csv") == seeded(whole / f"{name}.csv"), name


def test_a_complete_run_is_not_computed_again_and_other_settings_are(folder, tmp_path, monkeypatch):
    home = pipeline.execute(RUN, folder, tmp_path, quiet)
    before = files(home)
    monkeypatch.setattr(pipeline, "load", lambda *_: pytest.fail("read again"))
    assert pipeline.execute(RUN, folder, tmp_path, quiet) == home
    assert files(home) == before
    monkeypatch.undo()
    other = Run(name="tiny", title="Tiny", dataset="tiny", sansa=None, l2=30.0, private=False)
    monkeypatch.setattr(pipeline, "_tables", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        pipeline.execute(other, folder, tmp_path, quiet)
    assert "errors.csv" not in files(home)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--data: missing; give it"),
        (["--data", "nowhere"], "--data: nowhere is not a directory"),
        (["--data", "DATA", "--only", "netflix"], "--only: unknown run netflix; choose from split, tiny"),
        (["--data", "EMPTY"], "no known dataset"),
    ],
)
def test_the_command_line_says_what_is_missing_and_where_to_get_it(
    arguments, said, folder, tmp_path, monkeypatch, capsys
):
    monkeypatch.delenv(command_line.VARIABLE, raising=False)
    names = {"DATA": str(folder), "EMPTY": str(tmp_path)}
    with pytest.raises(SystemExit) as ended:
        command_line.main([names.get(argument, argument) for argument in arguments])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_the_command_line_lists_the_runs_of_the_folder_in_the_environment(folder, monkeypatch, capsys):
    monkeypatch.setenv(command_line.VARIABLE, str(folder))
    assert command_line.main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["split", "tiny"]


def test_a_bad_file_ends_its_run_with_one_line_and_a_failure(tmp_path, capfd):
    (tmp_path / "own.parquet").write_bytes(b"PAR1 and then nothing")
    assert command_line.main(["--data", str(tmp_path), "--output", str(tmp_path / "out")]) == 1
    assert "own.parquet: is not a complete Parquet file" in capfd.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_a_killed_run_leaves_no_process_behind(folder, tmp_path):
    command = [sys.executable, "-m", "experiments.recommender", "--data", str(folder), "--output", str(tmp_path)]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([*command, "--only", "tiny"], stderr=log, start_new_session=True)  # noqa: S603
    deadline = time.monotonic() + 120
    while b"tiny: " not in (tmp_path / "log").read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    while time.monotonic() < deadline:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("a child outlived its parent")
