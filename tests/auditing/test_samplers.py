"""Audits of samplers by their draws, including other libraries."""

import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from peers import DiffprivlibNoisyMax, OpenDPNoisyMax

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
    assert found.epsilon <= 1.0


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
    assert found.epsilon > 5.0
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
    assert found.epsilon <= epsilon
    assert found.p_value > 1e-9


def test_a_violation_by_another_library_with_too_little_noise_is_found():
    witness = audit(dps.NoisyMax(epsilon=4.0), [1.0, 1.0, 1.0], **QUICK)
    pair = witness.scores, witness.neighbour, witness.sensitivities
    found = audit_sampler(OpenDPNoisyMax(epsilon=4.0), *pair, draws=10_000, confidence=1 - 1e-9)
    assert found.epsilon > 2.0


# --- Distributions ------------------------------------------------------------------------------------


def lowest_share(successes, draws, error):
    """Return the share p with Pr[Binomial(draws, p) ≥ successes] = error, by bisection on exact sums."""
    low, high = Fraction(0), Fraction(1) if successes else Fraction(0)
    for _ in range(48):
        p = (low + high) / 2
        tail = sum(math.comb(draws, n) * p**n * (1 - p) ** (draws - n) for n in range(successes, draws + 1))
        low, high = (low, p) if tail > error else (p, high)
    return float(low)


@pytest.mark.parametrize("error", [0.4, 0.005, 1e-9])
@pytest.mark.parametrize(("more", "less"), [(9, 0), (9, 1), (40, 5), (35, 34), (40, 40)])
def test_the_bound_is_that_of_exact_binomial_tails(more, less, error):
    lower, upper = lowest_share(more, 40, error), 1 - lowest_share(40 - less, 40, error)
    expected = max(0.0, math.log(lower / upper)) if lower else 0.0
    assert samplers._epsilon_shown(more, less, 40, error) == pytest.approx(expected, rel=1e-8)


def test_the_p_value_of_two_cells_is_that_of_a_normal_variable():
    """Of 100 draws, 60 and 50 fall into the first of two equal cells: χ² = 4 + 0, with two degrees of freedom."""
    counts = [np.array([60, 40]), np.array([50, 50])]
    assert samplers._goodness_of_fit(counts, [np.array([0.5, 0.5])] * 2) == pytest.approx(math.exp(-2), rel=1e-12)


def test_without_scipy_the_message_says_what_to_install():
    script = (
        "import sys\nsys.modules['scipy'] = None\nimport dpselect as dps\n"
        "dps.auditing.audit_sampler(dps.Uniform(), [0.0, 1.0], [1.0, 1.0], 1.0, draws=10)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)  # noqa: S603
    assert "which is not installed: pip install" in done.stderr
