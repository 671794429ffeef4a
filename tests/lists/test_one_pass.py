"""Lists in one pass, and lists that a kernel peels: the law of peeling, exactly, whatever the form of a call."""

from itertools import permutations

import numpy as np
import pytest
from forcing import assert_same_picks
from routes import in_plain_python
from scipy.stats import chisquare

import dpselect as dps
from dpselect.laws.base import Law
from dpselect.laws.composition import Composition
from dpselect.laws.heterogeneous import HeterogeneousLaw
from dpselect.lists import one_pass, peeling

FALSE_ALARM = 1e-6
"""The false-alarm rate of each chi-square test. Seeds are fixed, so a test that passes once always passes."""

SCORES, WIDTH = np.array([0.5, -1.0, 2.0, 0.0]), 0.5

GUMBEL = {
    "noisy max": (dps.NoisyMax(1.0, noise="gumbel"), 0.5),
    "monotone": (dps.NoisyMax(0.5, noise="gumbel", monotone=True), 0.5),
    "tilted": (dps.NoisyMax(0.8, noise="gumbel", tilt=-0.7), 0.4),
    "gem": (dps.GEM(1.6, noise="gumbel"), 0.4),
    "standardized": (dps.StandardizedNoisyMax(1.0, noise="gumbel", tilt=0.5), 0.5),
    "heterogeneous": (dps.HeterogeneousNoisyMax(0.9, noise="gumbel", tilt=0.3), 0.45),
}
"""Mechanisms, and the b of their weights exp(b q/Δ) for equal Δ. GEM compares pairs, of sensitivity 2Δ."""

every_gumbel = pytest.mark.parametrize(("mechanism", "b"), GUMBEL.values(), ids=GUMBEL)
peeled_by_a_kernel = pytest.mark.parametrize("noise", ["exponential", "gumbel"])


def needs(mechanism):
    """Return public numbers that are the same for all candidates."""
    return dict.fromkeys(mechanism.needs, 0.25)


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


@pytest.fixture
def no_peeling(monkeypatch):
    """Fail where a row is peeled."""

    def refuse(*_):
        raise AssertionError("a row is peeled")

    monkeypatch.setattr(peeling, "_peel_in_kernel", refuse)
    monkeypatch.setattr(peeling, "_peel_in_rounds", refuse)


# --- The law ----------------------------------------------------------------------------------------------


@every_gumbel
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_the_law_of_peeling_is_sampling_without_replacement(mechanism, b, count):
    lists = np.array(list(permutations(range(4), count)))
    found = dps.TopK(mechanism, count).probability(
        lists, np.tile(SCORES, (len(lists), 1)), WIDTH, **needs(mechanism)
    )
    weights = np.exp(b * SCORES / WIDTH)
    assert found == pytest.approx([product(weights, picks) for picks in lists], rel=1e-12)


@every_gumbel
@pytest.mark.usefixtures("no_peeling")
def test_lists_in_one_pass_have_that_law(mechanism, b):
    top = dps.TopK(mechanism, 3)
    scores = np.broadcast_to(SCORES, (20_000, 4))
    lists = top.select(scores, WIDTH, randomness=dps.Randomness.seeded(1), **needs(mechanism))
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


@peeled_by_a_kernel
def test_lists_that_a_kernel_peels_have_the_law_of_peeling(noise):
    widths = np.array([0.25, 2.0, 1.0, 0.5])
    top = dps.TopK(dps.NoisyMax(2.0, noise=noise), 2)
    lists = top.select(np.broadcast_to(SCORES, (20_000, 4)), widths, randomness=dps.Randomness.seeded(5))
    kinds = np.array(list(permutations(range(4), 2)))
    expected = top.probability(kinds, np.tile(SCORES, (12, 1)), widths) * len(lists)
    counts = [(lists == kind).all(axis=1).sum() for kind in kinds]
    assert chisquare(counts, expected, sum_check=False).pvalue > FALSE_ALARM


# --- Fractions, and plain Python --------------------------------------------------------------------------

SHAPES = [(20, 5), (6, 70), (2, 300)]


def rows(shape, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(-64, 64, shape) / 32, rng.integers(1, 5, shape) / 4


@every_gumbel
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_exact_lists_are_those_of_one_pass(forced, mechanism, b, shape):  # noqa: ARG001
    assert assert_same_picks(forced, dps.TopK(mechanism, 5), rows(shape)[0], WIDTH, **needs(mechanism)) > 0


@peeled_by_a_kernel
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_exact_lists_are_those_of_a_kernel_that_peels(forced, noise, shape):
    scores, widths = rows(shape)
    assert assert_same_picks(forced, dps.TopK(dps.NoisyMax(3.0, noise=noise), 5), scores, widths) > 0


@peeled_by_a_kernel
@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_lists_are_the_same_in_plain_python(noise, equal, shape):
    scores, widths = rows(shape)
    top, seed = dps.TopK(dps.NoisyMax(4.0, noise=noise), 5), dps.Randomness.seeded(6)
    with in_plain_python():
        plain = top.select(scores, WIDTH if equal else widths, randomness=seed)
    assert np.array_equal(top.select(scores, WIDTH if equal else widths, randomness=seed), plain)


# --- Which way a row goes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mechanism",
    [
        dps.NoisyMax(20.0),
        dps.NoisyMax(20.0, noise="gumbel"),
        dps.NoisyMax(20.0, tilt=0.5),
        dps.GEM(20.0),
        dps.HeterogeneousNoisyMax(20.0),
    ],
    ids=lambda mechanism: mechanism.label,
)
def test_a_kernel_peels_as_rounds_do(monkeypatch, mechanism):
    scores, widths = rows((60, 130), 7)
    widths[::3, 20:] = 0.0  # after the sensitive ones, the rest is public
    widths[::4] = 0.5
    top, seed = dps.TopK(mechanism, 30), dps.Randomness.seeded(7)
    in_kernel = top.select(scores, widths, randomness=seed)
    for law in (Composition, HeterogeneousLaw):
        monkeypatch.setattr(law, "list_filler", Law.list_filler)
    assert np.array_equal(top.select(scores, widths, randomness=seed), in_kernel)


