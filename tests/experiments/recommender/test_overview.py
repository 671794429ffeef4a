"""The report's first figure: means over whatever runs there are."""

import numpy as np
import pyarrow as pa
import pytest

from experiments.drawing import look
from experiments.recommender import overview, sections
from experiments.recommender.private_section import BEST

EPSILONS = (0.1, 1.0, 4.0, 8.0, 12.0, 16.0)
ERRORS = {
    "uniform": 2.0,
    "rnm": 1.8,
    "krr": 1.6,
    "heterogeneous-rnm": 1.7,
    "top-share": 1.0,
    "top-share-fitted": 0.6,
}
SCORES = {"public-lists": 0.5, "peeling": 0.3, "popular": 0.2, "random": 0.1}


def tables(picks, lists):
    """Return the tables of some runs, each with its own multiple of the errors and the scores."""
    return {
        "private": pa.Table.from_pylist(
            [
                {"run": run, "protocol": protocol, "mechanism": name, "epsilon": e, "mean_squared_error": error}
                for run, factor in picks.items()
                for protocol in ("paper", "private")
                for name, value in ERRORS.items()
                for error in [value if name == "uniform" else factor * value]
                for e in EPSILONS
            ]
        ),
        "private_lists": pa.Table.from_pylist(
            [
                {"run": run, "mechanism": name, "epsilon": epsilon, "score": factor * score}
                for run, factor in lists.items()
                for name, score in SCORES.items()
                for epsilon in EPSILONS
            ]
        ),
    }


@pytest.mark.parametrize("lists", [{"A": 1.0}, {"A": 1.0, "B, EASE": 1.0}])
def test_the_caption_states_means_over_the_runs_of_each_table(lists):
    data = tables({"A": 1.0, "B, EASE": 0.5}, lists)
    said = sections.OVERVIEW.caption.format_map(overview.numbers(data))
    assert "means over A and B (EASE)" in said
    assert "the error of top share is 0.22 of a random pick’s" in said  # (0.3 + 0.15) / 2, rounded to even
    assert "and 0.38 by its rule. The default, heterogeneous noisy max, has 0.64" in said
    assert "the best of the paper’s mechanisms 0.60" in said
    assert "public lists has 0.50 of the best list’s score" in said


def test_a_run_without_a_mechanism_does_not_count_for_its_mean():
    data = tables({"A": 1.0, "B": 0.5}, {"A": 1.0})
    lacking = [row for row in data["private"].to_pylist() if (row["run"], row["mechanism"]) != ("B", "top-share")]
    said = overview.numbers(data | {"private": pa.Table.from_pylist(lacking)})
    assert (said["rule"], said["fitted"]) == ("0.50", "0.22")


def test_each_run_is_a_faint_line_and_nothing_is_drawn_beyond_the_axis():
    with look():
        figure = overview.draw(tables({"A": 1.0, "B": 0.5, "C": 0.1}, {"A": 1.0}))
    left, right = figure.axes
    assert len(left.lines) == 4 * len(overview.PICKS) + 1  # three runs, their mean, and a random pick's level
    assert len(right.lines) == 2 * len(overview.LISTS)
    assert max(np.max(line.get_xdata()) for line in right.lines) == overview.MOST
    assert BEST in overview.PICKS
