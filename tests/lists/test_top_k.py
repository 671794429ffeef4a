"""Private lists: picks without replacement, their streams, their guarantee, and what is refused."""

import itertools
import json
import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
from variants import REGISTERED, candidates, every_private_mechanism

import dpselect as dps
from dpselect import accounting
from dpselect.budget import BudgetError, Ledger

KEY = bytes(range(32))


def ragged(sizes, seed=0):
    rng = np.random.default_rng(seed)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    return (rng.normal(size=bounds[-1]), bounds), (rng.uniform(0.1, 1.0, bounds[-1]), bounds)


@every_private_mechanism
def test_a_list_has_different_candidates_and_does_not_depend_on_the_other_rows(mechanism):
    scores, sensitivities, public = candidates(mechanism, (6, 7))
    top = dps.TopK(mechanism, count=4)
    units = [f"user {i}" for i in range(6)]
    lists = top.select(scores, sensitivities, randomness=dps.Randomness.keyed(KEY, units), **public)
    assert lists.shape == (6, 4)
    assert all(len(set(row)) == 4 for row in lists.tolist())
    for row in (5, 2):
        alone = top.select(
            scores[[row]],
            sensitivities[[row]],
            randomness=dps.Randomness.keyed(KEY, [units[row]]),
            **{name: numbers[[row]] for name, numbers in public.items()},
        )
        assert alone[0].tolist() == lists[row].tolist()


@pytest.mark.parametrize(
    "mechanism", [dps.GEM(1.0), dps.HeterogeneousNoisyMax(1.0), dps.NoisyMax(1.0, noise="gumbel")]
)
def test_lists_do_not_depend_on_threads_or_on_the_form_of_the_rows(mechanism, monkeypatch):
    scores, sensitivities, _ = candidates(mechanism, (40, 9), seed=3)
    top = dps.TopK(mechanism, count=5)
    seed = dps.Randomness.seeded(4)
    whole = top.select(scores, sensitivities[0], randomness=seed)
    monkeypatch.setenv("DPSELECT_THREADS", "3")
    assert (top.select(scores, sensitivities[0], randomness=seed) == whole).all()
    own = np.broadcast_to(sensitivities[0], scores.shape)
    assert (top.select(scores, own, randomness=seed) == whole).all()
    bounds = np.arange(41) * 9
    flat = (scores.reshape(-1), bounds), (own.reshape(-1).copy(), bounds)
    assert (top.select(*flat, randomness=seed) == whole).all()


def test_rounds_and_lengths_and_single_picks_have_streams_of_their_own():
    same = np.zeros((2000, 8))
    mechanism, seed = dps.NoisyMax(1.0), dps.Randomness.seeded(1)
    ten, five = (dps.TopK(mechanism, count=n).select(same, 1.0, randomness=seed) for n in (8, 5))
    single = mechanism.select(same, 1.0, randomness=seed)
    # With equal scores all streams are uniform: independent ones agree in 1/8 of the rows, 250 ± 15.
    for first, second in itertools.combinations([ten[:, 0], five[:, 0], single, ten[:, 1]], 2):
        assert (first == second).mean() < 0.25


def test_short_rows_are_refused_or_padded():
    scores, sensitivities = ragged([5, 2, 3])
    with pytest.raises(
        ValueError, match=r"count must be at most the number of candidates, 2 in row 1, got 3; pass"
    ):
        dps.TopK(dps.GEM(1.0), count=3).select(scores, sensitivities)
    with pytest.raises(ValueError, match=r"count must be at most the number of candidates, 4, got 5; pass"):
        dps.TopK(dps.GEM(1.0), count=5).select(np.zeros((2, 4)), 1.0)
    padded = dps.TopK(dps.GEM(1.0), count=4, short_rows="pad").select(scores, sensitivities)
    assert [sorted(row[row >= 0].tolist()) for row in padded[1:]] == [[0, 1], [0, 1, 2]]
    assert (padded[1, 2:] == -1).all()
    assert padded[2, 3] == -1
    assert padded[0].min() >= 0
    alone = dps.TopK(dps.GEM(1.0), count=4).select(np.zeros((1, 5)), 1.0, randomness=dps.Randomness.seeded(2))
    pads = dps.TopK(dps.GEM(1.0), count=4, short_rows="pad")
    assert (pads.select(np.zeros((1, 5)), 1.0, randomness=dps.Randomness.seeded(2)) == alone).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": 0}, "count must be ≥ 1, got 0"),
        ({"count": 2.0}, "count must be a whole number, got float"),
        ({"count": True}, "count must be a whole number, got bool"),
        ({"short_rows": "drop"}, "short_rows must be one of 'refuse', 'pad'"),
        (
            {"mechanism": dps.GEM},
            r"mechanism must be a Mechanism such as dps.GEM\(1.0\), got the class GEM: write GEM\(ep",
        ),
        ({"mechanism": 1.0}, "mechanism must be a Mechanism such as .*, got float"),
    ],
)
def test_bad_parameters_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        dps.TopK(**{"mechanism": dps.GEM(1.0)} | arguments)


