"""Audits of samplers by their draws, including other libraries."""

from dataclasses import dataclass

import numpy as np
import pytest
from peers import DiffprivlibNoisyMax, OpenDPNoisyMax
from scipy.special import betaincinv
from scipy.stats import chi2

import dpselect as dps
from dpselect.auditing import audit, audit_sampler, privacy_loss, samplers
from dpselect.unsafe import NaiveHeterogeneousNoisyMax

QUICK = {"restarts": 12, "sweeps": 6}


class Repeatable:
    """A mechanism whose draws are the same on each run of the tests, and new on each call."""

    def __init__(self, mechanism, *, seed=0, known=True):
        self.mechanism = mechanism
        self.seed = seed
        if known:
            self.pmf = mechanism.pmf

    def select(self, scores, sensitivities):
        self.seed += 1
        return self.mechanism.select(scores, sensitivities, randomness=dps.Randomness.seeded(self.seed))


PAIR = ([0.0, 2.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0])


def test_the_lower_bound_comes_near_the_true_loss():
    mechanism = dps.NoisyMax(epsilon=1.0)
    truth = privacy_loss(mechanism, *PAIR).epsilon
    found = audit_sampler(Repeatable(mechanism), *PAIR, draws=200_000)
    assert 0.9 * truth < found.epsilon < truth
    assert found.p_value > 1e-6
    assert not found.refutes(1.0)


def test_the_lower_bound_is_above_the_truth_no_more_often_than_it_says():
    """400 audits at 80 %: a correct bound fails in at most 20 %. More than 29 % fail once in 200,000 runs."""
    mechanism = dps.RandomizedResponse(epsilon=0.5)
    truth = privacy_loss(mechanism, *PAIR).epsilon
    sampler = Repeatable(mechanism, seed=1000)
    bounds = [audit_sampler(sampler, *PAIR, draws=2_000, confidence=0.8).epsilon for _ in range(400)]
    assert sum(bound > truth for bound in bounds) <= 116


def test_a_sampler_without_a_law_is_audited_and_its_violation_is_found():
    sampler = Repeatable(NaiveHeterogeneousNoisyMax(epsilon=1.0), known=False)
    found = audit_sampler(sampler, [0.0, 0.5], [0.0, -0.5], [0.0, 1.0], confidence=1 - 1e-9)
    assert found.p_value is None
    assert found.refutes(5.0)
    assert found.event == (0,)


def test_draws_from_another_law_do_not_fit():
    wrong = audit_sampler(Repeatable(dps.NoisyMax(epsilon=1.0)), *PAIR, law=dps.NoisyMax(epsilon=1.1).pmf)
    assert wrong.p_value < 1e-6
    impossible = audit_sampler(Repeatable(dps.Uniform()), *PAIR, law=lambda *_: [0.5, 0.5, 0.0])
    assert impossible.p_value == 0


def test_the_p_value_is_uniform_where_the_law_is_right():
    """200 p-values: correct ones are below 0.1 more than 40 times once in 40,000 runs."""
    sampler = Repeatable(dps.GEM(epsilon=1.0), seed=50_000)
    values = np.array([audit_sampler(sampler, *PAIR, draws=2_000).p_value for _ in range(200)])
    assert (values < 0.1).sum() <= 40
    assert (values > 0.9).sum() <= 40
    assert (values < 0.5).sum() == pytest.approx(100, abs=32)


def test_samplers_may_return_one_draw_at_a_time():
    @dataclass
    class Single:
        calls: int = 0

        def select(self, scores, _):
            assert scores.shape == (3,)
            self.calls += 1
            return self.calls % 3

    sampler = Single()
    found = audit_sampler(sampler, *PAIR, draws=300, batched=False)
    assert sampler.calls == 600
    assert found.epsilon == 0


