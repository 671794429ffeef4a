"""Probabilities in closed form: the paper's numbers and counterexamples, a million candidates."""

import json
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
import reference
from mpmath import mp

import dpselect as dps
from dpselect.unsafe import NaiveHeterogeneousNoisyMax

NOISES = ("exponential", "laplace", "gumbel")


# --- The paper --------------------------------------------------------------------------------------------

FIRST_SCENARIO = np.repeat([1.0, -1.0], 50), np.repeat([1.8, 1.0], 50)


@pytest.mark.parametrize(
    ("mechanism", "published"),
    [
        (dps.NoisyMax(epsilon=1.0), 1.453),
        (NaiveHeterogeneousNoisyMax(epsilon=1.0), 0.097),
        (dps.RandomStopping(epsilon=1.0), 0.881),
        (dps.RandomStopping(epsilon=1.0, eta=0.0), 1.365),
        (dps.GEM(epsilon=1.0), 3.447),
        (dps.ModifiedGEM(epsilon=1.0), 0.291),
        (dps.RandomizedResponse(epsilon=1.0), 1.966),
    ],
    ids=repr,
)
def test_the_first_scenario_has_the_published_mean_squared_error(mechanism, published):
    assert round(float(dps.expected_error(mechanism, *FIRST_SCENARIO)), 3) == published


def test_randomized_response_errs_in_the_first_scenario_with_a_probability_of_fifty_in_e_plus_ninety_nine():
    found = dps.expected_error(dps.RandomizedResponse(epsilon=1.0), *FIRST_SCENARIO)
    assert found == pytest.approx(4 * 50 / (np.e + 99), rel=1e-14)


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.0, 20.0])
@pytest.mark.parametrize(("low", "high", "first", "second"), [(0, 1, 1, 1), (-2, 0.5, 3, 0.2), (1, 1, 0.1, 5)])
def test_two_candidates_are_confused_as_the_paper_says(epsilon, low, high, first, second):
    gap = high - low
    scores, sensitivities = [float(low), float(high)], [float(first), float(second)]
    noisy_max = dps.NoisyMax(epsilon=epsilon).pmf(scores, sensitivities)[0]
    assert noisy_max == pytest.approx(np.exp(-epsilon * gap / (2 * max(first, second))) / 2, rel=1e-12)
    naive = NaiveHeterogeneousNoisyMax(epsilon=epsilon).pmf(scores, sensitivities)[0]
    assert naive == pytest.approx(np.exp(-epsilon * gap / (2 * first)) / (1 + second / first), rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0])
def test_naive_noisy_max_makes_a_candidate_impossible_on_a_neighbour(epsilon):
    naive = NaiveHeterogeneousNoisyMax(epsilon=epsilon)
    assert naive.pmf([0.0, 0.5], [0.0, 1.0])[0] == 0
    assert naive.pmf([0.0, -0.5], [0.0, 1.0])[0] == pytest.approx(-np.expm1(-epsilon / 4), rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("size", [2, 5, 30])
def test_naive_noisy_max_with_laplace_noise_loses_a_budget_for_each_rival(epsilon, size):
    naive = NaiveHeterogeneousNoisyMax(epsilon=epsilon, noise="laplace")
    sensitivities = np.r_[0.0, np.ones(size - 1)]
    level = naive.pmf(np.zeros(size), sensitivities)[0]
    below = naive.pmf(np.r_[0.0, np.ones(size - 1)], sensitivities)[0]
    assert level == pytest.approx(0.5 ** (size - 1), rel=1e-11)
    assert below == pytest.approx((0.5 * np.exp(-epsilon)) ** (size - 1), rel=1e-11)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 12.0])
