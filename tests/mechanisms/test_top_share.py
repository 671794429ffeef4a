"""Top share: its law, that nothing is better on one person's row, and its integers."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from routes import in_plain_python

import dpselect as dps
from dpselect import kernels
from experiments.scenarios import SCENARIOS

ODD = np.array([0.3, 0.0, 2.0, 0.01, 5.0, 0.0, 1.0])
"""Weights of which two are zero."""

# --- The law ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [None, 1e-12, 0.01, 1 / 7, 0.3, 0.999, 1.0])
@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, 8.0, 40.0])
@pytest.mark.parametrize("weights", [None, np.ones(7), ODD, ODD * 2.0**-290, np.exp(np.arange(-30.0, 5.0, 5.0))])
def test_probabilities_are_those_of_the_slow_twin(epsilon, share, weights):
    public = {} if weights is None else {"weights": weights}
    for seed in range(4):
        scores = np.random.default_rng(seed).integers(-3, 3, 7) / 2
        found = dps.TopShare(epsilon, share=share).pmf(scores, **public)
        exact = reference.top_share(scores, 0.0, epsilon=epsilon, share=share, **public)
        np.testing.assert_allclose(found, [float(p) for p in exact], rtol=1e-12)


def test_the_scenarios_of_the_paper_have_the_errors_that_an_independent_program_found():
    expected = {1: "1.21 .27 .037", 2: "1.21 .27 .037", 3: "1.21 .27 .037", 4: "2.77 .72 .079", 5: "23.8 5.4 .68"}
    expected |= {6: "1.06 .34 .035", 7: "16.2 3.8 .47", 8: "45.5 12.1 1.3"}
    for number, errors in expected.items():
        scores = SCENARIOS[number]().first(60).scores
        for epsilon, error in zip((1, 4, 8), errors.split(), strict=True):
            found = dps.expected_error(dps.TopShare(epsilon), scores).mean()
            assert round(found, len(error.partition(".")[2])) == float(error), (number, epsilon)


def test_randomised_response_is_a_share_of_one_candidate():
    scores = np.random.default_rng(0).normal(size=(5, 16))
    found = dps.TopShare(1.3, share=1 / 16).pmf(scores)
    np.testing.assert_allclose(found, dps.RandomizedResponse(1.3).pmf(scores), rtol=1e-12)
    np.testing.assert_allclose(dps.TopShare(9.0).pmf(scores), dps.RandomizedResponse(9.0).pmf(scores), rtol=1e-12)


def test_the_loss_is_epsilon_for_any_change_of_the_row():
    rows = np.array(list(itertools.product([0.0, 1.0, 1e300 / 2**700], repeat=4)))
    for epsilon, share, weights in itertools.product([0.5, 6.0], [None, 0.01, 0.35], [None, [3.0, 1.0, 1e-9, 0.4]]):
        public = {} if weights is None else {"weights": weights}
        laws = np.log(dps.TopShare(epsilon, share=share).pmf(rows, **public))
        losses = laws.max(axis=0) - laws.min(axis=0)
        assert losses.max() <= epsilon * (1 + 1e-12)
        if share != 0.01 or weights is not None:  # a candidate fits into the share
            assert losses.max() == pytest.approx(epsilon, rel=1e-9)


def test_all_weights_are_the_share_or_nobody_is_better():
    scores = np.random.default_rng(1).normal(size=7)
    np.testing.assert_allclose(dps.TopShare(2.0, share=1.0).pmf(scores, weights=ODD), ODD / ODD.sum(), rtol=1e-6)
    np.testing.assert_allclose(dps.TopShare(2.0).pmf(np.zeros(7), weights=ODD), ODD / ODD.sum(), rtol=1e-6)
    assert dps.TopShare(2.0).pmf([5.0]) == 1
    assert dps.TopShare(2.0).select([5.0], weights=3.0) == 0


@pytest.mark.parametrize("epsilon", [2.0**-300, 2.0**300])
def test_extreme_budgets_are_answered(epsilon):
    scores = np.arange(20.0) % 9
    law = dps.TopShare(epsilon).pmf(scores)
    picks = dps.TopShare(epsilon).select(np.tile(scores, (500, 1)), randomness=dps.Randomness.seeded(1))
    if epsilon > 1:
        assert law[[8, 17]].tolist() == [0.5, 0.5]
        assert set(picks.tolist()) == {8, 17}
    else:
        np.testing.assert_allclose(law, 1 / 20, rtol=1e-12)
        assert len(set(picks.tolist())) == 20


# --- Nothing is better ------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.3, 1.5, 5.0])
@pytest.mark.parametrize("name", dps.MECHANISMS)
def test_each_mechanism_is_dominated_on_one_persons_rows(name, epsilon):
    widths = np.array([1.0, 0.5, 2.0])  # all rows of the box are neighbours
    inner = np.random.default_rng(2).random((200, 3))
    rows = np.concatenate([np.array(list(itertools.product([0.0, 0.5, 1.0], repeat=3))), inner]) * widths
    law = dps.MECHANISMS[name](epsilon=epsilon).pmf(rows, widths)
    least = law.min(axis=0)
    assert (law <= math.exp(epsilon) * least * (1 + 1e-9)).all()
    share = (1 / least.sum() - 1) / math.expm1(epsilon)
    top = dps.TopShare(epsilon, share=share if share > 1e-9 else 1.0).pmf(rows, weights=least)
    at_least = rows[:, None, :] >= rows[:, :, None]  # one level set for each score of a row
    gain = (at_least * (top - law)[:, None, :]).sum(axis=2)
    assert gain.min() >= -1e-7
    reads_scores = np.ptp(law, axis=0).max() > 0
    assert (gain.max() > 1e-3) == (reads_scores and name not in {"krr", "top-share"})


# --- Integers ---------------------------------------------------------------------------------------------


def masses(weights):
    """Return what each candidate has of the table, and the integers it should have."""
    urn = kernels.weighted_draws.new_urn(weights.size)
    sizes = kernels.weighted_draws.fill_urn(weights, urn)
    found = np.zeros(weights.size, dtype=object)
    for column in range(sizes.columns):
        found[urn.owners[column]] += int(urn.cuts[column])
        if urn.others[column] >= 0:
            found[urn.others[column]] += int(sizes.height - urn.cuts[column])
    return found.tolist(), urn.weights.tolist(), sizes


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from([0.0, 1e-12, 0.1, 1 / 3, 1.0, 7.0, 1e6]), min_size=2, max_size=40))
def test_a_table_holds_each_weight_exactly(numbers):
    weights = np.array([*numbers, 2.0, 3.0])
    found, integers, sizes = masses(weights)
    assert integers == [math.ceil(Fraction(w / weights.max()) * 2**28) for w in weights.tolist()]
    assert found == integers
    assert sizes.total == sum(integers) <= sizes.columns * sizes.height < sum(integers) + sizes.columns


def test_equal_weights_in_any_unit_pick_as_no_weights_do():
    scores = np.random.default_rng(3).integers(0, 5, (40, 30)) / 4
    for mechanism in (dps.TopShare(1.0), dps.TopShare(7.0, share=0.02)):
        picks = [
            mechanism.select(scores, weights=weights, randomness=dps.Randomness.seeded(4))
            for weights in (None, 1.0, np.full(30, 2.0**-300), np.full((40, 30), 77.7))
        ]
        assert all((picks[0] == other).all() for other in picks)


def test_own_weights_pick_as_shared_ones_do_and_zero_weights_are_never_picked():
    scores = np.random.default_rng(5).normal(size=(3000, 7))
    shared, own = (
        dps.TopShare(3.0).select(scores, weights=weights, randomness=dps.Randomness.seeded(6))
        for weights in (ODD, np.tile(ODD, (3000, 1)))
    )
    assert (shared == own).all()
    assert set(shared.tolist()) <= set(np.flatnonzero(ODD).tolist())


@pytest.mark.parametrize(("epsilon", "share"), [(16.0, None), (3.0, 1e-3), (2.0, 0.4)])
@pytest.mark.parametrize("weighted", [False, True])
def test_exact_picks_are_those_of_the_kernels_with_weights_and_small_shares(forced, epsilon, share, weighted):
    source = np.random.default_rng(7)
    scores = np.concatenate([source.normal(size=(6, 300)), source.integers(0, 4, (6, 300)).astype(float)])
    public = {"weights": source.random(300) ** 8} if weighted else {}
    mechanism, seed = dps.TopShare(epsilon, share=share), dps.Randomness.seeded(8)
    ordinary = mechanism.select(scores, **public, randomness=seed)
    exact, handed_over = forced(mechanism, scores, None, **public, randomness=seed)
    assert exact.tolist() == ordinary.tolist()
    assert handed_over > 0
    with in_plain_python():
        assert mechanism.select(scores, **public, randomness=seed).tolist() == ordinary.tolist()


def test_a_share_of_few_among_many_is_picked_as_often_as_its_law_says():
    scores = np.random.default_rng(9).permutation(700) / 8.0
    weights = np.where(scores > 80, 0.5, 1.0)
    mechanism = dps.TopShare(9.0, share=0.004)
    picks = mechanism.select(np.tile(scores, (40_000, 1)), weights=weights, randomness=dps.Randomness.seeded(10))
    law = mechanism.pmf(scores, weights=weights)
    best = np.argsort(-scores)[:8]
    counts, expected = np.bincount(picks, minlength=700)[best], 40_000 * law[best]
    assert (np.abs(counts - expected) <= 5.5 * np.sqrt(expected)).all()  # false alarms: 8 · 4e-8
    assert abs(counts.sum() - expected.sum()) <= 5.5 * math.sqrt(40_000 - expected.sum())


# --- Bad input --------------------------------------------------------------------------------------------

BAD_WEIGHTS = {
    "negative": ([1.0, -1.0, 2.0], "weights must be ≥ 0"),
    "all zero": ([0.0, 0.0, 0.0], "weights must be positive for at least one candidate of each row"),
    "a row of zeros": ([[0.0, 1.0, 2.0], [0.0, 0.0, 0.0]], "weights must be positive for at least one candidate"),
    "not a number": ([1.0, np.nan, 2.0], "weights must be finite"),
    "too few": ([1.0, 2.0], "weights must have one number for each of the 3 candidates, got 2"),
    "too small": ([1.0, 2.0**-301, 2.0], "weights must be zero or at least"),
    "zero": (0.0, "weights must be positive"),
}


@pytest.mark.parametrize(("weights", "message"), BAD_WEIGHTS.values(), ids=BAD_WEIGHTS)
def test_bad_weights_are_refused_by_name(weights, message):
    for call in (dps.TopShare(1.0).select, dps.TopShare(1.0).pmf):
        with pytest.raises(ValueError, match=message):
            call([[0.0, 1.0, 2.0]] * 2, weights=weights)


def test_ragged_weights_are_checked_row_by_row():
    scores, bounds = np.arange(5.0), np.array([0, 2, 5])
    assert dps.TopShare(1.0).select((scores, bounds), weights=[1.0, 0.0, 1.0, 1.0, 0.0]).shape == (2,)
    with pytest.raises(ValueError, match="weights must be positive"):
        dps.TopShare(1.0).select((scores, bounds), weights=[0.0, 0.0, 1.0, 1.0, 0.0])


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1, math.nan, "half", True])
def test_a_share_outside_its_range_is_refused(share):
    with pytest.raises(ValueError, match="share must be"):
        dps.TopShare(1.0, share=share)


def test_scores_that_are_not_numbers_are_refused():
    for score in (math.nan, math.inf, 2.0**301):
        with pytest.raises(ValueError, match="scores must be finite"):
            dps.TopShare(1.0).select([0.0, score])


def test_sensitivities_are_asked_for_by_name_where_they_are_needed_and_ignored_elsewhere():
    for mechanism in (dps.GEM(1.0), dps.HeterogeneousNoisyMax(1.0), dps.TopK(dps.NoisyMax(1.0), 2)):
        with pytest.raises(ValueError, match=f"sensitivities must be given: {type(mechanism).__name__} needs them"):
            mechanism.select([0.0, 1.0, 2.0])
    for mechanism in (dps.TopShare(1.0), dps.RandomizedResponse(1.0), dps.Uniform()):
        assert mechanism.pmf([0.0, 1.0, 2.0], 5.0).tolist() == mechanism.pmf([0.0, 1.0, 2.0]).tolist()
        assert dps.expected_error(mechanism, [0.0, 1.0]) == dps.expected_error(mechanism, [0.0, 1.0], 9.0)
    with pytest.raises(ValueError, match="weights must not be given: GEM takes no weights"):
        dps.GEM(1.0).select([0.0, 1.0], 1.0, weights=1.0)


def test_lists_of_several_picks_take_weights():
    top = dps.TopK(dps.TopShare(60.0), 3)
    assert top.select(
        [0.0, 3.0, 2.0, 1.0], weights=[1.0, 1.0, 0.0, 1.0], randomness=dps.Randomness.seeded(1)
    ).tolist() == [1, 3, 0]
    total = sum(
        float(top.probability(order, [0.0, 3.0, 2.0, 1.0], weights=[1.0, 1.0, 0.0, 2.0]))
        for order in itertools.permutations(range(4), 3)
    )
    assert total == pytest.approx(1.0, abs=1e-12)
