"""Exact samplers: fractions decide where floats cannot, with the same random bits, and nothing else changes."""

import subprocess
import sys
from dataclasses import asdict

import numpy as np
import pyarrow as pa
import pytest
import reference
from forcing import assert_same_picks
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from twins import TWINS
from variants import PRIVATE, at_budget, candidates

import dpselect as dps
from dpselect.ranks import centred_ranks, rank_covariances

FALSE_ALARM = 1e-6
"""The false-alarm rate of each chi-square test. Seeds are fixed, so a test that passes once always passes."""

every_mechanism = pytest.mark.parametrize("mechanism", PRIVATE.values(), ids=PRIVATE)


def budgets(mechanism):
    """Return a mechanism at its own budget, and at one where few candidates pass and most rows are scanned."""
    return [mechanism] if mechanism == dps.Uniform() else [mechanism, at_budget(mechanism, 30.0)]


def exact_rows(mechanism, rows):
    """Return how many of these rows to decide in fractions: one where each takes a thousand draws and 0.2 s."""
    return 1 if getattr(mechanism, "gamma", 1.0) < 0.01 else rows


# --- Forced to be exact -----------------------------------------------------------------------------------


@every_mechanism
@pytest.mark.parametrize(("rows", "size"), [(20, 1), (20, 6), (4, 70), (1, 700)])
def test_exact_picks_are_those_of_the_kernels(forced, mechanism, rows, size):
    scores, sensitivities, public = candidates(mechanism, (exact_rows(mechanism, rows), size), size)
    handed_over = 0
    for variant in budgets(mechanism):
        handed_over += assert_same_picks(forced, variant, scores, sensitivities)
        handed_over += assert_same_picks(forced, variant, scores, np.maximum(0.25, sensitivities), 2, **public)
    decided_anyway = mechanism == dps.Uniform() or getattr(mechanism, "gamma", 0) == 1  # nothing to compare
    assert handed_over > 0 or decided_anyway or size == 1


@every_mechanism
def test_exact_picks_are_those_of_the_kernels_for_ties_and_public_scores(forced, mechanism):
    tied = np.broadcast_to([1.0, 1.0, 1.0, 0.5, 1.0], (exact_rows(mechanism, 20), 5))
    for sensitivities in ([0.0, 0.0, 1.0, 1.0, 1.0], 0.0, 1.0, [0.0, 1.0, 0.0, 1.0, 0.0]):
        for variant in budgets(mechanism):
            assert_same_picks(forced, variant, tied, sensitivities)


@every_mechanism
def test_exact_picks_are_those_of_the_kernels_for_rows_of_different_length(forced, mechanism):
    sizes = [1, 3, 64, 65, 2, 130, 1] if exact_rows(mechanism, 7) > 1 else [2, 65]
    bounds = np.r_[0, np.cumsum(sizes)]
    scores, sensitivities, public = candidates(mechanism, int(bounds[-1]), 5)
    assert_same_picks(forced, mechanism, (scores, bounds), sensitivities, **public)
    assert_same_picks(forced, mechanism, (scores, bounds), 1.5)


SAMPLERS = {
    "passers": (dps.GEM(epsilon=2.0), {}),
    "gumbel": (dps.NoisyMax(epsilon=2.0, noise="gumbel"), {}),
    "laplace": (dps.NoisyMax(epsilon=2.0, noise="laplace"), {}),
    "rs": (dps.RandomStopping(epsilon=2.0, gamma=0.3), {}),
    "rs-improved": (dps.RandomStopping(epsilon=2.0, gamma=0.2, eta=0.0), {}),
    "rs-exponential": (dps.RandomStopping(epsilon=2.0, gamma=0.3, noise="exponential"), {}),
    "combined-gem": (dps.CombinedGEM(epsilon=2.0), {}),
    "top-share": (dps.TopShare(epsilon=2.0), {}),
    "krr": (dps.RandomizedResponse(epsilon=1.0), {}),
}


def assert_law(picks, law):
    probabilities = np.array([float(p) for p in law])
    order = np.argsort(probabilities)
    counts, expected = np.bincount(picks, minlength=len(law))[order], len(picks) * probabilities[order]
    assert (counts[expected == 0] == 0).all()
    rare = np.searchsorted(np.cumsum(expected), 10) + 1
    counts, expected = np.r_[counts[:rare].sum(), counts[rare:]], np.r_[expected[:rare].sum(), expected[rare:]]
    assert expected.size > 1
    assert chisquare(counts, expected, sum_check=False).pvalue > FALSE_ALARM