def test_the_ratio_of_exponential_random_stopping_stays_bounded_in_the_number_of_candidates(epsilon):
    gamma, size = 0.05, 10**5
    published = dps.RandomStopping(epsilon=epsilon / 2, gamma=gamma, noise="exponential")  # of scale 6Δ_a/ε
    sensitivities = np.r_[0.0, np.ones(size - 1)]
    high = published.pmf(np.ones(size), sensitivities)[0]
    low = published.pmf(np.r_[1.0, np.zeros(size - 1)], sensitivities)[0]
    limit = (1 + (1 - gamma) * np.expm1(-epsilon / 6)) ** -2
    assert low / high == pytest.approx(limit, rel=40 / size)
    assert np.log(limit) < epsilon / 2


@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 30.0, 1e3])
@pytest.mark.parametrize("size", [1, 2, 1000])
def test_randomized_response_keeps_its_odds(epsilon, size):
    found = dps.RandomizedResponse(epsilon=epsilon).pmf(np.arange(size), 1.0)
    odds = mp.exp(mp.mpf(epsilon))
    assert found[-1] == pytest.approx(float(odds / (odds + size - 1)), rel=1e-14)
    assert found[:-1] == pytest.approx(float(1 / (odds + size - 1)), rel=1e-13, abs=1e-300)


def test_random_stopping_with_certain_scores_is_the_best_of_a_geometric_number_of_draws():
    gamma, size = 0.3, 4
    found = dps.RandomStopping(epsilon=1.0, gamma=gamma).pmf([3.0, 1.0, 2.0, 0.0], 0.0)
    at_most = [gamma * s / (1 - (1 - gamma) * s) for s in np.arange(size + 1) / size]
    assert found == pytest.approx(np.diff(at_most)[[3, 1, 2, 0]], rel=1e-13)


# --- A million candidates ---------------------------------------------------------------------------------

MILLION = 10**6
FEWER = 10**5
"""For Laplace noise, whose pmf takes ten seconds for a million. The two tests of two groups use a million."""


@pytest.mark.parametrize("noise", NOISES)
def test_a_million_equal_candidates_are_equally_likely(noise):
    size = FEWER if noise == "laplace" else MILLION
    scores = np.full(size, 3.7)
    for family in (dps.NoisyMax, dps.GEM):
        found = family(epsilon=0.9, noise=noise).pmf(scores, 0.3)
        assert abs(found.sum() - 1) <= 1e-12
        assert np.abs(found * size - 1).max() <= 1e-10


def two_group_law(noise, gap, leaders, others):
    """Return the probability of one leader and of one of the others, ``gap`` scales behind."""
    mp.dps = 30
    p = mp.exp(-reference.real(Fraction(gap)))
    if noise == "gumbel":
        return 1 / (leaders + others * p), p / (leaders + others * p)
    if noise == "exponential":
        width = 1 / (leaders + others * p)
        ends = [0, *(width * 2**i for i in range(7)), 1] if 64 * width < 1 else [0, 1]
        leader = mp.quad(lambda u: (1 - u) ** (leaders - 1) * (1 - u * p) ** others, ends)
        other = mp.quad(lambda u: p * (1 - u) ** leaders * (1 - u * p) ** (others - 1), ends)
        return leader, other
    counts = {(Fraction(0), Fraction(1)): leaders, (-Fraction(gap), Fraction(1)): others}
    return tuple(reference.largest_noisy_of_groups("laplace", counts).values())


