"""Many picks: other libraries' accountants against exact compositions."""

import math
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from dp_accounting import LaplaceDpEvent, NoOpDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from promises import APPROXIMATE, GUMBEL, MONOTONE, PURE
from scipy.special import gammaln
from variants import PRIVATE, UNSAFE, every_private_mechanism, laws, neighbours

import dpselect as dps
from dpselect import accounting
from dpselect.guarantees import SAME_DIRECTION

DELTA = 1e-6
REPEATED = [(1, 1.0), (2, 1.0), (5, 2.0), (10, 0.1), (30, 0.5), (100, 0.1), (1000, 0.02)]


def pure(epsilon):
    return dps.NoisyMax(epsilon=epsilon).guarantee


def gumbel(epsilon):
    return dps.NoisyMax(epsilon=epsilon, noise="gumbel").guarantee


def hockey_stick(first, second, loss):
    return np.maximum(first - math.exp(loss) * second, 0).sum()


def repeated_bit(chances, times):
    """Return, for each of two coins, the law of the number of heads: all that a sequence of them tells apart."""
    heads = np.arange(times + 1)
    ways = gammaln(times + 1) - gammaln(heads + 1) - gammaln(times - heads + 1)
    return [np.exp(ways + heads * math.log(p) + (times - heads) * math.log1p(-p)) for p in chances]


def smallest_epsilon(first, second, delta):
    """Return the smallest ε at which δ is kept in both directions, by bisection."""
    low, high = 0.0, 1e4
    for _ in range(80):
        middle = (low + high) / 2
        with np.errstate(divide="ignore", over="ignore"):
            kept = all(
                np.maximum(p - np.exp(np.minimum(middle + np.log(q), 700)), 0).sum() <= delta
                for p, q in ((first, second), (second, first))
            )
        low, high = (low, middle) if kept else (middle, high)
    return high


def exact_epsilon_of_randomized_response(epsilon, times, delta=DELTA):
    truth = 1 / (1 + math.exp(-epsilon))
    return smallest_epsilon(*repeated_bit((truth, 1 - truth), times), delta)


def exact_epsilon_of_two_gumbel_candidates(epsilon, times, lead, delta=DELTA):
    chances = 1 / (1 + math.exp(-lead)), 1 / (1 + math.exp(epsilon - lead))
    return smallest_epsilon(*repeated_bit(chances, times), delta)


# --- Curves -----------------------------------------------------------------------------------------------


@every_private_mechanism
def test_distributions_dominate_the_exact_laws_on_neighbours(mechanism):
    promise = mechanism.guarantee
    kinds = ["pure"] if promise.bounded_range is None else ["pure", "bounded-range"]
    distributions = [accounting.to_pld(promise, kind, interval=0.01) for kind in kinds]

    @settings(max_examples=40)
    @given(neighbours(one_direction=promise.neighbours == SAME_DIRECTION), st.floats(-2, 2))
    def holds(drawn, loss):
        delta = hockey_stick(*laws(mechanism, *drawn), loss)
        assert all(delta <= each.get_delta_for_epsilon(loss) + 1e-9 for each in distributions)

    holds()


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0])
def test_two_candidates_with_gumbel_noise_reach_every_point_of_the_bounded_range_curve(epsilon):
    mechanism = dps.NoisyMax(epsilon=epsilon, noise="gumbel")
    distribution = accounting.to_pld(mechanism.guarantee, "bounded-range", interval=epsilon / 200)
    scores = np.zeros((4001, 2))
    scores[:, 0] = np.linspace(-8, 8, 4001) * 2 / epsilon
    first, second = mechanism.pmf(scores, 1.0), mechanism.pmf(scores + np.array([-1.0, 1.0]), 1.0)
    for loss in np.linspace(-0.9, 0.9, 7) * epsilon:
        reached = np.maximum(first - math.exp(loss) * second, 0).sum(axis=-1).max()
        assert reached == pytest.approx(distribution.get_delta_for_epsilon(loss), rel=1e-3)