@pytest.mark.parametrize(("mechanism", "settings"), SAMPLERS.values(), ids=SAMPLERS)
def test_exact_picks_have_the_exact_law(forced, mechanism, settings):
    scores, sensitivities = np.array([0.0, 1.0, 1.0, -0.5]), np.array([0.5, 1.0, 0.0, 2.0])
    sensitivities = sensitivities if isinstance(mechanism, dps.RandomStopping) else np.maximum(0.25, sensitivities)
    batch, randomness = np.broadcast_to(scores, (2000, 4)), dps.Randomness.seeded(6)
    picks, handed_over = forced(mechanism, batch, sensitivities, randomness=randomness, **settings)
    assert handed_over > 800
    assert_law(picks, TWINS[type(mechanism)](scores, sensitivities, **asdict(mechanism)))


def test_exact_scans_have_the_exact_law(forced):
    mechanism = dps.NoisyMax(epsilon=2.0)
    scores = np.r_[np.arange(8) / 4, np.repeat(-4.0, 56)]  # 16 are visited, the other 48 scanned
    randomness = dps.Randomness.seeded(11)
    picks, handed_over = forced(mechanism, np.broadcast_to(scores, (1000, 64)), 1.0, randomness=randomness)
    assert handed_over == 1000
    assert_law(picks, reference.noisy_max(scores, 1.0, epsilon=2.0))


# --- Scores made to mislead floats ------------------------------------------------------------------------

ULP = 2.0**-52
MISLEADING = {
    "one unit apart": ([1.0, 1.0 + ULP, 1.0 + 2 * ULP], 1.0),
    "one unit apart, and so sensitive": ([1.0, 1.0 + ULP, 1.0 + 2 * ULP], ULP),
    "subnormal": ([0.0, 5e-324, 1e-310], 1.0),
    "subnormal beside minute sensitivities": ([0.0, 5e-324, 1e-310, 1e-90], [2.0**-300, 1.0, 2.0**-299, 2.0**-300]),
    "far from zero": ([1e15, 1e15 + 0.125, 1e15 - 0.25], 0.5),
    "far from zero, unequal": ([1e15, 1e15 + 0.125, 1e15 - 0.25], [0.5, 1e-3, 2.0]),
    "beyond the smallest float": ([0.0, -800.0, -1600.0], [1.0, 1.0, 1.0]),
    "twelve decades": ([0.0, 1e6, -1e-6], [1e-6, 1e6, 1.0]),
}


@every_mechanism
@pytest.mark.parametrize(("scores", "sensitivities"), MISLEADING.values(), ids=MISLEADING)
def test_exact_picks_are_those_of_the_kernels_for_misleading_scores(forced, mechanism, scores, sensitivities):
    batch = np.broadcast_to(scores, (exact_rows(mechanism, 10), len(scores)))
    assert_same_picks(forced, mechanism, batch, sensitivities)


@every_mechanism
def test_equal_candidates_are_picked_equally_often_however_large_their_score(mechanism):
    for score, rows in ((1e15 + 0.125, 20_000), (5e-324, 20_000), (-(2.0**299), 500)):
        seed = dps.Randomness.seeded(7)
        picks = mechanism.select(np.full((rows, 5), score), 0.3, randomness=seed)
        assert_law(picks, [0.2] * 5)


NORMALISED = [name for name in PRIVATE if not name.startswith(("rs", "krr", "top-share", "uniform", "combined"))]


@pytest.mark.parametrize("name", NORMALISED)
@pytest.mark.parametrize("gap", [800.0, 1e6, 1e60])
def test_a_candidate_out_of_reach_is_never_picked(name, gap):
    mechanism, seed = PRIVATE[name], dps.Randomness.seeded(8)
    epsilon = mechanism.guarantee.epsilon
    scores = np.array([0.0, -4 * gap / epsilon, 0.0])  # 4/ε, since GEM divides by twice the sensitivity
    picks = mechanism.select(np.broadcast_to(scores, (50_000, 3)), 1.0, randomness=seed)
    assert np.bincount(picks, minlength=3)[1] == 0


@pytest.mark.parametrize(
    "name", [name for name in PRIVATE if not name.startswith(("rs", "krr", "top-share", "uniform"))]
)
def test_a_public_score_below_another_is_never_picked(name):
    """The other mechanisms can pick every candidate, whatever its sensitivity."""
    mechanism = PRIVATE[name]
    scores = np.array([1.0, np.nextafter(1.0, 0.0), 1.0])
    seed = dps.Randomness.seeded(9)
    picks = mechanism.select(np.broadcast_to(scores, (20_000, 3)), 0.0, randomness=seed)
    assert_law(picks, [0.5, 0, 0.5])


