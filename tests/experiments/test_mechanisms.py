"""The compared mechanisms and their styles, read from dpselect's records."""

import numpy as np
import pytest

import dpselect as dps
from experiments.mechanisms import (
    COMPARED,
    COMPARED_IN_PAPER,
    PAPER,
    PRIVATE,
    STYLES,
    TILTED,
    build,
    matched_gamma,
    tilted_style,
)


@pytest.mark.parametrize("gamma", [0.5, 0.05, 0.001])
def test_matched_gamma_takes_as_many_draws_on_average(gamma):
    matched = matched_gamma(gamma)
    # E[K] of the logarithmic distribution, summed.
    k = np.arange(1, 3_000_000)
    law = (1 - matched) ** k / (k * np.log(1 / matched))
    assert (k * law).sum() == pytest.approx(1 / gamma, rel=1e-3)


def test_every_mechanism_of_the_paper_is_compared_under_its_record_and_one_is_compared_twice():
    paper = {"rnm", "gem", "mgem", "rs", "rs-improved", "combined-gem", "krr", "uniform"}
    assert set(COMPARED) == paper | {"heterogeneous-rnm", "rs-improved-matched", "rnmh"}
    assert all(COMPARED[name] is dps.MECHANISMS[name] for name in paper)
    assert [name for name in dps.MECHANISMS if name in paper] == list(COMPARED_IN_PAPER)
    assert set(PAPER) == paper | {"rs-improved-matched"}


def test_a_mechanism_gets_the_parameters_that_it_has():
    assert build("rs", 2.0, gamma=0.3) == dps.RandomStopping(epsilon=2.0, gamma=0.3)
    assert build("gem", 2.0, beta=0.1) == dps.GEM(epsilon=2.0, beta=0.1)
    assert build("uniform", 2.0) == dps.Uniform()
    matched = build("rs-improved-matched", 2.0, gamma=0.3)
    assert matched == dps.RandomStopping(epsilon=2.0, gamma=matched_gamma(0.3), eta=0.0)


def test_exactly_the_mechanisms_with_a_guarantee_are_shown_as_private():
    for name, style in STYLES.items():
        assert style.private == (name in {*PRIVATE, "top-share"}) == np.isfinite(build(name, 1.0).guarantee.epsilon)


def test_tilted_mechanisms_contain_the_mechanisms_they_extend():
    scores, sensitivities = [0.3, 1.0, 0.8], [0.2, 1.0, 0.4]
    for name, tilt, mechanism in (
        ("tilted-gem", 1.0, dps.GEM(epsilon=1.0)),
        ("tilted-gem", -1.0, dps.ModifiedGEM(epsilon=1.0)),
        ("tilted-rnm", 0.0, dps.NoisyMax(epsilon=1.0)),
    ):
        law = TILTED[name](epsilon=1.0, tilt=tilt).pmf(scores, sensitivities)
        np.testing.assert_array_equal(law, mechanism.pmf(scores, sensitivities))


@pytest.mark.parametrize("styles", [STYLES, {name: tilted_style(name) for name in TILTED}])
def test_no_two_mechanisms_look_alike(styles):
    for look in ("label", "color", "marker"):
        assert len({getattr(style, look) for style in styles.values()}) == len(styles)
