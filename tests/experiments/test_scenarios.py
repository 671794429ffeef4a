import numpy as np
import pytest
from scipy.stats import spearmanr

import dpselect as dps
from experiments.experiment import FAST, FULL
from experiments.mechanisms import STYLES, contenders
from experiments.scenarios import negative, positive, uncorrelated
from experiments.synthetic.bimodal import BIMODAL

ERRORS_AT_ONE = {
    "rnm": 1.453,
    "rnmh": 0.097,
    "rs": 0.881,
    "rs-improved": 1.365,
    "gem": 3.447,
    "mgem": 0.291,
    "krr": 1.966,
}


@pytest.mark.parametrize(("mechanism", "expected"), ERRORS_AT_ONE.items())
def test_errors_in_scenario_1_at_epsilon_one_are_the_known_ones(mechanism, expected):
    scenario = positive()
    contender = contenders(1.0, beta=0.05, gamma=0.05)[mechanism]
    error = dps.expected_error(contender, scenario.scores, scenario.sensitivities)
    assert f"{error:.3f}" == f"{expected:.3f}"


@pytest.mark.parametrize(("build", "sign"), [(positive, 1), (negative, -1), (uncorrelated, 0)])
def test_scores_and_sensitivities_correlate_as_the_scenario_says(build, sign):
    scenario = build()
    correlation = spearmanr(scenario.scores[0], scenario.sensitivities).statistic
    assert correlation == pytest.approx(sign, abs=1e-12)


@pytest.mark.parametrize("build", [positive, negative, uncorrelated])
def test_fifty_candidates_score_high_and_fifty_low(build):
    scenario = build()
    np.testing.assert_array_equal(scenario.scores, [np.r_[np.ones(50), -np.ones(50)]])
    assert set(scenario.sensitivities) == {1.0, 1.8}


def test_every_contender_has_a_style_and_the_order_is_the_same():
    assert list(contenders(1.0, beta=0.05, gamma=0.05)) == list(STYLES)


def test_exactly_the_contenders_with_a_guarantee_are_shown_as_private():
    for name, mechanism in contenders(1.0, beta=0.05, gamma=0.05).items():
        assert STYLES[name].private == np.isfinite(mechanism.guarantee.epsilon)


def test_no_two_mechanisms_look_alike():
    for look in ("label", "color", "marker"):
        assert len({getattr(style, look) for style in STYLES.values()}) == len(STYLES)


@pytest.mark.parametrize("effort", [FAST, FULL])
def test_the_grid_of_epsilons_runs_from_a_hundredth_to_a_hundred_through_each_power_of_ten(effort):
    task = next(task for task in BIMODAL.plan(effort) if task.table == "errors")
    epsilons = task.compute()["epsilon"].to_pylist()
    assert len(epsilons) == effort.epsilon_points
    assert (epsilons[0], epsilons[-1]) == (0.01, 100.0)
    assert {0.1, 1.0, 10.0} <= set(epsilons)
