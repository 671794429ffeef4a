"""Many picks: other libraries' accountants against exact compositions."""

import math
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from compositions import (
    DELTA,
    REPEATED,
    exact_delta_of_bounded_range,
    exact_delta_of_randomized_response,
    exact_epsilon_of_randomized_response,
    exact_epsilon_of_two_exponential_candidates,
    exact_epsilon_of_two_gumbel_candidates,
    exponential,
    gumbel,
    pure,
)
from dp_accounting.pld.privacy_loss_distribution import from_laplace_mechanism
from promises import MONOTONE, PURE

import dpselect as dps
from dpselect import accounting, unsafe
from dpselect.guarantees import SAME_DIRECTION
from experiments.accounting import compare_noises, totals

# --- Totals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("times", "epsilon"), REPEATED)
def test_totals_of_pure_guarantees_are_tight(times, epsilon):
    total = accounting.total_guarantee([pure(epsilon)] * times, delta=DELTA)
    exact = exact_epsilon_of_randomized_response(epsilon, times)
    assert exact * (1 - 1e-9) <= total.epsilon <= exact * (1.001 if total.delta == 0 else 1 + 1e-6)
    assert total.rho == pytest.approx(times * epsilon * math.tanh(epsilon / 2))
    assert total.delta in (0, DELTA)


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9, 1e-11])
@pytest.mark.parametrize(
    ("times", "epsilon"),
    [(20, 0.5), (100, 0.1), (400, 0.05), (400, 0.1), (400, 1.0), (1000, 0.1), (5000, 0.05), (20_000, 0.01)],
)
def test_a_total_never_understates_exact_binomial_sums(times, epsilon, delta):
    total = accounting.total_guarantee([pure(epsilon)] * times, delta=delta)
    assert exact_delta_of_randomized_response(epsilon, times, total.epsilon) <= total.delta


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0])
def test_a_total_with_gumbel_noise_never_understates_the_exact_composition_of_its_curve(epsilon):
    for loss in (-0.05, 0.0, 0.07):  # the closed form, where the curve is known
        curve = (math.exp(epsilon / 2) - math.exp(loss / 2)) ** 2 / math.expm1(epsilon)
        assert exact_delta_of_bounded_range(epsilon, 1, loss) == pytest.approx(curve, rel=1e-12)
    compared = 0
    for times in (2, 5, 10, 20):
        for delta in (1e-3, 1e-6, 1e-9, 1e-11):
            total = accounting.total_guarantee([gumbel(epsilon)] * times, delta=delta)
            if "privacy loss distributions" in total.theorem:
                assert exact_delta_of_bounded_range(epsilon, times, total.epsilon) <= delta
                compared += 1
    assert compared >= 10


def test_a_total_of_very_many_picks_never_understates_exact_binomial_sums():
    for epsilon in (0.0105, 0.012):
        total = accounting.total_guarantee([pure(epsilon)] * 185_501, delta=1e-11)
        assert exact_delta_of_randomized_response(epsilon, 185_501, total.epsilon) <= total.delta


@pytest.mark.parametrize(("times", "epsilon"), REPEATED)
def test_totals_with_exponential_noise_are_those_of_laplace_noise_and_cover_the_worst_pair(times, epsilon):
    total = accounting.total_guarantee([exponential(epsilon)] * times, delta=DELTA)
    noise = from_laplace_mechanism(1 / epsilon, value_discretization_interval=epsilon / 100).self_compose(times)
    assert total.epsilon == pytest.approx(noise.get_epsilon_for_delta(DELTA), rel=1e-3)
    assert total.epsilon <= accounting.total_guarantee([pure(epsilon)] * times, delta=DELTA).epsilon
    worst = max(exact_epsilon_of_two_exponential_candidates(epsilon, times, x) for x in np.linspace(-3, 8, 45))
    assert worst * (1 - 1e-9) <= total.epsilon
    assert total.rho == pytest.approx(times * (epsilon + math.expm1(-epsilon)))


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


def test_a_tiny_part_beside_a_large_one_costs_almost_nothing():
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
    found = accounting.epsilon_per_pick(dps.NoisyMax, 1.0, delta=DELTA, picks=10**9)
    rho = (math.sqrt(math.log(1 / DELTA) + 1) - math.sqrt(math.log(1 / DELTA))) ** 2  # ρ + 2√(ρ log 1/δ) = 1
    assert math.sqrt(2 * rho / 10**9) * 0.999 < found < 1.5 * math.sqrt(2 * rho / 10**9)


def test_totals_hold_for_the_narrowest_neighbours():
    total = accounting.total_guarantee([MONOTONE] * 50 + [PURE] * 50, delta=DELTA)
    assert total.neighbours == SAME_DIRECTION
    with pytest.raises(ValueError, match="same neighbours"):
        accounting.total_guarantee([PURE, PURE.with_neighbours("one user more or less")], delta=DELTA)


@pytest.mark.parametrize("delta", [-1e-9, 1, 1.5, math.nan, "small"])
def test_impossible_deltas_are_refused(delta):
    with pytest.raises(ValueError, match="delta"):
        accounting.total_guarantee([PURE], delta=delta)
    with pytest.raises(ValueError, match="delta"):
        accounting.epsilon_per_pick(dps.GEM, 1.0, delta=delta, picks=2)


