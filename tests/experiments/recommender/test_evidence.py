"""Which runs verdicts rest on."""

import pytest

from experiments.recommender import evidence, results

PART, NEAR = "Amazon Books 84 %, density 5e-5", "MovieLens-1M"


@pytest.mark.parametrize(
    ("runs", "judged", "substitutes"),
    [
        ([PART, NEAR, "Gowalla"], {PART: "Amazon Books"}, {NEAR: "MovieLens-20M"}),
        (["Amazon Books", PART], {"Amazon Books": "Amazon Books"}, {}),
        (["MovieLens-20M", NEAR], {"MovieLens-20M": "MovieLens-20M"}, {}),
        (["Gowalla", "Yelp2018"], {}, {}),
    ],
)
def test_verdicts_rest_on_the_paper_s_datasets_or_a_part_and_never_on_substitutes(runs, judged, substitutes):
    assert evidence.judged(runs) == judged
    assert evidence.substitutes(runs) == substitutes


def test_errors_of_kept_runs_come_with_the_median_correlation_of_their_variant():
    tasks = evidence.kept_errors("data")
    assert len(tasks) == len(results.shown())
    for task, folder in zip(tasks, results.shown(), strict=True):
        summary = results.read_summary(folder)
        table = task.compute()
        assert table.num_rows == results.read_tables(folder)["errors"].num_rows
        for row in table.to_pylist():
            assert row["run"] == summary["title"]
            assert row["correlation"] == float(summary[f"correlation_{row['variant']}_quantile_50"])