def run_within(seconds, script):
    """Run a script in a process that can be killed, since arithmetic on a billion digits cannot be interrupted."""
    command = [sys.executable, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=seconds).stdout.split()  # noqa: S603


def test_a_coin_against_an_enormous_gap_is_decided_at_once():
    script = (
        "from fractions import Fraction; from itertools import repeat\n"
        "from dpselect.exact.partial_uniform import PartialUniform, bernoulli_exp\n"
        "print(bernoulli_exp(PartialUniform(1, 72, repeat(0)), Fraction(10**300)))"
    )
    assert run_within(120, script) == ["False"]


ENORMOUS = {
    "offsets": "dps.NoisyMax(epsilon=2.0).select(batch([0.0, 1e18, -1e12]), 1.0, offsets=[0.0, -1e18, 0.0])",
}


@pytest.mark.parametrize("call", ENORMOUS.values(), ids=ENORMOUS)
def test_a_row_with_an_enormous_gap_that_floats_do_not_trust_is_decided_at_once(call):
    script = (
        "import numpy as np, dpselect as dps\n"
        "batch = lambda scores: np.broadcast_to(scores, (60, 3))\n"
        f"print(*{call})"
    )
    assert set(run_within(300, script)) == {"0", "1"}


def test_candidates_that_tie_only_after_enormous_tilts_cancel_are_picked_equally_often():
    mechanism = dps.NoisyMax(epsilon=2.0, tilt=2.0**170, beta=0.05)
    t = reference.tilt_slope(mechanism.tilt, 2, 0.05, 2.0)
    sensitivities = [0.827455489077999, 1.8188464568021556e-11]
    wide, narrow = reference.fractions(sensitivities)
    parts, rest = [], reference.fractions([t])[0] * (wide - narrow)
    for _ in range(4):
        parts.append(float(rest))
        rest -= reference.fractions(parts[-1:])[0]
    assert rest == 0
    scores, offsets = [parts[0], -parts[1]], [parts[2], -parts[3]]
    assert len(set(reference.tilted(scores, sensitivities, t, offsets))) == 1
    batch = np.broadcast_to(scores, (200, 2))
    picks = mechanism.select(batch, sensitivities, offsets=offsets, randomness=dps.Randomness.seeded(4))
    assert_law(picks, [0.5, 0.5])


# --- Two ways to the same pick ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "size"), [(4000, 5), (1000, 63), (1000, 64), (1000, 65), (150, 500), (40, 2000)], ids=str
)
def test_gaps_on_demand_and_gaps_from_the_hull_give_the_same_picks(rows, size):
    rng = np.random.default_rng(size)
    scores = np.round(rng.normal(size=(rows, size)), rng.integers(1, 9))
    sensitivities = rng.choice([rng.uniform(0.05, 2.0), 0.5, 1.0], (1, size)) * rng.uniform(0.5, 1, (1, size))
    for epsilon in (0.1, 1.0, 8.0, 64.0):
        for tilt in (1.0, -1.0, 4.0, -4.0):
            mechanism = dps.GEM(epsilon=epsilon, tilt=tilt)
            seed = dps.Randomness.seeded(10)
            lazy = mechanism.select(scores, sensitivities, randomness=seed)
            full = mechanism.select(scores, sensitivities, offsets=np.zeros(size), randomness=seed)
            assert np.array_equal(lazy, full)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12))
def test_the_sign_of_a_rank_correlation_is_exact(pairs):
    x, y = (np.array(column, dtype=float) / 7 for column in zip(*pairs, strict=True))
    ranks = (centred_ranks(column, np.array([0, len(pairs)])) for column in (x, y))
    assert np.sign(rank_covariances(*ranks, np.array([0]))) == reference.spearman_sign(x, y)


# --- Bad scores, found inside the kernel ------------------------------------------------------------------

BAD = [np.nan, np.inf, -np.inf, 2.0**301, -np.nan]


@every_mechanism
@pytest.mark.parametrize("rows", [6, 6000])
def test_one_bad_score_in_a_batch_refuses_all_of_it(mechanism, rows):
    for bad in BAD:
        scores = np.random.default_rng(0).normal(size=(rows, 4))
        scores[3, 2] = bad
        bounds = np.arange(0, 4 * rows + 1, 4)
        forms = [
            (scores, 1.0),
            (scores, np.zeros(4)),
            ((scores.ravel(), bounds), 0.5),
            (pa.LargeListArray.from_arrays(bounds, scores.ravel()), 0.5),
        ]
        for form, sensitivities in forms:
            with pytest.raises(ValueError, match=r"^scores must be finite"):
                mechanism.select(form, sensitivities)
