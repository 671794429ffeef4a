"""A person behind several units: picks add up, and one result for all units is at a distance."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from compositions import DELTA, repeated_bit, smallest_epsilon

import dpselect as dps
from dpselect.budget import BudgetExhaustedError, Ledger, records
from dpselect.guarantees import ANY_SCORES, ONE_USER_CHANGED
from dpselect.tuning import choice_guarantee, choice_pmf

UNITS = 10


@pytest.fixture
def ledger(tmp_path):
    with Ledger.create(tmp_path / "budget.db") as ledger:
        ledger.add_population("readers", epsilon=9.0, delta=DELTA)
        ledger.add_population("writers", epsilon=1e3, delta=DELTA)
        yield ledger


@dataclass(frozen=True)
class Tuning:
    """A choice of one mechanism for all units, as `dpselect.tuning.tune` makes it."""

    epsilon: float

    @property
    def guarantee(self):
        return choice_guarantee(self.epsilon).with_neighbours(ANY_SCORES)


def chances(epsilon):
    """Return how likely the first of two mechanisms is, exactly, for two fleets that differ in ten units."""
    errors = np.array([[0.0] * UNITS + [1.0] * 5, [1.0] * UNITS + [0.0] * 5])  # 10 units say one thing, 5 another
    changed = np.hstack([1 - errors[:, :UNITS], errors[:, UNITS:]])
    return [choice_pmf(each, epsilon, cap=1.0)[0] for each in (errors, changed)]


def exact_epsilon(epsilon, times):
    return smallest_epsilon(*repeated_bit(chances(epsilon), times), DELTA)


def charge_choices(ledger, population, epsilon, times):
    accepted = 0
    for number in range(times):
        try:
            ledger.charge(
                population, f"choice {number}", Tuning(epsilon), fingerprint="inputs", units_per_person=UNITS
            )
        except BudgetExhaustedError:
            return accepted
        accepted += 1
    return accepted


def test_no_more_choices_are_accepted_than_exact_binomial_sums_allow(ledger):
    assert exact_epsilon(0.1, 26) > 22.9  # what was accepted under ε = 9 when choices were charged like picks
    accepted = charge_choices(ledger, "readers", 0.1, 30)
    assert accepted == 9  # each costs ε = 1; ρ would give more
    assert exact_epsilon(0.1, accepted) <= 9


@pytest.mark.parametrize(("epsilon", "times"), [(0.1, 26), (0.02, 120), (0.02, 300), (0.005, 250)])
def test_the_cost_of_choices_is_at_least_that_of_exact_binomial_sums(ledger, epsilon, times):
    paid = ledger.charge("writers", "choice", Tuning(epsilon), fingerprint="inputs", units_per_person=UNITS)
    spent = records.total_of([paid] * times, DELTA)
    assert exact_epsilon(epsilon, times) <= spent.epsilon <= UNITS * epsilon * times * (1 + 1e-12)
    assert (spent.delta == DELTA) == (epsilon < 0.1)  # where there are many, a δ saves something
    distance = UNITS * epsilon
    smaller = min(UNITS**2 * choice_guarantee(epsilon).rho, distance + math.expm1(-distance))
    assert spent.rho == pytest.approx(times * smaller)


def test_picks_and_lists_add_up_as_before(ledger):
    for number, pick in enumerate((dps.GEM(epsilon=0.1), dps.TopK(dps.NoisyMax(epsilon=0.05), 2))):
        ledger.charge("writers", f"{number}", pick, fingerprint="inputs", units_per_person=UNITS)
    rho = dps.GEM(epsilon=0.1).guarantee.rho + 2 * dps.NoisyMax(epsilon=0.05).guarantee.rho
    assert ledger.statement("writers").spent.rho == pytest.approx(UNITS * rho)


class Count:
    """Something else with a guarantee, which is one result for all units."""

    guarantee = dps.Guarantee(epsilon=0.1, flat_epsilon=0.1, theorem="by assumption", reference="none")

    def __repr__(self):
        return "Count()"


class Fleet:
    """A mechanism for a fleet, whose guarantee says so."""

    guarantee = choice_guarantee(0.1)

    def select(self):
        """Look like a mechanism for one unit."""


def test_one_result_for_all_units_is_at_a_distance_whatever_it_is(ledger):
    ledger.charge("writers", "count", Count(), fingerprint="inputs", units_per_person=UNITS)
    again = ledger.charge("writers", "count", Count(), fingerprint="inputs", units_per_person=UNITS)
    assert not again.charged
    expected = min(UNITS**2 * 0.1 * math.tanh(0.05), UNITS * 0.1 * math.tanh(UNITS * 0.05))
    statement = ledger.statement("writers")
    assert statement.spent.rho == pytest.approx(expected)
    assert statement.epsilon_spent == 1.0
    ledger.add_population("fleet", epsilon=1e3, delta=DELTA, neighbours=ONE_USER_CHANGED)
    ledger.charge("fleet", "ranges", Fleet(), fingerprint="inputs", units_per_person=UNITS)
    assert ledger.statement("fleet").spent.rho == pytest.approx(1 + math.expm1(-1.0))


def test_one_unit_costs_what_it_cost(ledger):
    for number, charged in enumerate((Tuning(0.1), Count())):
        ledger.charge("writers", f"{number}", charged, fingerprint="inputs")
    records = ledger.statement("writers").releases
    assert records[1].mechanism == "Count()"
    assert ledger.statement("writers").spent.rho == pytest.approx(choice_guarantee(0.1).rho + Count.guarantee.rho)


def test_choices_that_earlier_versions_were_paid_for_count_in_full_from_now_on(ledger, monkeypatch):
    """Their records are those of today, down to the checksum; what they cost was computed from too little ρ."""
    with monkeypatch.context() as patch:
        patch.setattr(records, "_parts", lambda release: (release.guarantee, release.units_per_person))  # as it was
        assert charge_choices(ledger, "readers", 0.1, 26) == 26
        assert ledger.statement("readers").epsilon_spent < 9
    statement = ledger.statement("readers")
    assert statement.epsilon_spent == 26.0
    again = ledger.charge("readers", "choice 3", Tuning(0.1), fingerprint="inputs", units_per_person=UNITS)
    assert not again.charged  # what is paid for stays paid for
    with pytest.raises(BudgetExhaustedError):
        ledger.charge("readers", "more", dps.GEM(epsilon=1e-9), fingerprint="inputs")


@pytest.mark.parametrize("units", [1, 2, 3])
def test_the_rho_of_a_choice_is_that_of_the_distance_however_few_units(ledger, units):
    paid = ledger.charge("writers", "choice", Tuning(0.5), fingerprint="inputs", units_per_person=units)
    assert records.total_of([paid], 0).rho == pytest.approx(units * 0.5 + math.expm1(-units * 0.5), rel=1e-12)