def test_nothing_to_compose_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        accounting.total_guarantee([], delta=DELTA)


def test_only_pure_guarantees_are_added_up():
    total = accounting.total_guarantee([PURE] * 500, delta=DELTA)
    assert total.delta > 0
    for part, message in (
        (total, "δ > 0"),
        (unsafe.NaiveHeterogeneousNoisyMax(1.0).guarantee, "must be a private one"),
    ):
        with pytest.raises(ValueError, match=message):
            accounting.total_guarantee([PURE, part], delta=DELTA)


def test_a_budget_is_for_a_mechanism():
    with pytest.raises(ValueError, match=r"mechanism\(ε\) must be a Mechanism such as .*, got int"):
        accounting.epsilon_per_pick(lambda _: 3, 1.0, delta=DELTA, picks=2)
    with pytest.raises(ValueError, match="mechanism must make a mechanism that costs the ε it is given"):
        accounting.epsilon_per_pick(lambda _: dps.GEM(1.0), 1.0, delta=DELTA, picks=2)


# --- Budgets ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
@pytest.mark.parametrize("picks", [1, 3, 40, 700])
def test_budgets_use_up_the_total_and_no_more(noise, picks):
    make = partial(dps.NoisyMax, noise=noise)
    epsilon = accounting.epsilon_per_pick(make, 2.0, delta=DELTA, picks=picks)
    for factor, fits in ((1.0, True), (1.001, False)):
        pick = make(factor * epsilon).guarantee
        assert (accounting.total_guarantee([pick] * picks, delta=DELTA).epsilon <= 2.0) == fits


@pytest.mark.parametrize("picks", [3, 40])
def test_the_budget_of_randomized_response_is_that_of_any_mechanism(picks):
    epsilon = accounting.epsilon_per_pick(dps.RandomizedResponse, 20.0, delta=DELTA, picks=picks)
    assert accounting.total_guarantee([pure(epsilon)] * picks, delta=DELTA).epsilon <= 20.0
    assert accounting.total_guarantee([pure(1.001 * epsilon)] * picks, delta=DELTA).epsilon > 20.0


def test_without_delta_the_budget_is_an_equal_share():
    for picks in (1, 3, 10, 49):
        share = accounting.epsilon_per_pick(partial(dps.NoisyMax, noise="gumbel"), 1.0, delta=0, picks=picks)
        assert share == pytest.approx(1 / picks, rel=1e-15)
        assert dps.Guarantee.compose(*[gumbel(share)] * picks).epsilon <= 1.0


@pytest.mark.parametrize("picks", [0, -1, 1.5, True])
def test_picks_are_counted_in_whole_numbers(picks):
    with pytest.raises(ValueError, match="picks"):
        accounting.epsilon_per_pick(dps.GEM, 1.0, delta=DELTA, picks=picks)


# --- What the page says -----------------------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs" / "theory" / "accounting.md").read_text("utf-8")


def table_below(heading):
    """Return the numbers of the first table below a heading that has a column of picks first."""
    rows = PAGE.partition(heading)[2].partition("| picks |")[2].split("\n\n")[0].splitlines()[2:]
    return [[float(cell) for cell in row.strip("| ").split("|")] for row in rows]


def test_the_page_has_the_totals_right():
    rows = table_below("## Three bounds")
    assert [row[0] for row in rows] == [10, 100, 1000]
    for picks, simple, *others in rows:
        assert simple == round(accounting.total_guarantee([pure(0.1)] * int(picks), delta=0).epsilon, 2)
        for shown, make in zip(others, (pure, exponential, gumbel), strict=True):
            total = accounting.total_guarantee([make(0.1)] * int(picks), delta=DELTA)
            assert shown == round(total.epsilon, 2)


def test_the_page_shows_what_other_libraries_say():
    lines = PAGE.partition("### What it gains")[2].partition("| --- |")[2].split("\n\n")[0].splitlines()[1:]
    rows = [[float(cell) for cell in line.strip("| ").split("|")] for line in lines]
    assert [(row[0], row[1]) for row in rows] == [(e, 10**n) for e in (0.1, 0.5, 1.0) for n in range(5)]
    for epsilon, picks, *shown in rows:
        if picks <= 1000:  # OpenDP takes seconds for more
            found = list(totals(epsilon, int(picks)).values())
            assert shown == [round(total, 2 if total < 99.995 else None) for total in found]


def test_the_page_compares_the_noises_right():
    rows = table_below("## Gumbel or exponential")
    assert [row[0] for row in rows] == [1, 3, 10, 30, 100, 1000]
    better = []
    for shown in rows:
        (exponential, its_error), (gumbel, other_error) = compare_noises(2.0, int(shown[0])).values()
        assert shown[1:3] == pytest.approx([exponential, gumbel], abs=1e-4)
        assert shown[3:] == pytest.approx([its_error, other_error], rel=0.05)
        better.append("gumbel" if other_error < its_error else "exponential")
    assert better == ["exponential"] * 2 + ["gumbel"] * 4


def test_the_code_of_the_page_runs():
    [block] = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    namespace = {}
    exec(compile(block, "accounting.md", "exec"), namespace)  # noqa: S102 - our own text
    assert namespace["simple"].epsilon == pytest.approx(10)
    assert namespace["total"].epsilon == pytest.approx(2.42, abs=0.005)
