"""Heterogeneous noisy max: neutral offsets, what is kept, privacy and its relatives."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import neutral_offsets

import dpselect as dps
from dpselect import kernels
from dpselect.auditing import audit
from dpselect.laws import heterogeneous

SOLVED = 1e-6
"""The largest |k·p_a − 1| at equal scores."""


def kept_candidates(sensitivities, low, high):
    """Return which candidates of one row are kept."""
    return heterogeneous.kept_candidates(np.asarray(sensitivities), np.array([0, len(sensitivities)]), low, high)


def departure(mechanism, sensitivities):
    """Return max_a |k·p_a − 1| at equal scores."""
    size = np.shape(sensitivities)[-1]
    return np.abs(size * mechanism.pmf(np.zeros(np.shape(sensitivities)), sensitivities) - 1).max()


def rows(size, seed):
    """Return rows of sensitivities of many shapes."""
    rng = np.random.default_rng(seed)
    two = np.where(np.arange(size) < 2, 1.0, 0.0)
    return {
        "uniform": rng.uniform(0, 1, size),
        "lognormal": np.exp(rng.normal(size=size)),
        "heavy": np.exp(3 * rng.normal(size=size)),
        "two values": np.where(rng.random(size) < 0.5, 0.01, 1.0),
        "one insensitive": np.r_[0.0, np.ones(size - 1)],
        "two sensitive": two,
        "one sensitive": np.r_[1.0, np.zeros(size - 1)],
        "almost equal": 1 + 1e-3 * rng.random(size),
        "equal up to rounding": np.r_[1.0, 1.0, 1.0 - 2.0**-53, np.ones(size - 3)],
    }


# --- Neutral offsets ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [3, 4, 5, 8, 9, 10, 13, 17, 30, 60])
def test_equal_scores_give_equal_probabilities(size):
    mechanism = dps.HeterogeneousNoisyMax(epsilon=0.7)
    for name, sensitivities in rows(size, size).items():
        assert departure(mechanism, sensitivities) <= SOLVED, name


@pytest.mark.parametrize("size", [100, 500, 3000])
def test_equal_scores_of_many_candidates_give_equal_probabilities(size):
    for name, sensitivities in rows(size, size).items():
        assert departure(dps.HeterogeneousNoisyMax(epsilon=2.0), sensitivities) <= 1e-6, name


@settings(max_examples=60)
@given(st.lists(st.floats(0, 1), min_size=3, max_size=24), st.sampled_from([1e-3, 1.0, 50.0]))
def test_any_sensitivities_have_neutral_offsets(sensitivities, epsilon):
    kept = [0.0 if s < 2.0**-300 else s for s in sensitivities]
    if max(kept) > 0:
        assert departure(dps.HeterogeneousNoisyMax(epsilon=epsilon), kept) <= 1e-6


def test_rows_with_sensitivities_of_their_own_are_as_neutral_as_shared_ones():
    sensitivities = np.stack(list(rows(40, 1).values()))
    assert departure(dps.HeterogeneousNoisyMax(epsilon=1.0), sensitivities) <= 1e-6


@pytest.mark.parametrize("size", [3, 16, 17, 30, 500])
@np.errstate(all="ignore")
def test_the_neutral_offsets_of_a_row_do_not_depend_on_the_rows_beside_it(size):
    """To the last bit: for a key, a unit's pick must not depend on its batch."""
    together = np.array(list(rows(size, 5).values()))
    found = kernels.neutral.neutral_offsets(together)
    for place, row in enumerate(together):
        assert (kernels.neutral.neutral_offsets(row[None]) == found[place]).all()
        assert (kernels.neutral.neutral_offsets(together[place:]) == found[place:]).all()


@np.errstate(all="ignore")
def test_the_neutral_offsets_of_numpy_and_of_the_kernel_agree_to_twelve_digits():
    room = kernels.neutral.new_room()
    for size in (3, 16, 17, 40):
        for row in rows(size, 6).values():
            offsets = np.empty(size)
            kernels.neutral.fill_neutral(row, kernels.shares.extremes_of(row), room, offsets)
            assert kernels.neutral.neutral_offsets(row[None])[0] == pytest.approx(offsets, abs=1e-12)


def test_the_neutral_offsets_scale_with_the_noise():
    sensitivities = rows(20, 3)["lognormal"]
    one, ten = (neutral_offsets(dps.HeterogeneousNoisyMax(epsilon=e), sensitivities) for e in (1.0, 10.0))
    assert one / 10 == pytest.approx(ten, rel=1e-12)
    assert one.max() == 0


def test_without_neutral_offsets_sensitive_candidates_are_picked_more_often():
    sensitivities = np.array([0.1, 0.5, 1.0, 1.0])
    law = dps.HeterogeneousNoisyMax(epsilon=1.0, neutral=False).pmf(np.zeros(4), sensitivities)
    assert law[0] < law[1] < law[2]