@pytest.mark.parametrize(("times", "epsilon"), REPEATED)
def test_pure_distributions_compose_to_randomized_response_exactly(times, epsilon):
    composed = accounting.to_pld(pure(epsilon), "pure", interval=epsilon / 100).self_compose(times)
    truth = 1 / (1 + math.exp(-epsilon))
    first, second = repeated_bit((truth, 1 - truth), times)
    for loss in np.linspace(0, times * epsilon, 9):
        exact = hockey_stick(first, second, loss)
        assert composed.get_delta_for_epsilon(loss) == pytest.approx(exact, rel=1e-6, abs=1e-12)


@settings(max_examples=60)
@given(st.lists(st.floats(0.02, 0.98), min_size=3, max_size=3), st.floats(-1.5, 1.5))
def test_a_second_pick_chosen_by_the_first_is_covered(places, loss):
    """The adaptive case: how far the leader leads in the second pick depends on the first."""
    epsilon = 1.0
    tops = [epsilon * place for place in places]
    pairs = [((math.exp(epsilon) - math.exp(top)) / math.expm1(epsilon), top) for top in tops]
    first, second = [], []
    for outcome, (chance, top) in enumerate([(pairs[0][0], tops[0]), (1 - pairs[0][0], tops[0] - epsilon)]):
        then, after = pairs[1 + outcome]
        for other, drop in ((then, after), (1 - then, after - epsilon)):
            first.append(chance * other)
            second.append(chance * other * math.exp(-top - drop))
    assert sum(second) == pytest.approx(1)
    twice = accounting.to_pld(gumbel(epsilon), "bounded-range", interval=1e-3).self_compose(2)
    assert hockey_stick(np.array(first), np.array(second), loss) <= twice.get_delta_for_epsilon(loss) + 1e-9


@pytest.mark.parametrize("epsilon", [1e-80, 1e-9, 50.0, 2000.0])
def test_extreme_losses_are_no_trouble(epsilon):
    for guarantee, kind in ((pure(epsilon), "pure"), (gumbel(epsilon), "bounded-range")):
        distribution = accounting.to_pld(guarantee, kind, interval=epsilon / 50)
        assert distribution.get_epsilon_for_delta(0.0) <= epsilon * (1 + 1e-6)
        assert distribution.get_delta_for_epsilon(0.0) == pytest.approx(
            math.tanh(epsilon / (2 if kind == "pure" else 4)), rel=1e-6
        )


# --- Events -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("times", "epsilon"), REPEATED)
def test_pure_events_compose_to_randomized_response(times, epsilon):
    event = accounting.to_event(pure(epsilon), "pure")
    accountant = PLDAccountant(value_discretization_interval=epsilon / 100).compose(event, times)
    exact = exact_epsilon_of_randomized_response(epsilon, times)
    assert accountant.get_epsilon(DELTA) == pytest.approx(exact, rel=1e-6)


def test_a_laplace_event_would_understate_what_randomized_response_loses():
    laplace = PLDAccountant().compose(LaplaceDpEvent(1 / 0.5), 30).get_epsilon(DELTA)
    bit = dps.RandomizedResponse(epsilon=0.5)
    chances = bit.pmf([[1.0, 0.0], [0.0, 1.0]], 1.0)[:, 0]
    exact = smallest_epsilon(*repeated_bit(chances, 30), DELTA)
    assert laplace < 0.97 * exact
    assert accounting.total_guarantee([bit.guarantee] * 30, delta=DELTA).epsilon >= exact * (1 - 1e-9)


def test_concentrated_events_have_the_concentrated_loss():
    event = accounting.to_event(gumbel(0.5), "zcdp")
    assert event.rho == pytest.approx(0.5**2 / 8)
    assert accounting.to_event(pure(0.5), "zcdp").rho == pytest.approx(0.5 * math.tanh(0.25))
    epsilon = RdpAccountant().compose(event, 100).get_epsilon(DELTA)
    rho = 100 * 0.5**2 / 8
    assert epsilon <= rho + 2 * math.sqrt(rho * math.log(1 / DELTA))  # the textbook's conversion


