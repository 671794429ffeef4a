"""Lists are drawn from the law of their rounds, exactly, whatever the form of a call."""

from itertools import permutations

import numpy as np
import pytest
from forcing import assert_same_picks
from routes import in_plain_python
from scipy.stats import chisquare

import dpselect as dps
from dpselect.laws import base
from dpselect.laws.heterogeneous import HeterogeneousLaw

FALSE_ALARM = 1e-6
"""The false-alarm rate of each chi-square test. Seeds are fixed, so a test that passes once always passes."""

SCORES, WIDTH = np.array([0.5, -1.0, 2.0, 0.0]), 0.5

GUMBEL = {
    "noisy max": (dps.NoisyMax(1.0, noise="gumbel"), 0.5),
    "monotone": (dps.NoisyMax(0.5, noise="gumbel", monotone=True), 0.5),
    "tilted": (dps.NoisyMax(0.8, noise="gumbel", tilt=-0.7), 0.4),
    "gem": (dps.GEM(1.6, noise="gumbel"), 0.4),
}
"""Mechanisms, and the b of their weights exp(b q/Δ) for equal Δ. GEM compares pairs, of sensitivity 2Δ."""

every_gumbel = pytest.mark.parametrize(("mechanism", "b"), GUMBEL.values(), ids=GUMBEL)
every_noise = pytest.mark.parametrize("noise", ["exponential", "gumbel"])


def product(weights, picks):
    """Return the probability of a list by sequential sampling without replacement."""
    left, result = weights.sum(), 1.0
    for pick in picks:
        result *= weights[pick] / left
        left -= weights[pick]
    return result


def assert_drawn_from(lists, weights):
    """Compare lists with the product formula."""
    kinds = list(permutations(range(weights.size), lists.shape[1]))
    codes = {kind: code for code, kind in enumerate(kinds)}
    counts = np.bincount([codes[tuple(drawn)] for drawn in lists.tolist()], minlength=len(kinds))
    expected = len(lists) * np.array([product(weights, kind) for kind in kinds])
    likely = expected > 0
    assert (counts[~likely] == 0).all()
    assert expected[likely].min() > 10
    assert chisquare(counts[likely], expected[likely], sum_check=False).pvalue > FALSE_ALARM


# --- The law ----------------------------------------------------------------------------------------------


@every_gumbel
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_with_gumbel_noise_the_law_is_sampling_without_replacement(mechanism, b, count):
    lists = np.array(list(permutations(range(4), count)))
    found = dps.TopK(mechanism, count).probability(lists, np.tile(SCORES, (len(lists), 1)), WIDTH)
    weights = np.exp(b * SCORES / WIDTH)
    assert found == pytest.approx([product(weights, picks) for picks in lists], rel=1e-12)


@every_gumbel
def test_lists_have_that_law(mechanism, b):
    top = dps.TopK(mechanism, 3)
    scores = np.broadcast_to(SCORES, (20_000, 4))
    lists = top.select(scores, WIDTH, randomness=dps.Randomness.seeded(1))
    assert_drawn_from(lists, np.exp(b * SCORES / WIDTH))


def test_exact_lists_have_that_law(forced):
    top = dps.TopK(dps.NoisyMax(1.0, noise="gumbel"), 2)
    batch = np.broadcast_to(SCORES, (2000, 4))
    lists, handed_over = forced(top, batch, 1.0, randomness=dps.Randomness.seeded(2))
    assert handed_over > 1900
    assert_drawn_from(lists, np.exp(SCORES / 2))


def test_a_leader_far_ahead_does_not_blur_the_others():
    scores = np.append(2.0**70, SCORES)
    top = dps.TopK(dps.NoisyMax(1.0, noise="gumbel"), 3)
    lists = top.select(np.broadcast_to(scores, (5000, 5)), 1.0, randomness=dps.Randomness.seeded(3))
    assert (lists[:, 0] == 0).all()
    assert_drawn_from(lists[:, 1:] - 1, np.exp(SCORES / 2))


def test_scores_that_differ_in_their_last_bits_have_that_law():
    scores = 1e15 + np.array([0.0, 0.125, -0.25])
    lists = dps.TopK(dps.NoisyMax(1.0, noise="gumbel"), 3).select(
        np.broadcast_to(scores, (10_000, 3)), 0.125, randomness=dps.Randomness.seeded(4)
    )
    assert_drawn_from(lists, np.exp([0.0, 0.5, -1.0]))


@every_noise
def test_lists_of_own_sensitivities_have_the_probabilities_of_their_rounds(noise):
    widths = np.array([0.25, 2.0, 1.0, 0.5])
    top = dps.TopK(dps.NoisyMax(2.0, noise=noise), 2)
    lists = top.select(np.broadcast_to(SCORES, (20_000, 4)), widths, randomness=dps.Randomness.seeded(5))
    kinds = np.array(list(permutations(range(4), 2)))
    expected = top.probability(kinds, np.tile(SCORES, (12, 1)), widths) * len(lists)
    counts = [(lists == kind).all(axis=1).sum() for kind in kinds]
    assert chisquare(counts, expected, sum_check=False).pvalue > FALSE_ALARM


# --- Neutral offsets --------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["own", "shared", "equal", "soon equal"])
def test_exact_default_lists_are_those_of_kernels_and_of_plain_python(forced, form):
    scores, widths = rows((12, 20))
    soon_equal = np.append([1.0, 0.75], np.full(18, 0.5))  # when one of the first two is taken
    scores[:, :2] += 2
    given = {"own": widths, "shared": widths[0], "equal": WIDTH, "soon equal": soon_equal}[form]
    top, seed = dps.TopK(dps.HeterogeneousNoisyMax(3.0), 5), dps.Randomness.seeded(8)
    assert assert_same_picks(forced, top, scores, given) > 0
    with in_plain_python():
        plain = top.select(scores, given, randomness=seed)
    assert np.array_equal(top.select(scores, given, randomness=seed), plain)