def test_a_pick_depends_on_the_row_alone_and_not_on_how_sensitivities_are_passed():
    """Shared, repeated and single rows have the same offsets, so the same picks."""
    mechanism, rng = dps.HeterogeneousNoisyMax(epsilon=1.0), np.random.default_rng(0)
    scores, sensitivities = rng.normal(size=(50, 30)), rng.uniform(0, 1, 30)
    key = bytes(range(32))
    shared = mechanism.select(scores, sensitivities, randomness=dps.Randomness.keyed(key, range(50)))
    own = mechanism.select(scores, np.tile(sensitivities, (50, 1)), randomness=dps.Randomness.keyed(key, range(50)))
    alone = [
        mechanism.select(row, sensitivities, randomness=dps.Randomness.keyed(key, i))
        for i, row in enumerate(scores)
    ]
    assert shared.tolist() == own.tolist() == [int(pick) for pick in alone]


# --- Relatives ----------------------------------------------------------------------------------------------


def test_with_equal_sensitivities_it_is_noisy_max():
    scores = np.random.default_rng(5).normal(size=(4, 12))
    ours = dps.HeterogeneousNoisyMax(epsilon=1.3).pmf(scores, 0.5)
    assert ours == pytest.approx(dps.NoisyMax(epsilon=1.3).pmf(scores, 0.5), rel=1e-9)


@given(st.floats(0, 5), st.floats(0.01, 3), st.floats(0.01, 3), st.floats(0.1, 8))
def test_of_two_candidates_the_worse_has_half_an_exponential_of_the_gap(gap, first, second, epsilon):
    law = dps.HeterogeneousNoisyMax(epsilon=epsilon).pmf([gap, 0.0], [first, second])
    assert law[1] == pytest.approx(math.exp(-epsilon * gap / (first + second)) / 2, rel=1e-9)


def test_the_single_most_sensitive_candidate_has_the_noise_of_the_second():
    """With Δ = (2, 1, 1), all means are 3/ε: the law is that of noisy max with sensitivity 3/2."""
    scores = [1.0, 0.4, -0.2]
    ours = dps.HeterogeneousNoisyMax(epsilon=1.0).pmf(scores, [2.0, 1.0, 1.0])
    assert ours == pytest.approx(dps.NoisyMax(epsilon=1.0).pmf(scores, 1.5), rel=1e-12)


def test_public_scores_are_compared_directly():
    mechanism = dps.HeterogeneousNoisyMax(epsilon=1.0)
    assert mechanism.pmf([1.0, 2.0, 2.0], 0.0).tolist() == [0.0, 0.5, 0.5]
    assert mechanism.pmf([1.0], [0.3]).tolist() == [1.0]
    assert mechanism.select([1.0, 3.0, 2.0], 0.0) == 1


def test_it_beats_noisy_max_on_average_whatever_the_correlation():
    rng = np.random.default_rng(7)
    sensitivities = rng.uniform(0.1, 1, 40)
    for slope in (-3.0, 0.0, 3.0):
        scores = slope * sensitivities + rng.normal(size=(60, 40))
        ours, theirs = (
            dps.expected_error(make(epsilon=4.0), scores, sensitivities).mean()
            for make in (dps.HeterogeneousNoisyMax, dps.NoisyMax)
        )
        assert ours < theirs


# --- Privacy ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sensitivities", [[1.0, 2.0, 2.0], [0.2, 0.5, 1.0], [0.0, 1.0, 1.0, 3.0]], ids=str)
def test_the_loss_never_exceeds_epsilon(sensitivities):
    mechanism = dps.HeterogeneousNoisyMax(epsilon=1.0)
    assert audit(mechanism, sensitivities, restarts=6, seed=1).loss <= 1 + 1e-9


def test_the_guarantee_is_tight():
    found = audit(dps.HeterogeneousNoisyMax(epsilon=1.0), [0.5, 1.0, 2.0], restarts=12, seed=2)
    assert 0.99 <= found.loss <= 1 + 1e-9


def test_bounded_range_is_not_claimed():
    assert dps.HeterogeneousNoisyMax(epsilon=1.0).guarantee.bounded_range is None


# --- Keep by sensitivity --------------------------------------------------------------------------------------


def test_only_kept_candidates_compete_and_count_for_the_noise():
    scores, sensitivities = np.array([1.0, 5.0, 2.0, 0.0, 3.0]), np.array([0.1, 4.0, 0.2, 0.3, 9.0])
    law = dps.HeterogeneousNoisyMax(epsilon=1.0, keep=(0.0, 0.5)).pmf(scores, sensitivities)
    kept = [0, 2, 3]
    assert law[[1, 4]].tolist() == [0.0, 0.0]
    alone = dps.HeterogeneousNoisyMax(epsilon=1.0).pmf(scores[kept], sensitivities[kept])
    assert law[kept] == pytest.approx(alone, rel=1e-12)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.floats(0, 0.99), st.floats(0.001, 1))