TWO_GROUPS = [(1, 12.0), (1000, 6.5), (MILLION // 2, 0.25), (3, 40.0)]


@pytest.mark.parametrize(
    ("noise", "leaders", "gap"),
    [
        *(("exponential", *groups) for groups in TWO_GROUPS),
        *(("gumbel", *groups) for groups in TWO_GROUPS),
        ("laplace", *TWO_GROUPS[1]),
    ],
)
def test_two_groups_of_a_million_candidates_have_their_exact_probabilities(noise, leaders, gap):
    scores = np.full(MILLION, -2 * gap)
    scores[:: MILLION // leaders][:leaders] = 0.0
    found = dps.NoisyMax(epsilon=1.0, noise=noise).pmf(scores, 1.0)
    exact = two_group_law(noise, gap, leaders, MILLION - leaders)
    assert abs(found.sum() - 1) <= 1e-12
    for group, probability in zip((scores == 0, scores < 0), exact, strict=True):
        assert np.ptp(found[group]) <= 1e-13 * found[group].max()
        assert found[group][0] == pytest.approx(float(probability), rel=1e-10, abs=1e-22)


@pytest.mark.parametrize(
    ("noise", "tilt"),
    [("exponential", 1.0), ("exponential", -1.0), ("gumbel", 1.0), ("gumbel", -1.0), ("laplace", 1.0)],
)
def test_gem_over_two_groups_of_a_million_candidates_is_exact(noise, tilt):
    pairs, size = ([1.0, 0.25], [2.0, 0.5]), MILLION
    mechanism = dps.GEM(epsilon=0.8, tilt=tilt, noise=noise)
    found = mechanism.pmf(*(np.tile(pair, size // 2) for pair in pairs))
    t = reference.tilt_slope(tilt, size, 0.05, 0.8)
    levels = reference.gem_levels(*pairs, 0.8, t)
    best = levels.index(max(levels))
    exact = two_group_law(noise, levels[best] - levels[1 - best], size // 2, size // 2)
    assert abs(found.sum() - 1) <= 1e-12
    assert found[best] == pytest.approx(float(exact[0]), rel=1e-10)
    assert found[1 - best] == pytest.approx(float(exact[1]), rel=1e-10)


def test_a_million_distinct_candidates_have_their_exact_probabilities():
    scores = np.random.default_rng(5).normal(size=MILLION)
    found = {noise: dps.NoisyMax(epsilon=2.0, noise=noise).pmf(scores, 1.0) for noise in ("exponential", "gumbel")}
    for probabilities in (*found.values(), dps.NoisyMax(epsilon=2.0, noise="laplace").pmf(scores[:FEWER], 1.0)):
        assert abs(probabilities.sum() - 1) <= 1e-12
    chances = np.exp(scores - scores.max())
    total = chances.sum()
    nodes, weights = np.polynomial.legendre.leggauss(64)
    points = (nodes + 1) / 2 * 45 / total
    products = np.array([np.log1p(-u * chances).sum() for u in points])
    for a in (0, 7, int(scores.argmax())):
        values = np.exp(products - np.log1p(-points * chances[a]))
        integral = chances[a] * (weights * values).sum() / 2 * 45 / total
        assert found["exponential"][a] == pytest.approx(integral, rel=1e-10)
        assert found["gumbel"][a] == pytest.approx(chances[a] / total, rel=1e-12)


def test_memory_grows_in_proportion_to_the_number_of_candidates():
    script = """
import json, resource, sys
import numpy as np, dpselect as dps
bytes_each = {}
unit = 1 if sys.platform == "darwin" else 1024
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
for name, (mechanism, size) in {
    "laplace": (dps.NoisyMax(epsilon=1.0, noise="laplace"), 3 * 10**5),
    "exponential": (dps.NoisyMax(epsilon=1.0), 10**6),
    "gumbel": (dps.NoisyMax(epsilon=1.0, noise="gumbel"), 10**6),
    "gem": (dps.GEM(epsilon=1.0), 10**6),
}.items():
    scores = np.random.default_rng(0).normal(size=size)
    sensitivities = np.random.default_rng(1).uniform(0.1, 1.0, size)
    mechanism.pmf(scores[:10], sensitivities[:10]), mechanism.select(scores[:10], sensitivities[:10])
    before = peak()
    mechanism.pmf(scores, sensitivities), mechanism.select(scores, sensitivities)
    bytes_each[name] = (peak() - before) / size
print(json.dumps(bytes_each))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    for name, bytes_each in json.loads(done.stdout).items():
        assert bytes_each < 200, name
