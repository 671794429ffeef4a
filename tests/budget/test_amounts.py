"""Caps are decimals and sums of charges are exact: releases may fill a cap exactly, and then none fits."""

import math
from contextlib import suppress
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import folder_in_memory

import dpselect as dps
from dpselect.accounting import total_guarantee
from dpselect.budget import BudgetError, BudgetExhaustedError, Ledger
from dpselect.budget.amounts import float_from, read_decimal

REFERENCE = {"theorem": "by assumption", "reference": "none"}


class Priced:
    """A mechanism that does nothing and has this guarantee."""

    def __init__(self, epsilon, **losses):
        self.guarantee = dps.Guarantee(epsilon=epsilon, **losses, **REFERENCE)

    def __repr__(self):
        return f"Priced({self.guarantee.epsilon!r}, {self.guarantee.rho!r})"


@pytest.fixture(scope="module")
def ledger():
    with folder_in_memory() as folder, Ledger.create(folder / "budget.db") as ledger:
        yield ledger


numbers = iter(range(10**9))


def open_account(ledger, cap, delta=0.0):
    """Return a function that charges a new population, and one that returns its statement."""
    name = f"population {next(numbers)}"
    ledger.add_population(name, epsilon=cap, delta=delta)

    def charge(epsilon, units=1, **losses):
        priced = Priced(epsilon, **losses)
        release = f"release {next(numbers)}"
        return ledger.charge(name, release, priced, fingerprint="inputs", units_per_person=units)

    return charge, lambda: ledger.statement(name)