EQUALS = [dps.NoisyMax(1.0, tilt=0.5), dps.GEM(1.0), dps.StandardizedNoisyMax(1.0), dps.HeterogeneousNoisyMax(1.0)]


@pytest.mark.parametrize("mechanism", EQUALS, ids=lambda mechanism: mechanism.label)
def test_rows_of_equal_sensitivities_are_peeled_by_a_kernel_and_others_in_rounds(monkeypatch, mechanism):
    seen = []

    def seeing(batch, *rest):
        seen.append(batch.rows)
        return in_rounds(batch, *rest)

    in_rounds = peeling._peel_in_rounds
    monkeypatch.setattr(peeling, "_peel_in_rounds", seeing)
    scores, widths = rows((9, 30), 8)
    widths[:4] = 0.5
    public = {} if not mechanism.needs else needs(mechanism)
    dps.TopK(mechanism, 3).select(scores, widths, **public)
    assert seen == [9 if public else 5]


def test_a_kernel_leaves_no_row_of_positive_sensitivity_to_rounds(monkeypatch):
    monkeypatch.setattr(peeling, "_peel_in_rounds", None)
    scores, widths = rows((50, 30), 8)
    assert dps.TopK(dps.NoisyMax(1.0), 30).select(scores, widths).shape == (50, 30)


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
def test_rows_that_go_different_ways_do_not_change_each_other(monkeypatch, threads):
    monkeypatch.setenv("DPSELECT_THREADS", threads)
    top, key = dps.TopK(dps.NoisyMax(2.0, noise="gumbel"), 4), bytes(range(32))
    scores, widths = rows((40, 9), 10)
    widths[::2] = 0.5
    widths[::8] = 0.0
    together = top.select(scores, widths, randomness=dps.Randomness.keyed(key, np.arange(40)))
    for row in range(40):
        alone = top.select(scores[row], widths[row], randomness=dps.Randomness.keyed(key, row))
        assert np.array_equal(alone, together[row])


@every_gumbel
def test_one_pass_is_for_rows_that_differ_in_scores_only(mechanism, b):
    scores, widths = rows((6, 5), 11)
    widths[:4] = 0.5
    widths[3] = 0.0
    public = np.zeros((6, 5))
    public[1:3] = 2.0
    public[2, 4] = 1.0
    batch = mechanism.read(scores, widths, **dict.fromkeys(mechanism.takes, public))
    lists = np.full((6, 2), -1)
    others = one_pass.draw_in_one_pass(batch, b, dps.Randomness.seeded(1), lists)
    assert others.tolist() == [2, 3, 4, 5]
    assert (lists[:2] >= 0).all()
    assert (lists[2:] == -1).all()


def test_public_scores_are_listed_from_the_best_on():
    lists = dps.TopK(dps.NoisyMax(1.0, noise="gumbel"), 4).select(np.tile(SCORES, (5, 1)), 0.0)
    assert (lists == [2, 0, 3, 1]).all()


def test_one_pass_has_streams_of_its_own(monkeypatch):
    top, seed = dps.TopK(dps.NoisyMax(0.1, noise="gumbel"), 1), dps.Randomness.seeded(12)
    scores = np.zeros((2000, 8))
    passed = top.select(scores, 1.0, randomness=seed)
    monkeypatch.setattr(Composition, "weight_budget", None)
    peeled = top.select(scores, 1.0, randomness=seed)
    same = (passed == peeled).mean()
    assert abs(same - 1 / 8) < 5 * np.sqrt(7 / 64 / 2000)  # false-alarm rate 6e-7


@pytest.mark.parametrize("widths", [1.0, [1.0, 2.0, 3.0]], ids=["one pass", "peeled"])
@peeled_by_a_kernel
def test_short_rows_are_padded_and_bad_scores_refused(noise, widths):
    mechanism = dps.NoisyMax(1.0, noise=noise)
    lists = dps.TopK(mechanism, 5, short_rows="pad").select([[0.0, 1.0, 2.0]], widths)
    assert sorted(lists[0]) == [-1, -1, 0, 1, 2]
    assert (lists[0, 3:] == -1).all()
    for bad in (np.nan, np.inf, 1e200):
        with pytest.raises(ValueError, match="scores must be finite"):
            dps.TopK(mechanism, 2).select([[0.0, 1.0, 2.0], [0.0, bad, 1.0]], widths)