@pytest.mark.parametrize("kind", ["pure", "zcdp"])
def test_a_pick_that_ignores_the_scores_is_no_event(kind):
    assert accounting.to_event(dps.Uniform().guarantee, kind) == NoOpDpEvent()
    assert accounting.to_pld(dps.Uniform().guarantee, "pure").get_delta_for_epsilon(0.0) == 0


EXPORTS = {
    "event": lambda guarantee: accounting.to_event(guarantee, "pure"),
    "zcdp-event": lambda guarantee: accounting.to_event(guarantee, "zcdp"),
    "distribution": lambda guarantee: accounting.to_pld(guarantee, "pure"),
    "total": lambda guarantee: accounting.total_guarantee([PURE, guarantee], delta=DELTA),
}
every_export = pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)


@every_export
@pytest.mark.parametrize("mechanism", UNSAFE.values(), ids=UNSAFE)
def test_what_is_not_private_is_not_exported(export, mechanism):
    with pytest.raises(ValueError, match="must be a private one") as caught:
        export(mechanism.guarantee)
    assert mechanism.guarantee.theorem in str(caught.value)


@every_export
def test_what_has_a_delta_is_not_exported(export):
    with pytest.raises(ValueError, match="δ > 0"):
        export(APPROXIMATE)


@every_export
def test_a_mechanism_is_not_a_guarantee(export):
    with pytest.raises(ValueError, match="Guarantee objects"):
        export(dps.GEM(epsilon=1.0))


@pytest.mark.parametrize("name", [name for name, m in PRIVATE.items() if m.guarantee.bounded_range is None])
def test_bounded_range_is_refused_where_it_is_not_proven(name):
    with pytest.raises(ValueError, match="no bounded range is proven"):
        accounting.to_pld(PRIVATE[name].guarantee, "bounded-range")


def test_bounded_ranges_do_not_add_up():
    with pytest.raises(ValueError, match="no bounded range is proven"):
        accounting.to_pld(dps.Guarantee.compose(GUMBEL, GUMBEL), "bounded-range")


@pytest.mark.parametrize("convert", [accounting.to_event, accounting.to_pld])
def test_unknown_kinds_are_refused(convert):
    with pytest.raises(ValueError, match="kind must be"):
        convert(PURE, "gaussian")


# --- Totals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("times", "epsilon"), REPEATED)
def test_totals_of_pure_guarantees_are_tight(times, epsilon):
    total = accounting.total_guarantee([pure(epsilon)] * times, delta=DELTA)
    exact = exact_epsilon_of_randomized_response(epsilon, times)
    assert exact * (1 - 1e-9) <= total.epsilon <= exact * (1.001 if total.delta == 0 else 1 + 1e-6)
    assert total.rho == pytest.approx(times * epsilon * math.tanh(epsilon / 2))
    assert total.delta in (0, DELTA)


@pytest.mark.parametrize(("times", "epsilon"), REPEATED)
def test_totals_with_gumbel_noise_are_smaller_and_cover_the_worst_pair_of_candidates(times, epsilon):
    total = accounting.total_guarantee([gumbel(epsilon)] * times, delta=DELTA)
    assert total.epsilon <= accounting.total_guarantee([pure(epsilon)] * times, delta=DELTA).epsilon
    worst = max(exact_epsilon_of_two_gumbel_candidates(epsilon, times, lead) for lead in np.linspace(-14, 8, 45))
    assert worst * (1 - 1e-9) <= total.epsilon <= worst * 1.25


@pytest.mark.parametrize(
    ("make", "times", "way", "delta"),
    [
        (pure, 2, "the losses of 2 parts add up", 0),
        (gumbel, 10, "10 parts.* privacy loss distributions", DELTA),
        (gumbel, 1000, "1000 parts.* Rényi DP", DELTA),
    ],
)
def test_totals_say_which_bound_they_rest_on(make, times, way, delta):
    total = accounting.total_guarantee([make(0.5)] * times, delta=DELTA)
    assert re.search(way, total.theorem)
    assert total.delta == delta


