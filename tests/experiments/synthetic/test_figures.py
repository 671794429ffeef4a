"""The figures on synthetic data, drawn from small tables; and captions, against the numbers they speak of."""

import numpy as np
import pyarrow as pa
import pytest

import dpselect as dps
from experiments.drawing import look
from experiments.experiment import FAST, FULL
from experiments.mechanisms import BETA, COMPARED, PRIVATE, STYLES, build
from experiments.scenarios import TITLES, negative, positive, uncorrelated
from experiments.synthetic import EXPERIMENTS, increasing, polarised
from experiments.synthetic.shares import SHARES
from experiments.trials import exact_errors

BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS}
EPSILONS = (0.01, 0.1, 1.0, 10.0, 100.0)


def error_table(titles, mechanisms, factor):
    """Return errors 8 in all places, times what ``factor`` says of a title and a mechanism."""
    rows = [
        {"scenario": title, "mechanism": name, "epsilon": epsilon, "mean_squared_error": 8.0 * factor(title, name)}
        for title in titles
        for name in mechanisms
        for epsilon in EPSILONS
    ]
    return pa.Table.from_pylist(rows)


def curve_of(panel, name):
    """Return the heights of a mechanism's curve in a panel."""
    style = STYLES[name]
    (line,) = (line for line in panel.lines if (line.get_color(), line.get_marker()) == (style.color, style.marker))
    return line.get_ydata()


def test_increasing_correlation_has_scatter_plots_errors_and_errors_over_noisy_maxs():
    titles = list(increasing.TITLES.values())
    candidates = pa.table(
        {
            "scenario": titles,
            "score": [0.5] * 7,
            "sensitivity": [1.0] * 7,
            "mean_correlation": np.linspace(-1, 1, 7),
        }
    )

    def factor(title, name):
        return 0.25 if name == "gem" and title == titles[0] else 1.0

    data = {"candidates": candidates, "errors": error_table(titles, increasing.MECHANISMS, factor)}
    with look():
        figure = increasing.INCREASING.draw(data)
    top, middle, bottom = np.reshape(figure.axes, (3, len(titles)))
    assert [panel.collections[0].get_offsets().tolist() for panel in top] == [[[0.5, 1.0]]] * 7
    for row in (middle, bottom):
        assert len({panel.get_ylim() for panel in row}) == 1
    assert curve_of(middle[0], "gem") == pytest.approx([2.0] * len(EPSILONS))
    assert curve_of(middle[1], "gem") == pytest.approx([8.0] * len(EPSILONS))
    assert curve_of(bottom[0], "gem") == pytest.approx([0.25] * len(EPSILONS))
    assert curve_of(bottom[1], "gem") == pytest.approx([1.0] * len(EPSILONS))
    numbers = increasing.INCREASING.numbers(data)
    assert (numbers["gem_left"], numbers["gem_right"]) == ("0.25", "1")


def test_scenarios_7_and_8_show_errors_and_errors_over_a_random_picks_on_a_linear_axis():
    titles = [TITLES[7], TITLES[8]]
    candidates = pa.table(
        {
            "scenario": np.repeat(titles, 2),
            "group": polarised.GROUPS * 2,
            "score": [1.0, -1.0, 1.0, -1.0],
            "sensitivity": [1.0] * 4,
        }
    )
    mechanisms = [name for name in COMPARED if name != "rs-improved-matched"]
    errors = error_table(titles, mechanisms, lambda _, name: {"uniform": 2.0, "combined-gem": 0.5}.get(name, 1.0))
    data = {"candidates": candidates, "errors": errors}
    with look():
        figure = polarised.POLARISED.draw(data)
    for panel in figure.axes[2:4]:
        assert panel.get_yscale() == "log"
        assert curve_of(panel, "combined-gem") == pytest.approx([4.0] * 4)
    for panel in figure.axes[4:]:
        assert panel.get_yscale() == "linear"
        assert len(panel.lines) == len(mechanisms)
        assert curve_of(panel, "combined-gem") == pytest.approx([0.25] * 4)  # ε from 0.1
    caption = polarised.POLARISED.caption.format_map(polarised.POLARISED.numbers(data))
    assert "combined GEM’s error is 0.25 of random’s in scenario 7, GEM’s and mGEM’s 0.50 and 0.50" in caption


