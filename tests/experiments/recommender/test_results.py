"""Kept and published results."""

import pyarrow as pa

from experiments import tables
from experiments.recommender import protocol, results
from experiments.recommender.datasets import RUNS


def files(home):
    return {path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file()}


def test_published_tables_are_copies_and_are_shown_in_the_order_of_the_figure(tmp_path, monkeypatch):
    names = [RUNS[1].name, "other", RUNS[0].name]
    for name in names:
        (tmp_path / "own" / name).mkdir(parents=True)
        results.write_summary({"title": name}, tmp_path / "own" / name / "summary.csv")
        tables.write(pa.table({"a": [1]}), tmp_path / "own" / name / "errors.csv")
        results.publish(tmp_path / "own" / name, name, tmp_path / "committed")
    assert files(tmp_path / "own") == files(tmp_path / "committed")
    monkeypatch.setattr(results, "COMMITTED", tmp_path / "committed")
    monkeypatch.delenv(results.VARIABLE, raising=False)
    assert [folder.name for folder in results.shown()] == [RUNS[0].name, RUNS[1].name, "other"]
    monkeypatch.setenv(results.VARIABLE, str(tmp_path / "own"))
    assert {folder.parent.name for folder in results.shown()} == {"own"}


EPSILONS = protocol.EPSILONS


def test_kept_results_are_complete_small_and_say_where_they_come_from():
    for folder in results.COMMITTED.iterdir():
        summary = results.read_summary(folder)
        assert folder.name in {run.name for run in RUNS}
        assert {"recall@20", "published recall@20", "commit", "date", "peak memory", "data", "machine"} <= set(
            summary
        )
        found = results.read_tables(folder)
        assert set(results.TABLES) - set(found) <= set(results.PRIVATE)
        assert {row["epsilon"] for row in found["errors"].to_pylist()} == set(EPSILONS)
        assert sum(path.stat().st_size for path in folder.iterdir()) < 400_000
        # Counts of users, never users.
        assert not {"user", "item"} & {name for table in found.values() for name in table.column_names}