def test_lists_go_on_where_floats_leave_them(monkeypatch):
    top, seed = dps.TopK(dps.HeterogeneousNoisyMax(3.0), 5), dps.Randomness.seeded(9)
    scores, widths = rows((60, 20), 4)
    wanted, left, fill = top.select(scores, widths, randomness=seed), [], HeterogeneousLaw.fill_lists

    def counted(law, batch, first, last, units, error_bound, lists):
        fill(law, batch, first, last, units, error_bound, lists)
        left.extend(lists[lists.min(axis=1) < 0] if len(units.key) > 1 else [])

    monkeypatch.setattr(HeterogeneousLaw, "fill_lists", counted)
    monkeypatch.setattr(base, "FILTER_ERROR", 2.0**-5)
    assert np.array_equal(top.select(scores, widths, randomness=seed), wanted)
    assert 0 < len(left) < 60
    assert any(made[0] >= 0 for made in left)  # the first pick was made, and a later one was not


def test_only_lists_that_keep_offsets_have_another_name():
    kept = dps.TopK(dps.HeterogeneousNoisyMax(1.0), 3).law_name
    assert kept == "TopK(HeterogeneousNoisyMax(epsilon=1.0), count=3, kept offsets)"
    for mechanism in (dps.GEM(1.0), dps.HeterogeneousNoisyMax(1.0, keep=(0.5, 1.0))):
        assert dps.TopK(mechanism, 3).law_name == f"TopK({mechanism.law_name}, count=3)"


# --- Fractions, and plain Python --------------------------------------------------------------------------

SHAPES = [(20, 5), (6, 70), (2, 300)]


def rows(shape, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(-64, 64, shape) / 32, rng.integers(1, 5, shape) / 4


@every_noise
@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_exact_lists_are_those_of_kernels(forced, noise, equal, shape):
    scores, widths = rows(shape)
    top = dps.TopK(dps.NoisyMax(3.0, noise=noise), 5)
    assert assert_same_picks(forced, top, scores, WIDTH if equal else widths) > 0


@every_noise
@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_lists_are_the_same_in_plain_python(noise, equal, shape):
    scores, widths = rows(shape)
    top, seed = dps.TopK(dps.NoisyMax(4.0, noise=noise), 5), dps.Randomness.seeded(6)
    with in_plain_python():
        plain = top.select(scores, WIDTH if equal else widths, randomness=seed)
    assert np.array_equal(top.select(scores, WIDTH if equal else widths, randomness=seed), plain)


# --- The form of a call -----------------------------------------------------------------------------------


def test_the_form_of_equal_sensitivities_does_not_change_a_list():
    top, key = dps.TopK(dps.NoisyMax(2.0, noise="gumbel"), 4), bytes(range(32))
    scores = rows((40, 9), 9)[0]
    names = dps.Randomness.keyed(key, np.arange(40))
    wanted = top.select(scores, 0.75, randomness=names)
    flat, bounds = scores.reshape(-1), np.arange(41) * 9
    for found in (
        top.select(scores, np.full(9, 0.75), randomness=names),
        top.select(scores, np.full((40, 9), 0.75), randomness=names),
        top.select(scores, 0.75, offsets=np.full(9, 3.0), randomness=names),
        top.select((flat, bounds), 0.75, randomness=names),
        top.select((flat, bounds), np.full(flat.size, 0.75), randomness=names),
        top.select(scores[::-1], 0.75, randomness=dps.Randomness.keyed(key, np.arange(40)[::-1]))[::-1],
    ):
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("mechanism", [dps.NoisyMax(2.0, noise="gumbel"), dps.HeterogeneousNoisyMax(2.0)], ids=repr)
def test_rows_of_different_kinds_do_not_change_each_other(monkeypatch, mechanism, threads):
    monkeypatch.setenv("DPSELECT_THREADS", threads)
    top, key = dps.TopK(mechanism, 4), bytes(range(32))
    scores, widths = rows((40, 9), 10)
    widths[::2] = 0.5
    widths[::8] = 0.0
    together = top.select(scores, widths, randomness=dps.Randomness.keyed(key, np.arange(40)))
    for row in range(40):
        alone = top.select(scores[row], widths[row], randomness=dps.Randomness.keyed(key, row))
        assert np.array_equal(alone, together[row])


def test_public_scores_are_listed_from_the_best_on():
    lists = dps.TopK(dps.NoisyMax(1.0, noise="gumbel"), 4).select(np.tile(SCORES, (5, 1)), 0.0)
    assert (lists == [2, 0, 3, 1]).all()


@pytest.mark.parametrize("widths", [1.0, [1.0, 2.0, 3.0]], ids=["equal", "own"])
@pytest.mark.parametrize("name", ["rnm", "em", "heterogeneous-rnm"])
def test_short_rows_are_padded_and_bad_scores_refused(name, widths):
    mechanism = dps.MECHANISMS[name](1.0)
    lists = dps.TopK(mechanism, 5, short_rows="pad").select([[0.0, 1.0, 2.0]], widths)
    assert sorted(lists[0]) == [-1, -1, 0, 1, 2]
    assert (lists[0, 3:] == -1).all()
    for bad in (np.nan, np.inf, 1e200):
        with pytest.raises(ValueError, match="scores must be finite"):
            dps.TopK(mechanism, 2).select([[0.0, 1.0, 2.0], [0.0, bad, 1.0]], widths)