@pytest.mark.parametrize("answer", [[0], [0.5] * 300, [3] * 300, [-1] * 300])
def test_answers_that_are_not_candidates_are_refused(answer):
    class Broken:
        def select(self, *_):
            return np.array(answer)

    with pytest.raises(ValueError, match="sampler must return the index"):
        audit_sampler(Broken(), *PAIR, draws=600)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"draws": 1}, "draws must be ≥ 2"),
        ({"confidence": 1.0}, "confidence must be strictly between 0 and 1"),
        ({"batched": "yes"}, "batched must be True or False"),
        ({"law": lambda *_: [1.0]}, "law must return one probability"),
    ],
)
def test_bad_sampler_options_are_refused(options, rule):
    with pytest.raises(ValueError, match=rule):
        audit_sampler(dps.Uniform(), *PAIR, **options)


def test_a_batch_of_scores_is_refused():
    with pytest.raises(ValueError, match="scores must be one set of candidates"):
        audit_sampler(dps.Uniform(), [PAIR[0]], [PAIR[1]], PAIR[2])


# --- Other libraries ----------------------------------------------------------------------------------

PEERS = {
    "opendp": lambda epsilon: OpenDPNoisyMax(epsilon=epsilon),
    "opendp-gumbel": lambda epsilon: OpenDPNoisyMax(epsilon=epsilon, noise="gumbel"),
    "diffprivlib": lambda epsilon: DiffprivlibNoisyMax(epsilon=epsilon),
    "diffprivlib-gumbel": lambda epsilon: DiffprivlibNoisyMax(epsilon=epsilon, noise="gumbel"),
}


@pytest.mark.parametrize("make", PEERS.values(), ids=PEERS)
def test_other_libraries_satisfy_their_guarantee_and_nearly_attain_it(make):
    """The false-alarm rate for each peer is one in a billion, because their randomness is not seeded."""
    epsilon = 2.0
    witness = audit(dps.NoisyMax(epsilon=epsilon), [1.0, 1.0, 1.0], **QUICK)
    pair = witness.scores, witness.neighbour, witness.sensitivities
    found = audit_sampler(make(epsilon), *pair, draws=10_000, confidence=1 - 1e-9)
    assert 0.5 * epsilon < found.epsilon
    assert not found.refutes(epsilon)
    assert found.p_value > 1e-9


def test_a_violation_by_another_library_with_too_little_noise_is_found():
    witness = audit(dps.NoisyMax(epsilon=4.0), [1.0, 1.0, 1.0], **QUICK)
    pair = witness.scores, witness.neighbour, witness.sensitivities
    found = audit_sampler(OpenDPNoisyMax(epsilon=4.0), *pair, draws=10_000, confidence=1 - 1e-9)
    assert found.refutes(2.0)


# --- Distributions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [0.4, 0.005, 1e-9])
@pytest.mark.parametrize(("successes", "draws"), [(0, 9), (1, 9), (5, 9), (9, 9), (3, 50_000), (49_999, 50_000)])
def test_the_bounds_of_a_share_are_quantiles_of_the_beta_distribution(successes, draws, error):
    lower, upper = samplers._lower_share(successes, draws, error), samplers._upper_share(successes, draws, error)
    expected_lower = betaincinv(successes, draws - successes + 1, error) if successes else 0.0
    expected_upper = betaincinv(successes + 1, draws - successes, 1 - error) if successes < draws else 1.0
    assert lower == pytest.approx(expected_lower, rel=1e-8)
    assert upper == pytest.approx(expected_upper, rel=1e-8)


@pytest.mark.parametrize("freedom", [1, 2, 3, 10, 99, 2_000])
@pytest.mark.parametrize("ratio", [0.0, 0.5, 1.0, 1.2, 3.0])
def test_the_chi_squared_tail_is_scipy_s(freedom, ratio):
    assert samplers._chi_squared_tail(ratio * freedom, freedom) == pytest.approx(
        chi2.sf(ratio * freedom, freedom), rel=1e-9
    )