@pytest.mark.parametrize(
    ("cap", "price", "count"), [(1.0, 0.1, 10), (0.3, 0.1, 3), (0.7, 0.07, 10), (2.4, 0.3, 8), (1.1, 0.01, 110)]
)
@pytest.mark.parametrize("at_once", [False, True])
def test_decimals_that_fill_a_cap_fit_and_then_not_even_the_smallest_charge_does(
    ledger, cap, price, count, at_once
):
    charge, statement = open_account(ledger, cap)
    if at_once:
        charge(price, count)
    else:
        for _ in range(min(count, 10)):
            charge(price, count // min(count, 10))
    assert statement().epsilon_spent == cap
    for tiny in (1e-13, 1e-17, 1e-90, 1e-300, 5e-324):
        with pytest.raises(BudgetExhaustedError, match="would have spent a little more than its cap"):
            charge(tiny)
    charge(0.0)  # costs nothing
    assert statement().epsilon_spent == cap


@pytest.mark.parametrize(
    ("cap", "price", "count"), [(1.0, 0.1, 10), (0.3, 0.1, 3), (2.4, 0.3, 8), (1.1, 0.01, 110)]
)
def test_a_list_costs_what_its_picks_cost_one_by_one(ledger, cap, price, count):
    for number, mechanism in enumerate((dps.NoisyMax(price), dps.NoisyMax(price, noise="gumbel"))):
        name = f"lists of {count} at {price}, {number}"
        ledger.add_population(name, epsilon=cap)
        ledger.charge(name, "a list", dps.TopK(mechanism, count), fingerprint="inputs")
        assert ledger.statement(name).epsilon_spent == cap
        [recorded] = ledger.statement(name).releases
        assert recorded.guarantee.flat_epsilon == 0.0  # as of each pick
        with pytest.raises(BudgetExhaustedError):
            ledger.charge(name, "another", dps.NoisyMax(1e-13), fingerprint="inputs")


def test_no_more_tiny_charges_pass_than_fit(ledger):
    charge, _ = open_account(ledger, 1.0)
    charge(1 - 1e-13)  # 0.9999999999999
    charge(5e-14)
    charge(5e-14)
    with pytest.raises(BudgetExhaustedError):
        charge(5e-324)


@given(
    cap=st.floats(1e-3, 10),
    shares=st.lists(st.one_of(st.floats(1e-18, 1), st.sampled_from([0.1, 0.25, 0.3, 0.5, 1e-13])), max_size=12),
)
def test_the_exact_decimal_sum_of_what_was_accepted_never_exceeds_the_cap(ledger, cap, shares):
    charge, statement = open_account(ledger, cap)
    accepted = Decimal(0)
    losses = Fraction(0)
    with localcontext(prec=200):
        for share in shares:
            price = cap * share
            try:
                charge(price)
            except BudgetExhaustedError:
                assert accepted + Decimal(repr(price)) > Decimal(repr(cap))
            else:
                accepted += Decimal(repr(price))
                losses += Fraction(price)
        assert accepted <= Decimal(repr(cap))
        spent = statement().epsilon_spent
        assert accepted <= Decimal(repr(spent)) <= Decimal(repr(cap))
    assert losses <= Fraction(cap) * (1 + Fraction(1, 2**52))  # the privacy loss, as docs/theory/accounting.md says


@given(st.lists(st.floats(2.0**-300, 2.0**300), min_size=1, max_size=5))
def test_a_sum_is_shown_as_the_next_decimal_and_a_decimal_is_close_to_its_float(numbers):
    for number in numbers:
        assert float_from(read_decimal(number)) == number
        assert abs(read_decimal(number) - Fraction(number)) <= Fraction(number) / 2**53
    total = sum(map(read_decimal, numbers))
    shown = float_from(total)
    assert read_decimal(math.nextafter(shown, 0)) < total <= read_decimal(shown)


def test_a_release_with_a_delta_of_its_own_is_refused_whatever_the_cap(ledger):
    for cap in (0.0, 0.1):
        charge, statement = open_account(ledger, 1.0, cap)
        with pytest.raises(BudgetError, match=r"it has δ = 1e-300, and only releases with δ = 0 can be charged"):
            charge(0.1, delta=1e-300)
        assert statement().releases == ()


def test_small_parts_of_a_sum_of_rho_do_not_vanish():
    """An accountant that adds floats loses each of them: 1 + 10⁻¹⁷ is 1, however often it is added."""
    large = dps.Guarantee(epsilon=100.0, rho=1.0, **REFERENCE)
    small = [dps.Guarantee(epsilon=100.0 + part, rho=1e-17, **REFERENCE) for part in range(2000)]
    alone = total_guarantee([large], delta=1e-6, fixed_beforehand=False)
    together = total_guarantee([large, *small], delta=1e-6, fixed_beforehand=False)
    assert Fraction(together.rho) >= 1 + 2000 * Fraction(1e-17)
    one = dps.Guarantee(epsilon=1000.0, rho=together.rho, **REFERENCE)
    assert together.epsilon == total_guarantee([one], delta=1e-6, fixed_beforehand=False).epsilon > alone.epsilon


def test_an_epsilon_from_rho_is_not_below_the_exact_conversion():
    for rho in (1e-9, 0.01, 1.0, 30.0):
        for delta in (1e-12, 1e-6, 0.01):
            part = dps.Guarantee(epsilon=1e4, rho=rho, **REFERENCE)
            found = total_guarantee([part], delta=delta, fixed_beforehand=False).epsilon
            assert found >= _smallest_epsilon(rho, delta)


def _smallest_epsilon(rho, delta):
    """Return the minimum over the same orders of Canonne, Kamath and Steinke's conversion, with 60 digits."""
    with localcontext(prec=60):
        rho, delta = Decimal(rho), Decimal(delta)
        found = []
        for step in range(500):
            order = 1 + Decimal(10) ** (Decimal(-2) + step * Decimal(8) / 499)
            if delta**2 > 1 - (-rho * order).exp():
                return 0
            found.append(rho * order + (1 - 1 / order).ln() - (delta * order).ln() / (order - 1))
        return max(0, min(found))


def test_after_a_cap_is_filled_through_rho_hardly_anything_more_passes(ledger):
    cap = 2.0
    charge, statement = open_account(ledger, cap, 1e-6)
    for exponent in range(3, 60):  # ever smaller parts, each at most once
        with suppress(BudgetExhaustedError):
            charge(100.0, rho=2.0**-exponent)
    before = statement()
    assert before.epsilon_spent == pytest.approx(cap, rel=1e-9)
    for _ in range(20):
        with pytest.raises(BudgetExhaustedError):
            charge(100.0, rho=2.0**-50)
    assert statement() == before
    assert before.spent.epsilon <= cap