@pytest.mark.parametrize("name", ["two-candidates", "two-candidates-gamma", "two-candidates-rnmh"])
def test_hg_is_defined_in_each_figure_that_uses_it(name):
    experiment = BY_NAME[name]
    gains = [task for task in experiment.plan(FAST) if task.table == "gains"]
    if name == "two-candidates-rnmh":
        gains = gains[:4]  # a row
    data = {"gains": pa.concat_tables(task.compute() for task in gains)}
    with look():
        figure = experiment.draw(data)
    assert figure.axes[-1].get_ylabel() == "HG = Pr[RNM errs] − Pr[other errs]"
    caption = experiment.caption.format_map(experiment.numbers(data))
    assert "HG is the probability that RNM picks the worse candidate, minus the other mechanism’s" in caption
    assert "HG" in experiment.notes


def test_the_caption_on_shares_says_what_its_table_says():
    """It once said that the order of the mechanisms hardly depends on the share."""

    def order(make, high):
        scenario = make(high)
        errors = {
            name: float(dps.expected_error(build(name, 2.0), scenario.scores, scenario.sensitivities)[0])
            for name in PRIVATE
        }
        return sorted(errors, key=errors.__getitem__)

    assert "mGEM has the lowest error in scenario 1 and GEM in scenario 2" in SHARES.caption
    assert "in scenario 3 it is heterogeneous noisy max from a share of 4 % on" in SHARES.caption
    for make, best, first in ((positive, "mgem", 2), (negative, "gem", 2), (uncorrelated, "heterogeneous-rnm", 4)):
        assert {order(make, high)[0] for high in (first, 20, 50, 86, 98)} == {best}
    assert order(uncorrelated, 2)[0] != "heterogeneous-rnm"
    assert (
        "combined GEM is second up to a share of 20 %, and worse than a random pick from 88 % on" in SHARES.caption
    )
    for make in (positive, negative):
        assert {order(make, high)[1] for high in (2, 10, 20)} == {"combined-gem"}
        for high, is_worse in ((86, False), (88, True), (98, True)):
            found = order(make, high)
            assert (found.index("combined-gem") > found.index("uniform")) is is_worse


def test_marks_on_the_tilted_curves_are_the_papers_mechanisms():
    plan = [task for task in BY_NAME["tilts"].plan(FAST) if "ε = 1," in task.label or "ε = 8," in task.label]
    data = {"errors": pa.concat_tables(task.compute() for task in plan)}
    with look():
        figure = BY_NAME["tilts"].draw(data)
    scenario = positive()
    for name, mechanism in {
        "rnm": dps.NoisyMax(epsilon=1.0),
        "gem": dps.GEM(epsilon=1.0, beta=BETA),
        "mgem": dps.ModifiedGEM(epsilon=1.0, beta=BETA),
    }.items():
        expected = dps.expected_error(mechanism, scenario.scores, scenario.sensitivities)
        assert curve_of(figure.axes[0], name) == pytest.approx(expected)


def test_only_random_stopping_and_the_naive_mechanism_use_fewer_trials():
    slow = {name for name, record in COMPARED.items() if record.has_slow_pmf}
    assert slow == {name for name in COMPARED if name.startswith("rs")} | {"rnmh"}
    assert exact_errors(positive, "heterogeneous-rnm", FAST).trials == 1  # all trials are equal there
    for effort in (FAST, FULL):
        assert f"({effort.slow_trials} for random stopping and naive noisy max)" in effort.description