def test_different_guarantees_are_composed_together():
    parts = [pure(0.1)] * 40 + [gumbel(0.2)] * 40 + [dps.Uniform().guarantee] * 5
    total = accounting.total_guarantee(parts, delta=DELTA)
    alone = [accounting.total_guarantee(each, delta=DELTA) for each in (parts[:40], parts[40:80])]
    assert max(each.epsilon for each in alone) < total.epsilon < sum(each.epsilon for each in alone)
    assert total.rho == pytest.approx(40 * 0.1 * math.tanh(0.05) + 40 * 0.04 / 8)
    shuffled = [parts[index] for index in np.random.default_rng(0).permutation(len(parts))]
    assert accounting.total_guarantee(shuffled, delta=DELTA).epsilon == pytest.approx(total.epsilon)


def test_a_tiny_part_beside_a_large_one_costs_next_to_nothing():
    total = accounting.total_guarantee([pure(0.5)] * 20 + [pure(1e-7)] * 3, delta=DELTA)
    assert total.epsilon == pytest.approx(exact_epsilon_of_randomized_response(0.5, 20), rel=2e-3)


def test_without_delta_losses_add_up():
    assert accounting.total_guarantee([PURE] * 3, delta=0) == dps.Guarantee.compose(PURE, PURE, PURE)
    nothing = accounting.total_guarantee([dps.Uniform().guarantee] * 3, delta=DELTA)
    assert (nothing.epsilon, nothing.delta) == (0, 0)


def test_a_very_small_delta_is_left_to_closed_forms():
    total = accounting.total_guarantee([pure(0.05)] * 1000, delta=1e-14)
    assert "Rényi" in total.theorem
    assert exact_epsilon_of_randomized_response(0.05, 1000, 1e-14) <= total.epsilon < 50


def test_a_billion_picks_are_left_to_closed_forms():
    found = accounting.epsilon_per_pick(1.0, delta=DELTA, picks=10**9, noise="exponential")
    rho = (math.sqrt(math.log(1 / DELTA) + 1) - math.sqrt(math.log(1 / DELTA))) ** 2  # ρ + 2√(ρ log 1/δ) = 1
    assert math.sqrt(2 * rho / 10**9) * 0.999 < found < 1.5 * math.sqrt(2 * rho / 10**9)


def test_totals_hold_for_the_narrowest_neighbours():
    total = accounting.total_guarantee([MONOTONE] * 50 + [PURE] * 50, delta=DELTA)
    assert total.neighbours == SAME_DIRECTION
    with pytest.raises(ValueError, match="same neighbours"):
        accounting.total_guarantee([PURE, PURE.restated(neighbours="one user more or less")], delta=DELTA)


@pytest.mark.parametrize("delta", [-1e-9, 1, 1.5, math.nan, "small"])
def test_impossible_deltas_are_refused(delta):
    with pytest.raises(ValueError, match="delta"):
        accounting.total_guarantee([PURE], delta=delta)
    with pytest.raises(ValueError, match="delta"):
        accounting.epsilon_per_pick(1.0, delta=delta, picks=2, noise="gumbel")


def test_nothing_to_compose_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        accounting.total_guarantee([], delta=DELTA)


# --- Budgets and noises -----------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
@pytest.mark.parametrize("picks", [1, 3, 40, 700])
def test_budgets_use_up_the_total_and_no_more(noise, picks):
    epsilon = accounting.epsilon_per_pick(2.0, delta=DELTA, picks=picks, noise=noise)
    for factor, fits in ((1.0, True), (1.001, False)):
        pick = dps.NoisyMax(epsilon=factor * epsilon, noise=noise).guarantee
        assert (accounting.total_guarantee([pick] * picks, delta=DELTA).epsilon <= 2.0) == fits


def test_without_delta_the_budget_is_an_equal_share():
    for picks in (1, 3, 10, 49):
        share = accounting.epsilon_per_pick(1.0, delta=0, picks=picks, noise="gumbel")
        assert share == pytest.approx(1 / picks, rel=1e-15)
        assert dps.Guarantee.compose(*[gumbel(share)] * picks).epsilon <= 1.0