def test_the_kept_lie_between_the_quantiles_and_there_is_always_one(widths, low, part):
    high = min(1.0, low + part)
    if low >= high:
        return
    sensitivities = np.array(widths, dtype=float)
    kept = kept_candidates(sensitivities, low, high)
    assert kept.any()
    least, most = np.quantile(sensitivities, [low, high])
    between = (sensitivities >= least - 1e-6) & (sensitivities <= most + 1e-6)
    if between.any():
        assert (kept == between).all()
    else:
        assert np.unique(sensitivities[kept]).size == 1


def test_rows_of_any_length_are_kept_one_by_one():
    rng = np.random.default_rng(4)
    rows = [rng.integers(0, 6, size) / 2 for size in (1, 7, 2, 30, 1, 12)]
    bounds = np.cumsum([0, *map(len, rows)])
    together = heterogeneous.kept_candidates(np.concatenate(rows), bounds, 0.3, 0.45)
    assert together.tolist() == np.concatenate([kept_candidates(row, 0.3, 0.45) for row in rows]).tolist()


def test_the_whole_range_keeps_everyone():
    sensitivities = np.random.default_rng(0).random(9)
    assert kept_candidates(sensitivities, 0.0, 1.0).all()
    assert kept_candidates(np.array([3.0]), 0.2, 0.3).all()


@pytest.mark.parametrize("form", ["shared", "own", "ragged"])
def test_picks_are_kept_candidates_in_batches_of_any_form(form):
    mechanism, rng = dps.HeterogeneousNoisyMax(epsilon=0.5, keep=(0.5, 1.0)), np.random.default_rng(1)
    scores, own = rng.normal(size=(40, 9)), rng.random((40, 9))
    sensitivities = own if form != "shared" else own[0]
    if form == "ragged":
        bounds = np.arange(41) * 9
        picks = mechanism.select((scores.reshape(-1), bounds), sensitivities.reshape(-1))
        law = mechanism.pmf((scores.reshape(-1), bounds), sensitivities.reshape(-1)).reshape(40, 9)
    else:
        picks, law = mechanism.select(scores, sensitivities), mechanism.pmf(scores, sensitivities)
    for row, pick in enumerate(picks):
        widths = sensitivities if form == "shared" else sensitivities[row]
        assert kept_candidates(widths, 0.5, 1.0)[pick]
        assert ((law[row] > 0) == kept_candidates(widths, 0.5, 1.0)).all()


def test_a_bad_score_is_refused_also_if_its_candidate_is_not_kept():
    mechanism = dps.HeterogeneousNoisyMax(epsilon=1.0, keep=(0.0, 0.5))
    with pytest.raises(ValueError, match=r"^scores must be finite"):
        mechanism.select([0.0, 1.0, math.nan], [0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    ("keep", "rule"),
    [
        ((0.5, 0.5), "low < high"),
        ((0.7, 0.2), "low < high"),
        ((-0.1, 1.0), r"keep\[0\] must"),
        ((0.0, 1.5), r"keep\[1\] must"),
        ((0.1, 0.2, 0.3), "two numbers"),
    ],
)
def test_what_to_keep_must_be_two_rising_quantiles(keep, rule):
    with pytest.raises(ValueError, match=rule):
        dps.HeterogeneousNoisyMax(epsilon=1.0, keep=keep)


# --- One row, one vector of offsets ---------------------------------------------------------------------------


@pytest.mark.parametrize("sensitivities", [[-0.0, 1.0, 0.0], [-0.0, -0.0, -0.0], [0.5, -0.0, 0.25, 1.0]], ids=str)
def test_a_negative_zero_is_zero(sensitivities):
    mechanism, scores = dps.HeterogeneousNoisyMax(epsilon=1.0), np.arange(len(sensitivities)) / 4
    plain = np.abs(sensitivities)
    assert mechanism.pmf(scores, sensitivities).tolist() == mechanism.pmf(scores, plain).tolist()
    rows = np.tile(scores, (40, 1))
    picks = [
        mechanism.select(rows, s, randomness=dps.Randomness.seeded(3)).tolist() for s in (sensitivities, plain)
    ]
    assert picks[0] == picks[1]


@given(st.lists(st.floats(0.01, 1), min_size=4, max_size=20), st.integers(0, 19))
def test_neutral_offsets_do_not_jump(sensitivities, place):
    """A jump would let the last bits of a processor's arithmetic decide a pick."""
    mechanism = dps.HeterogeneousNoisyMax(epsilon=1.0)
    moved = list(sensitivities)
    moved[place % len(moved)] *= 1 + 1e-12
    one, other = (neutral_offsets(mechanism, s) for s in (sensitivities, moved))
    assert np.abs(one - other).max() <= 1e-9