def test_bad_scores_and_offsets_are_refused_without_showing_scores():
    for mechanism in (dps.GEM(1.0), dps.RandomStopping(1.0), dps.HeterogeneousNoisyMax(1.0)):
        with pytest.raises(ValueError, match="scores must") as caught:
            dps.TopK(mechanism, count=2).select([0.123456, math.nan, 1.0], 1.0)
        assert "0.1234" not in str(caught.value)
    with pytest.raises(ValueError, match="offsets must not be given"):
        dps.TopK(dps.RandomStopping(1.0), count=2).select([0.0, 1.0], 1.0, offsets=0.0)
    with pytest.raises(ValueError, match="units must have one identifier for each row"):
        dps.TopK(dps.GEM(1.0), count=2).select([[0.0, 1.0]], 1.0, randomness=dps.Randomness.keyed(KEY, [1, 2]))


def test_lists_come_in_the_form_of_the_scores():
    top = dps.TopK(dps.GEM(1e6), count=2)
    assert top.select({"a": 0.0, "b": 2.0, "c": 1.0}, 1.0) == ["b", "c"]
    assert json.dumps(top.select([0.0, 2.0, 1.0], 1.0).tolist()) == "[1, 2]"
    assert top.select(pd.Series([0.0, 2.0, 1.0], index=["a", "b", "c"]), 1.0) == ["b", "c"]
    padded = dps.TopK(dps.GEM(1e6), count=3, short_rows="pad").select({"a": 0.0, "b": 2.0}, 1.0)
    assert padded == ["b", "a", None]
    assert top.select(np.zeros((2, 3, 4)), 1.0).shape == (2, 3, 2)


@every_private_mechanism
def test_the_guarantee_adds_up_over_the_picks(mechanism):
    top, pick = dps.TopK(mechanism, count=3), mechanism.guarantee
    assert top.guarantee.epsilon == pytest.approx(3 * pick.epsilon)
    assert top.guarantee.rho == pytest.approx(3 * pick.rho)
    assert top.guarantee.neighbours == pick.neighbours
    assert top.label.startswith("top 3 by ")


def losses(top, pair, sensitivities, public):
    """Return the privacy losses of all lists of two neighbours."""
    lists = np.array(list(itertools.permutations(range(pair.shape[1]), top.count)))
    first, second = (top.probability(lists, np.tile(row, (len(lists), 1)), sensitivities, **public) for row in pair)
    possible = (first > 0) | (second > 0)
    with np.errstate(divide="ignore"):
        return np.log(first[possible]) - np.log(second[possible])


@pytest.mark.parametrize("name", REGISTERED)
def test_no_list_loses_more_than_the_guarantee(name):
    mechanism = REGISTERED[name]
    rng = np.random.default_rng(11)
    for _ in range(8):
        sensitivities = rng.integers(0, 32, 4) / 16
        scores = rng.integers(-32, 32, 4) / 16
        pair = np.stack([scores, scores + rng.choice([-1, 1], 4) * sensitivities])
        top = dps.TopK(mechanism, count=2)
        assert np.abs(losses(top, pair, sensitivities, {})).max() <= top.guarantee.epsilon * (1 + 1e-9)


def test_an_audit_reaches_most_of_the_guarantee():
    # Three candidates, one much ahead: both rounds lose nearly ε when the two rivals move against each other.
    top = dps.TopK(dps.HeterogeneousNoisyMax(1.0), count=2)
    pair = np.array([[0.0, -40.0, -80.0], [-1.0, -39.0, -79.0]])
    assert np.abs(losses(top, pair, 1.0, {})).max() > 0.9 * top.guarantee.epsilon


