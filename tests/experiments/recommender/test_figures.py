"""The figures on recommendations: what they divide by, what they share, and what stays apart."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import experiments.bandit
import experiments.recommender
from experiments.drawing import look
from experiments.mechanisms import COMPARED, STYLES
from experiments.recommender import figures, sections

RUNS = ("Small", "Large")
EPSILONS = (0.1, 1.0, 8.0)
PLAIN, FALSE = 2.0, 50.0


def errors():
    """Return tables in which a mechanism's error is a multiple of random's, which differs a lot between runs."""
    return pa.Table.from_pylist(
        [
            {
                "run": run,
                "variant": variant,
                "mechanism": mechanism,
                "epsilon": epsilon,
                "mean_squared_error": unit * {"gem": extreme, "mgem": 0.5, "rnm": 0.9}.get(mechanism, 1.0),
                "standard_error": unit * 0.01,
            }
            for run, unit in zip(RUNS, (1e-5, 10.0), strict=True)
            for variant, extreme in (("clipped", PLAIN), ("unclipped", FALSE))
            for mechanism in COMPARED
            for epsilon in EPSILONS
        ]
    )


@pytest.fixture
def data():
    cells = [(-0.25, 1.0, 20), (-0.21, 3.0, 60), (0.35, 4.0, 9), (0.55, 5.0, 100)]
    ratios = [
        {"run": run, "version": "exact", "correlation": place, "log_ratio": ratio, "users": users}
        for run in RUNS
        for place, ratio, users in cells
    ]
    return {
        "facts": pa.table({"run": RUNS, "name": ["ratio_trend"] * 2, "value": ["0.5", "-0.1"]}),
        "errors": errors(),
        "correlations": pa.table(
            {"run": RUNS, "variant": ["clipped"] * 2, "correlation": [0.1, 0.5], "users": [7, 3]}
        ),
        "ratios": pa.Table.from_pylist(ratios),
    }


def drawn(draw, data):
    with look():
        figure = draw(data)
    return figure, [panel for panel in figure.axes if panel.get_subplotspec() is not None]


def test_errors_are_divided_by_a_random_pick_s_at_the_same_epsilon(data):
    table = data["errors"].filter(np.array(data["errors"]["run"].to_pylist()) == "Small")
    clipped = table.filter(np.array(table["variant"].to_pylist()) == "clipped")
    epsilons, values, deviations = figures.over_random(clipped, "mgem")
    np.testing.assert_array_equal(epsilons, EPSILONS)
    np.testing.assert_allclose(values, 0.5)
    np.testing.assert_allclose(deviations, 0.01)


def test_the_trend_is_the_users_mean_of_each_tenth_unless_they_are_few(data):
    table = data["ratios"].slice(0, 4)
    places, means = figures.trend(table)
    # The users of the third tenth below 0 together: (20 · 1 + 60 · 3) / 80. Nine users are too few.
    np.testing.assert_allclose(places, [-0.22, 0.55])
    np.testing.assert_allclose(means, [2.5, 5.0])


def test_real_data_have_a_row_for_each_dataset_a_colour_bar_and_errors_on_the_same_axes(data):
    figure, _ = drawn(figures.draw_real, data)
    panels = np.array(figure.axes[: 3 * len(RUNS)]).reshape(len(RUNS), 3)
    assert [row[0].get_ylabel() for row in panels] == list(RUNS)
    assert [panel.get_xlabel() for panel in figure.axes[3 * len(RUNS) :]] == ["users in a cell"]
    assert panels[0, 2].get_ylim() == panels[1, 2].get_ylim()
    # All of GEM's clipped errors are in view, and the unclipped ones have not stretched the axis.
    assert PLAIN < panels[0, 2].get_ylim()[1] < 2 * PLAIN


def test_unclipped_errors_have_a_figure_of_their_own(data):
    _, panels = drawn(figures.draw_unclipped, data)
    assert [panel.get_title() for panel in panels] == list(RUNS)
    assert panels[0].get_ylim() == panels[1].get_ylim()
    assert panels[0].get_ylim()[1] > FALSE


def test_captions_state_the_numbers_of_the_tables(data):
    said = sections.REAL.caption.format_map(sections.REAL.numbers(data))
    assert "in 1 of 2 datasets" in said
    assert (
        "mGEM’s error is 0.50 of a random pick’s, RNM’s 0.90, GEM’s 2.00, heterogeneous noisy max’s 1.00." in said
    )
    said = sections.UNCLIPPED.caption.format_map(sections.UNCLIPPED.numbers(data))
    assert "50.00 of a random pick’s on Small, and 2.00 with clipping" in said


def test_tilted_errors_are_divided_by_noisy_max_s_at_the_shown_epsilon():
    tilts = pa.Table.from_pylist(
        [
            {"family": "gem", "tilt": tilt, "epsilon": epsilon, "mean_squared_error": 0.6 * epsilon}
            for tilt in (-1.0, 1.0)
            for epsilon in EPSILONS
        ]
    )
    tuned = pa.table({"epsilon": [0.1, 1.0], "mean_squared_error": [9.0, 0.5], "rnm": [7.0, 2.0]})
    places, values, chosen = figures.over_noisy_max(tilts, tuned, "gem")
    np.testing.assert_array_equal(places, [-1.0, 1.0])
    np.testing.assert_allclose(values, 0.3)
    assert chosen == 0.25


@pytest.mark.parametrize("package", [experiments.bandit, experiments.recommender], ids=lambda each: each.__name__)
def test_no_figure_uses_a_mechanism_s_colour_for_something_else(package):
    """A mechanism's colour comes from its style. Nothing else names it."""
    for file in Path(package.__path__[0]).rglob("*.py"):
        text = file.read_text(encoding="utf-8").lower()
        assert not [style.label for style in STYLES.values() if style.color.lower() in text], file.name
