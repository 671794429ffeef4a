"""The search for the worst neighbours."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import dpselect as dps
from dpselect.auditing import audit, privacy_loss
from dpselect.unsafe import NaiveHeterogeneousNoisyMax

QUICK = {"restarts": 12, "sweeps": 6}


@dataclass(frozen=True)
class Claiming(dps.Mechanism):
    """The law of a mechanism, with another claim."""

    inner: dps.Mechanism
    claim: float
    label = "claiming"

    @property
    def guarantee(self):
        return dps.Guarantee(epsilon=self.claim, theorem="none", reference="none")

    def law(self, sizes):
        return self.inner.law(sizes)


def test_the_violation_by_heterogeneous_noisy_max_is_found():
    found = audit(NaiveHeterogeneousNoisyMax(epsilon=1.0), [0.0, 1.0], **QUICK)
    assert found.verdict == "violated"
    assert found.loss == np.inf
    assert min(found.probabilities) == 0 < max(found.probabilities)


def test_the_violation_by_heterogeneous_noisy_max_is_found_without_a_zero_sensitivity():
    found = audit(NaiveHeterogeneousNoisyMax(epsilon=1.0), [0.25, 1.0], **QUICK)
    assert found.verdict == "violated"
    # The first candidate is far behind and must gain a distance that both moves change: (Δ_1 + Δ_2) / (2Δ_1/ε).
    assert found.loss == pytest.approx(2.5, rel=1e-3)


@pytest.mark.parametrize("k", [2, 3, 5, 8, 12])
def test_heterogeneous_laplace_noise_loses_the_budget_once_for_each_rival(k):
    found = audit(NaiveHeterogeneousNoisyMax(epsilon=0.7, noise="laplace"), np.r_[0.0, np.ones(k - 1)], **QUICK)
    assert found.loss == pytest.approx((k - 1) * 0.7, rel=1e-9)
    assert found.verdict == ("violated" if k > 2 else "no violation found")


@pytest.mark.parametrize("k", [2, 4, 16])
def test_random_stopping_with_exponential_noise_stays_within_its_budget_where_it_was_published_as_unbounded(k):
    mechanism = dps.RandomStopping(epsilon=1.0, gamma=0.05, noise="exponential")
    found = audit(mechanism, np.r_[0.0, np.ones(k - 1)], restarts=4, sweeps=2)
    assert 0.2 < found.certain <= 1


SENSITIVITIES = {"unequal": [0.1, 0.3, 1.0], "one-zero": [0.0, 1.0, 4.0]}
"""tests/auditing/test_conformance.py tries further kinds with every mechanism."""


@pytest.mark.parametrize("sensitivities", SENSITIVITIES.values(), ids=SENSITIVITIES)
@pytest.mark.parametrize("name", dps.MECHANISMS)
def test_no_registered_mechanism_exceeds_its_guarantee(name, sensitivities):
    mechanism = dps.MECHANISMS[name](epsilon=1.0)
    found = audit(mechanism, sensitivities, **QUICK)
    assert found.verdict == "no violation found"
    assert found.claimed == mechanism.guarantee.epsilon


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("name", ["rnm", "em", "krr", "tilted-rnm"])
def test_the_search_finds_nearly_all_that_can_be_lost(name, epsilon):
    found = audit(dps.MECHANISMS[name](epsilon=epsilon), np.ones(4), **QUICK)
    assert 0.99 * epsilon <= found.loss <= epsilon * (1 + 1e-9)


def test_laplace_noise_loses_all_only_in_the_far_tail():
    """Two candidates a scaled distance x apart: Pr = (2 + x) e^(−x) / 4, so the loss over a step of 1 is
    1 − log(1 + 1/(2 + x)), and probabilities good to 1e-12 let the search see x up to some 25."""
    found = audit(dps.NoisyMax(epsilon=1.0, noise="laplace"), np.ones(2), restarts=8, sweeps=4)
    assert 1 - np.log(1 + 1 / 15) <= found.loss <= 1 - np.log(1 + 1 / 40)


def test_unequal_sensitivities_leave_noisy_max_room():
    """Two candidates: their distance moves by Δ_1 + Δ_2, the noise is for 2 max Δ."""
    found = audit(dps.NoisyMax(epsilon=1.0), [0.5, 1.0], **QUICK)
    assert found.loss == pytest.approx(0.75, rel=1e-6)


def test_gem_loses_half_its_budget_with_equal_sensitivities_and_more_with_more_candidates():
    equal = audit(dps.GEM(epsilon=1.0), np.ones(5), **QUICK)
    assert equal.loss == pytest.approx(0.5, rel=1e-6)
    unequal = [audit(dps.GEM(epsilon=1.0), 1.5 ** np.arange(k), sweeps=30).loss for k in (3, 5, 8)]
    assert unequal[0] == pytest.approx(0.68, abs=0.01)
    assert equal.loss < unequal[0] < unequal[1] < unequal[2] < 1
    assert unequal[2] > 0.88


def test_combined_gem_loses_more_than_its_parts():
    mechanism = dps.CombinedGEM(epsilon=1.0)
    found = audit(mechanism, [0.1, 0.3, 1.0], restarts=16, sweeps=12)
    assert max(mechanism.sign_epsilon, mechanism.pick_epsilon) < found.loss <= 1


def test_a_claim_that_is_too_small_is_refuted():
    found = audit(Claiming(dps.NoisyMax(epsilon=2.0), 1.9), [1.0, 1.0], **QUICK)
    assert found.verdict == "violated"
    assert found.loss == pytest.approx(2.0, rel=1e-6)
    assert audit(Claiming(dps.GEM(epsilon=2.0), 1.1), [1.0, 1.0], **QUICK).verdict == "no violation found"
    assert audit(Claiming(dps.GEM(epsilon=2.0), 0.9), [1.0, 1.0], **QUICK).verdict == "violated"


def test_monotone_noise_is_audited_on_monotone_neighbours():
    mechanism = dps.NoisyMax(epsilon=1.0, monotone=True)
    found = audit(mechanism, [1.0, 1.0, 1.0], **QUICK)
    assert 0.99 <= found.loss <= 1 + 1e-9
    moved = found.neighbour - found.scores
    assert (moved >= 0).all() or (moved <= 0).all()
    careless = audit(Claiming(mechanism, 1.0), [1.0] * 3, **QUICK)
    assert careless.verdict == "violated"
    assert careless.loss == pytest.approx(2, rel=1e-2)


@pytest.mark.parametrize("sensitivities", [[0.3, 0.7, 1.1], [1e-9, 0.1, 1e3]])
def test_the_witness_is_a_pair_of_neighbours_and_shows_what_is_said(sensitivities):
    found = audit(dps.GEM(epsilon=1.0), sensitivities, **QUICK)
    for here, there, width in zip(found.scores, found.neighbour, found.sensitivities, strict=True):
        assert abs(Fraction(here) - Fraction(there)) <= Fraction(width) * (1 + Fraction(1, 10**12))
    assert found.loss == privacy_loss(found.mechanism, found.scores, found.neighbour, sensitivities).epsilon
    assert found.loss == pytest.approx(abs(np.log(found.probabilities[0] / found.probabilities[1])), rel=1e-12)
    assert found.certain <= found.loss


def test_the_same_seed_finds_the_same_pair():
    one, same, other = (
        audit(dps.GEM(epsilon=1.0), [0.1, 0.3, 1.0], seed=seed, restarts=2, sweeps=2) for seed in (5, 5, 6)
    )
    assert (one.scores == same.scores).all()
    assert not np.array_equal(one.scores, other.scores)


def test_public_numbers_are_passed_on_and_cost_nothing():
    found = audit(dps.NoisyMax(epsilon=1.0), [1.0, 1.0], offsets=[0.0, 3.0], **QUICK)
    assert 0.99 <= found.loss <= 1 + 1e-9


def test_an_audit_reads_well():
    text = str(audit(NaiveHeterogeneousNoisyMax(epsilon=1.0), [0.0, 1.0], **QUICK))
    assert "violated" in text
    assert "largest loss inf, claimed 1" in text


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"sensitivities": [1.0]}, "sensitivities must be one number for each of at least two candidates"),
        ({"sensitivities": [1.0, -1.0]}, "sensitivities must be ≥ 0"),
        ({"sensitivities": [1.0, np.nan]}, "sensitivities must be finite"),
        ({"restarts": 0}, "restarts must be ≥ 1"),
        ({"sweeps": 2.5}, "sweeps must be a whole number"),
        ({"seed": -1}, "seed must be ≥ 0"),
    ],
)
def test_bad_options_are_refused(options, rule):
    with pytest.raises(ValueError, match=rule):
        audit(dps.NoisyMax(epsilon=1.0), **({"sensitivities": [1.0, 1.0]} | options))
