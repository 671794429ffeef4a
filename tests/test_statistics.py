"""Goodness of fit of `select` with more than 10⁸ draws: `make test-statistics`.

Expected frequencies are those of the slow twins in :mod:`reference`, not the library's. Seeds are fixed, so a
run that passes once always passes; were they not, the whole file would raise a false alarm once in 1,000 runs.
"""

from dataclasses import asdict, fields, replace

import numpy as np
import pytest
from scipy.stats import chi2
from twins import TWINS

import dpselect as dps
from dpselect.unsafe import SCALES, NaiveHeterogeneousNoisyMax

pytestmark = pytest.mark.statistics

FALSE_ALARM = 1e-3
"""The false-alarm rate of all tests in this file together; each has an equal part of it (Bonferroni)."""

LEAST_EXPECTED = 10
"""Candidates that are expected less often than this are counted together."""

DRAWS = 10**8
"""The least number of draws of all tests together."""

REGISTERED = {name: make(epsilon=1.5) for name, make in dps.MECHANISMS.items()}
VARIANTS = {
    "rnm-monotone": dps.NoisyMax(epsilon=1.0, monotone=True),
    "rnm-laplace": dps.NoisyMax(epsilon=0.7, noise="laplace"),
    "rnm-laplace-tilted": dps.NoisyMax(epsilon=1.0, tilt=-0.4, beta=0.3, noise="laplace"),
    "em-monotone-tilted": dps.NoisyMax(epsilon=1.0, monotone=True, noise="gumbel", tilt=-1.0),
    "gem-laplace": dps.GEM(epsilon=2.0, noise="laplace"),
    "gem-gumbel": dps.GEM(epsilon=2.0, noise="gumbel", tilt=0.0),
    "gem-steep": dps.GEM(epsilon=0.5, tilt=-3.0, beta=0.5),
    "rs-negative": dps.RandomStopping(epsilon=1.0, eta=-0.5),
    "rs-steep": dps.RandomStopping(epsilon=1.0, gamma=0.2, eta=4.0),
    "rs-once": dps.RandomStopping(epsilon=1.0, gamma=1.0),
    "rs-rarely": dps.RandomStopping(epsilon=1.0, gamma=0.001, eta=0.0),
    "rs-exponential-steep": dps.RandomStopping(epsilon=1.0, gamma=0.2, eta=4.0, noise="exponential"),
    "rs-exponential-rarely": dps.RandomStopping(epsilon=1.0, gamma=0.001, noise="exponential"),
    "combined-gem-curious": dps.CombinedGEM(epsilon=4.0, correlation_share=0.9, beta=0.2),
    **{f"rnmh-{noise}": NaiveHeterogeneousNoisyMax(epsilon=1.0, noise=noise) for noise in SCALES},
}
MECHANISMS = REGISTERED | VARIANTS


def grouped(size, groups, seed):
    """Return candidates that share a few scores and sensitivities, so that the twins stay fast."""
    rng = np.random.default_rng(seed)
    scores, sensitivities = rng.integers(-16, 16, groups) / 4, rng.integers(1, 24, groups) / 8
    group = rng.integers(groups, size=size)
    return scores[group], sensitivities[group]


INPUTS = {
    "two": (np.array([0.0, 1.0]), np.array([1.0, 2.5])),
    "steps": (np.array([0.0, 0.3, -1.7, 2.2, 0.9]), np.array([0.1, 3.0, 1.0, 0.7, 0.2])),
    "public": (np.array([1.0, 1.0, 0.5, 2.0, 1.0, 1.75]), np.array([0.0, 0.0, 0.0, 1.0, 1.0, 0.5])),
    "tied": (np.repeat([1.0, 0.5, 1.0, 0.0], 5), np.tile([1.0, 2.0, 0.25, 1.0, 2.0], 4)),
    "dozens": grouped(70, 5, 7),  # more than visits, so GEM scans now and then
    "hundreds": grouped(300, 6, 8),
}
BUDGETS = (0.25, 3.0, 12.0)
ROWS = {
    "two": 800_000,
    "steps": 800_000,
    "public": 800_000,
    "tied": 400_000,
    "dozens": 300_000,
    "hundreds": 100_000,
}

CASES = [
    pytest.param(
        replace(mechanism, epsilon=budget) if fields(mechanism) else mechanism, name, id=f"{key}-{budget}-{name}"
    )
    for key, mechanism in MECHANISMS.items()
    for budget in (BUDGETS if fields(mechanism) else BUDGETS[:1])
    for name in INPUTS
]
TESTS = len(CASES)


def chi_square(counts, probabilities):
    """Return the p-value of Pearson's test; rare candidates are counted together."""
    expected = counts.sum() * probabilities
    order = np.argsort(expected)
    expected, counts = expected[order], counts[order]
    rare = np.searchsorted(np.cumsum(expected), LEAST_EXPECTED) + 1
    rare = max(rare, np.searchsorted(expected, LEAST_EXPECTED))
    if rare >= expected.size:
        return 1.0
    expected = np.r_[expected[:rare].sum(), expected[rare:]]
    counts = np.r_[counts[:rare].sum(), counts[rare:]]
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), expected.size - 1))


def assert_fits(mechanism, name, seed, record_property):
    scores, sensitivities = INPUTS[name]
    law = TWINS[type(mechanism)](scores, sensitivities, **asdict(mechanism))
    probabilities = np.array([float(p) for p in law])
    assert abs(probabilities.sum() - 1) < 1e-12
    rows = np.broadcast_to(scores, (ROWS[name], scores.size))
    randomness = dps.Randomness.seeded(seed)
    picks = mechanism.select(rows, sensitivities, randomness=randomness)
    counts = np.bincount(picks, minlength=scores.size)
    assert counts.sum() == ROWS[name]
    assert (counts[probabilities == 0] == 0).all()
    level = chi_square(counts, probabilities)
    record_property("draws", int(counts.sum()))
    record_property("p-value", level)
    assert level > FALSE_ALARM / TESTS


@pytest.mark.parametrize(("mechanism", "name"), CASES)
def test_picks_have_the_exact_law(mechanism, name, record_property):
    assert_fits(mechanism, name, 20, record_property)


def test_all_tests_together_draw_enough(record_property):
    total = sum(ROWS[case.values[1]] for case in CASES)
    record_property("total draws", total)
    print(f"{total:,} draws in {TESTS} tests")
    assert total >= DRAWS


def test_an_error_of_two_in_a_thousand_in_a_law_is_detected():
    counts = np.array([400_000, 400_000])
    assert chi_square(counts, np.array([0.5, 0.5])) == 1.0
    assert chi_square(np.array([398_000, 402_000]), np.array([0.5, 0.5])) < 1e-5
    assert chi_square(np.array([0, 0, 100]), np.array([0.0, 0.0, 1.0])) == 1.0
    assert chi_square(np.array([1, 2, 97]), np.array([0.01, 0.01, 0.98])) == 1.0