@pytest.mark.parametrize("picks", [0, -1, 1.5, True])
def test_picks_are_counted_in_whole_numbers(picks):
    with pytest.raises(ValueError, match="picks"):
        accounting.epsilon_per_pick(1.0, delta=DELTA, picks=picks, noise="gumbel")


SCORES = np.random.default_rng(3).normal(size=(5, 20))


@pytest.mark.parametrize("make", [dps.NoisyMax, partial(dps.GEM, tilt=0.0)], ids=["noisy-max", "gem"])
def test_exponential_noise_is_better_for_one_pick_and_gumbel_noise_for_many(make):
    one, few, many = accounting.compare_noises(
        SCORES, 0.02, total_epsilon=2.0, delta=DELTA, picks=[1, 10, 500], make=make
    )
    assert (one.better, many.better) == ("exponential", "gumbel")
    assert one.gumbel_epsilon / one.exponential_epsilon == pytest.approx(1, abs=0.01)
    assert 1.2 < few.gumbel_epsilon / few.exponential_epsilon < many.gumbel_epsilon / many.exponential_epsilon
    assert 1.7 < many.gumbel_epsilon / many.exponential_epsilon < 2.05
    law = make(epsilon=many.gumbel_epsilon, noise="gumbel").pmf(SCORES, 0.02)
    regrets = SCORES.max(axis=1, keepdims=True) - SCORES
    assert many.gumbel_error == pytest.approx((law * regrets**2).sum(axis=1).mean())


def test_budgets_are_those_of_the_bounds_whatever_the_scores():
    [row] = accounting.compare_noises([0.0, 1.0], 1.0, total_epsilon=1.0, delta=DELTA, picks=[30], power=1)
    for noise, epsilon in (("exponential", row.exponential_epsilon), ("gumbel", row.gumbel_epsilon)):
        assert epsilon == accounting.epsilon_per_pick(1.0, delta=DELTA, picks=30, noise=noise)
    assert replace(row, gumbel_error=1.0, exponential_error=2.0).better == "gumbel"


# --- What the page says -----------------------------------------------------------------------------------

PAGE = (Path(__file__).parent.parent / "docs" / "theory" / "accounting.md").read_text("utf-8")


def table_below(heading):
    """Return the rows of numbers of the first table below a heading whose first column counts picks."""
    rows = PAGE.partition(heading)[2].partition("| picks |")[2].split("\n\n")[0].splitlines()[2:]
    return [[float(cell) for cell in row.strip("| ").split("|")] for row in rows]


def test_the_page_has_the_totals_right():
    rows = table_below("## Three bounds")
    assert [row[0] for row in rows] == [10, 100, 1000]
    for picks, simple, exponential, with_gumbel in rows:
        for shown, make, delta in ((simple, pure, 0), (exponential, pure, DELTA), (with_gumbel, gumbel, DELTA)):
            total = accounting.total_guarantee([make(0.1)] * int(picks), delta=delta)
            assert shown == round(total.epsilon, 2)


def test_the_page_compares_the_noises_right():
    rows = table_below("## Gumbel or exponential")
    assert [row[0] for row in rows] == [1, 3, 10, 30, 100, 1000]
    found = accounting.compare_noises(
        np.linspace(0, 1, 101),
        0.001,
        total_epsilon=2.0,
        delta=DELTA,
        picks=[int(row[0]) for row in rows],
        power=1,
    )
    for shown, row in zip(rows, found, strict=True):
        assert shown[1:3] == pytest.approx([row.exponential_epsilon, row.gumbel_epsilon], abs=1e-4)
        assert shown[3:] == pytest.approx([row.exponential_error, row.gumbel_error], rel=0.05)
    assert [row.better for row in found] == ["exponential"] * 2 + ["gumbel"] * 4


def test_the_code_of_the_page_runs():
    [block] = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    namespace = {}
    exec(compile(block, "accounting.md", "exec"), namespace)  # noqa: S102 - our own text
    assert namespace["simple"].epsilon == pytest.approx(10)
    assert namespace["total"].epsilon == pytest.approx(2.42, abs=0.005)