@pytest.mark.parametrize("noise", ["exponential", "gumbel", "laplace"])
def test_a_total_with_a_delta_is_that_of_the_accountant(noise):
    top = dps.TopK(dps.NoisyMax(0.2, noise=noise), count=40)
    expected = accounting.total_guarantee([top.mechanism.guarantee] * 40, delta=1e-6).epsilon
    assert top.total(1e-6).epsilon == expected < top.guarantee.epsilon
    assert top.total(0.0).epsilon == top.guarantee.epsilon


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_within_finds_the_largest_budget_that_fits(delta):
    gumbel = partial(dps.NoisyMax, noise="gumbel", tilt=-1.0)
    top = dps.TopK.within(2.0, delta=delta, mechanism=gumbel, count=12, short_rows="pad")
    assert (top.count, top.short_rows, top.mechanism.tilt) == (12, "pad", -1.0)
    assert top.total(delta).epsilon <= 2.0
    more = dps.TopK(dps.NoisyMax(top.mechanism.epsilon * 1.002, noise="gumbel"), count=12)
    assert more.total(delta).epsilon > 2.0
    assert dps.TopK.within(1.0, count=3).mechanism == dps.HeterogeneousNoisyMax(1.0 / 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mechanism": dps.GEM(1.0)}, "mechanism must make a mechanism from ε, as the class GEM does; got GEM"),
        ({"mechanism": lambda _: dps.GEM(1.0)}, "mechanism must make a mechanism that costs the ε it is given"),
        ({"mechanism": 3}, "mechanism must make a mechanism from ε, as the class GEM does; got int"),
        ({"mechanism": dps.Uniform}, "mechanism must make a mechanism from ε alone"),
        ({"mechanism": lambda _: 3}, r"mechanism\(ε\) must be a Mechanism such as .*, got int"),
        ({"count": 0}, "count must be ≥ 1"),
        ({"total_epsilon": -1.0}, "total_epsilon must be positive"),
        ({"delta": 1.0}, "delta must be < 1"),
    ],
)
def test_bad_totals_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        dps.TopK.within(**{"total_epsilon": 2.0} | arguments)


def test_absurd_lengths_are_refused_before_any_work():
    with pytest.raises(ValueError, match=r"count is too large for 1 rows: at most 2\^32 picks"):
        dps.TopK(dps.GEM(1.0), 2**40, short_rows="pad").select([0.0, 1.0], 1.0)


def test_lists_are_refused_where_one_pick_is_meant():
    top = dps.TopK(dps.GEM(1.0), 2)
    with pytest.raises(ValueError, match="mechanism must make single picks, got a TopK: pass its mechanism"):
        dps.TopK(top, 2)
    for call in (top.pmf, lambda *row: dps.expected_error(top, *row)):
        with pytest.raises(ValueError, match=r"a list has no probability for each candidate: use TopK.probability"):
            call([0.0, 1.0], 1.0)


def test_a_list_is_a_mechanism_whose_streams_have_its_name():
    top = dps.TopK(dps.GEM(1.0, tilt=-1.0), short_rows="pad")
    assert isinstance(top, dps.Mechanism)
    assert (top.count, top.least_size, top.takes, dps.GEM(1.0).count) == (10, 1, ("offsets",), None)
    assert dps.TopK(dps.GEM(1.0), 3).least_size == 3
    assert top.law_name == "TopK(GEM(epsilon=1.0, tilt=-1.0), count=10)"


def test_a_ledger_charges_the_whole_list(tmp_path):
    with Ledger.create(tmp_path / "budget.db") as ledger:
        ledger.add_population("readers", epsilon=2.0)
        top = dps.TopK.within(1.5, count=5)
        ledger.charge("readers", "lists", top, fingerprint="0" * 32)
        assert ledger.statement("readers").epsilon_spent == pytest.approx(1.5)
        with pytest.raises(BudgetError):
            ledger.charge("readers", "more lists", top, fingerprint="1" * 32)


def test_a_list_is_a_value():
    assert dps.TopK(dps.GEM(1.0), 5) == dps.TopK(dps.GEM(1.0), count=5)
    assert repr(dps.TopK(dps.GEM(1.0), 5)).startswith("TopK(mechanism=GEM(epsilon=1.0")


@pytest.mark.parametrize("short_rows", ["refuse", "pad"])
def test_a_list_never_holds_a_candidate_of_weight_zero(short_rows):
    top = dps.TopK(dps.TopShare(1.0), count=3, short_rows=short_rows)
    with pytest.raises(ValueError, match="weights must be positive for at least 3 candidates"):
        top.select([1.0, 2.0, 3.0, 4.0], weights=[1.0, 1.0, 0.0, 0.0])
    assert sorted(top.select([1.0, 2.0, 3.0, 4.0], weights=[1.0, 1.0, 0.0, 1.0])) == [0, 1, 3]
