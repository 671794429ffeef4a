"""Audits: exact losses, the search for the worst neighbours, and draws put to the test."""

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from peers import DiffprivlibNoisyMax, OpenDPNoisyMax

import dpselect as dps
from dpselect.auditing import audit, audit_sampler, privacy_loss, privacy_profile
from dpselect.unsafe import ExponentialRandomStopping, HeterogeneousNoisyMax

QUICK = {"restarts": 12, "sweeps": 6}

dyadic = st.integers(-64, 64).map(lambda number: number / 16)
shares = st.integers(-16, 16).map(lambda number: number / 16)


@st.composite
def neighbours(draw):
    k = draw(st.integers(2, 5))
    scores = np.array(draw(st.lists(dyadic, min_size=k, max_size=k)))
    sensitivities = np.abs(draw(st.lists(dyadic, min_size=k, max_size=k)))
    moves = np.array(draw(st.lists(shares, min_size=k, max_size=k)))
    return scores, scores + moves * sensitivities, sensitivities


# --- Losses -------------------------------------------------------------------------------------------


@given(pair=neighbours(), name=st.sampled_from(sorted(dps.MECHANISMS)))
@settings(deadline=None, max_examples=60)
def test_the_loss_is_the_largest_log_ratio_in_each_direction(pair, name):
    scores, neighbour, sensitivities = pair
    mechanism = dps.MECHANISMS[name](epsilon=0.8)
    here, there = mechanism.pmf(scores, sensitivities), mechanism.pmf(neighbour, sensitivities)
    possible = [a for a in range(scores.size) if max(here[a], there[a]) > 1e-200]
    loss = privacy_loss(mechanism, scores, neighbour, sensitivities)
    assert loss.forward == pytest.approx(max(np.log(here[a] / there[a]) for a in possible), abs=1e-12)
    assert loss.backward == pytest.approx(max(np.log(there[a] / here[a]) for a in possible), abs=1e-12)
    assert loss.epsilon == max(loss.forward, loss.backward)
    turned = privacy_loss(mechanism, neighbour, scores, sensitivities)
    assert (turned.forward, turned.backward) == (loss.backward, loss.forward)


@given(pair=neighbours(), epsilon=st.floats(0, 2))
@settings(deadline=None, max_examples=60)
def test_the_profile_is_the_largest_excess_over_all_events(pair, epsilon):
    scores, neighbour, sensitivities = pair
    mechanism = dps.GEM(epsilon=1.5)
    here, there = mechanism.pmf(scores, sensitivities), mechanism.pmf(neighbour, sensitivities)
    candidates = range(scores.size)
    events = list(chain.from_iterable(combinations(candidates, size) for size in range(scores.size + 1)))
    worst = max(
        max(one[list(event)].sum() - np.exp(epsilon) * other[list(event)].sum() for event in events)
        for one, other in ((here, there), (there, here))
    )
    assert privacy_profile(mechanism, scores, neighbour, sensitivities, epsilon) == pytest.approx(worst, abs=1e-12)


def test_the_profile_falls_to_zero_at_the_loss():
    pair = [0.0, 1.0, 0.5], [1.0, 0.5, 0.5], [1.0, 0.5, 0.25]
    mechanism = dps.RandomStopping(epsilon=2.0)
    loss = float(privacy_loss(mechanism, *pair).epsilon)
    curve = privacy_profile(mechanism, *pair, np.linspace(0, 1.2 * loss, 13))
    assert (np.diff(curve) <= 1e-15).all()
    assert curve[9] > 1e-6
    assert curve[11:] == pytest.approx(0, abs=1e-12)


def test_losses_of_a_batch_are_those_of_its_rows():
    rng = np.random.default_rng(3)
    sensitivities = rng.uniform(0.1, 2, 6)
    scores = rng.normal(size=(2, 4, 6))
    there = scores + rng.uniform(-1, 1, scores.shape) * sensitivities
    mechanism = dps.ModifiedGEM(epsilon=1.0)
    together = privacy_loss(mechanism, scores, there, sensitivities)
    curves = privacy_profile(mechanism, scores, there, sensitivities, [0.0, 0.1])
    assert together.forward.shape == (2, 4)
    assert curves.shape == (2, 4, 2)
    for row in np.ndindex(2, 4):
        alone = privacy_loss(mechanism, scores[row], there[row], sensitivities)
        assert (together.forward[row], together.backward[row]) == (alone.forward, alone.backward)
        assert (curves[row] == privacy_profile(mechanism, scores[row], there[row], sensitivities, [0.0, 0.1])).all()


def test_an_impossible_candidate_is_an_infinite_loss_and_two_negligible_ones_are_none():
    naive = HeterogeneousNoisyMax(epsilon=1.0)
    assert privacy_loss(naive, [0.0, 0.5], [0.0, -0.5], [0.0, 1.0]).epsilon == np.inf
    far = privacy_loss(dps.NoisyMax(epsilon=1.0), [0.0, -1e6], [1.0, -1e6 - 1], 1.0)
    assert far.epsilon == 0


def test_accuracy_makes_a_loss_smaller_never_larger():
    pair = [0.0, 30.0], [1.0, 29.0], 1.0
    exact = privacy_loss(dps.NoisyMax(epsilon=1.0), *pair).epsilon
    assert exact == pytest.approx(1)
    assert privacy_loss(dps.NoisyMax(epsilon=1.0), *pair, accuracy=1e-9).epsilon < exact - 1e-3


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (([0.0, 1.0], [0.0], 1.0), "neighbour must have the shape of scores"),
        (([0.0, 1.0], [0.0, 2.5], 1.0), "neighbour must be within the sensitivities"),
        (([0.0, 1.0], [0.0, np.nan], 1.0), "neighbour must be finite"),
        (([0.0, np.inf], [0.0, 1.0], 1.0), "scores must be finite"),
        (([0.0, 1.0], [0.0, 1.0], [1.0]), None),
        (([0.0, 1.0], [0.0, 1.0], [1.0, 1.0, 1.0]), "sensitivities must have one number"),
        (([0.0, 1.0], [0.0, 1.0], -1.0), "sensitivities must be ≥ 0"),
        ((([0.0, 1.0], [0, 2]), [0.0, 1.0], 1.0), "not ragged"),
    ],
)
def test_what_are_not_neighbours_is_refused(arguments, rule):
    if rule is None:
        privacy_loss(dps.NoisyMax(epsilon=1.0), *arguments)
        return
    with pytest.raises(ValueError, match=rule):
        privacy_loss(dps.NoisyMax(epsilon=1.0), *arguments)


# --- The search ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Overclaiming:
    """A mechanism whose claim is smaller than its loss."""

    inner: dps.Mechanism
    claim: float

    @property
    def guarantee(self):
        return replace(self.inner.guarantee, epsilon=self.claim)

    def pmf(self, scores, sensitivities):
        return self.inner.pmf(scores, sensitivities)


def test_heterogeneous_noisy_max_is_found_out():
    found = audit(HeterogeneousNoisyMax(epsilon=1.0), [0.0, 1.0], **QUICK)
    assert found.verdict == "violated"
    assert found.loss == np.inf
    assert min(found.probabilities) == 0 < max(found.probabilities)


def test_heterogeneous_noisy_max_is_found_out_where_no_sensitivity_is_zero():
    found = audit(HeterogeneousNoisyMax(epsilon=1.0), [0.25, 1.0], **QUICK)
    assert found.verdict == "violated"
    # The first, far behind, must make up for a distance that both moves change: (Δ_1 + Δ_2) / (2Δ_1/ε).
    assert found.loss == pytest.approx(2.5, rel=1e-3)


@pytest.mark.parametrize("k", [2, 3, 5, 8, 12])
def test_heterogeneous_laplace_noise_loses_the_budget_once_for_each_rival(k):
    found = audit(HeterogeneousNoisyMax(epsilon=0.7, noise="laplace"), np.r_[0.0, np.ones(k - 1)], **QUICK)
    assert found.loss == pytest.approx((k - 1) * 0.7, rel=1e-9)
    assert found.verdict == ("violated" if k > 2 else "no violation found")


@pytest.mark.parametrize("k", [2, 4, 16])
def test_random_stopping_with_exponential_noise_stays_within_half_its_budget(k):
    """Published as unbounded in k; docs/theory/counterexamples.md proves ε/2, and the search finds no more."""
    mechanism = ExponentialRandomStopping(epsilon=1.0, gamma=0.05)
    found = audit(mechanism, np.r_[0.0, np.ones(k - 1)], restarts=4, sweeps=2)
    assert 0.1 < found.certain <= 0.5


SENSITIVITIES = {
    "equal": [1.0, 1.0, 1.0],
    "unequal": [0.1, 0.3, 1.0],
    "one-zero": [0.0, 1.0, 4.0],
    "two-zero": [0.0, 0.0, 1.0],
}


@pytest.mark.parametrize("sensitivities", SENSITIVITIES.values(), ids=SENSITIVITIES)
@pytest.mark.parametrize("name", dps.MECHANISMS)
def test_no_registered_mechanism_exceeds_its_guarantee(name, sensitivities):
    mechanism = dps.MECHANISMS[name](epsilon=1.0)
    found = audit(mechanism, sensitivities, **QUICK)
    assert found.verdict == "no violation found"
    assert found.claimed == mechanism.guarantee.epsilon


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("name", ["rnm", "em", "krr", "standardized-rnm", "tilted-rnm"])
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
    found = audit(Overclaiming(dps.NoisyMax(epsilon=2.0), 1.9), [1.0, 1.0], **QUICK)
    assert found.verdict == "violated"
    assert found.loss == pytest.approx(2.0, rel=1e-6)
    assert audit(dps.GEM(epsilon=2.0), [1.0, 1.0], claim=1.1, **QUICK).verdict == "no violation found"
    assert audit(dps.GEM(epsilon=2.0), [1.0, 1.0], claim=0.9, **QUICK).verdict == "violated"


def test_neighbours_are_those_of_the_guarantee_also_where_a_mechanism_wraps_another():
    anchored = dps.Anchored(mechanism=dps.NoisyMax(epsilon=1.0, monotone=True), weight=0.5)
    found = audit(anchored, [1.0, 1.0, 1.0], anchors=[0.0, 0.5, 1.0], **QUICK)
    moves = found.neighbour - found.scores
    assert (moves >= 0).all() or (moves <= 0).all()
    assert found.verdict == "no violation found"
    assert found.tightness > 0.99
    careless = audit(anchored, [1.0, 1.0, 1.0], anchors=[0.0, 0.5, 1.0], monotone=False, **QUICK)
    assert careless.verdict == "violated"


def test_monotone_noise_is_audited_on_monotone_neighbours():
    mechanism = dps.NoisyMax(epsilon=1.0, monotone=True)
    found = audit(mechanism, [1.0, 1.0, 1.0], **QUICK)
    assert 0.99 <= found.loss <= 1 + 1e-9
    moved = found.neighbour - found.scores
    assert (moved >= 0).all() or (moved <= 0).all()
    careless = audit(mechanism, [1.0, 1.0, 1.0], monotone=False, **QUICK)
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
    text = str(audit(HeterogeneousNoisyMax(epsilon=1.0), [0.0, 1.0], **QUICK))
    assert "violated" in text
    assert "largest loss inf, claimed 1" in text


def test_progress_is_shown_when_asked_for(capsys):
    audit(dps.NoisyMax(epsilon=1.0), [1.0, 1.0], progress=True, **QUICK)
    assert "audit" in capsys.readouterr().err
    audit(dps.NoisyMax(epsilon=1.0), [1.0, 1.0], **QUICK)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"sensitivities": [1.0]}, "sensitivities must be one number for each of at least two candidates"),
        ({"sensitivities": [1.0, -1.0]}, "sensitivities must be ≥ 0"),
        ({"sensitivities": [1.0, np.nan]}, "sensitivities must be finite"),
        ({"restarts": 0}, "restarts must be at least 1"),
        ({"sweeps": 2.5}, "sweeps must be a whole number"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"claim": 0.0}, "claim must be positive"),
        ({"monotone": 1}, "monotone must be True or False"),
    ],
)
def test_bad_options_are_refused(options, rule):
    with pytest.raises(ValueError, match=rule):
        audit(dps.NoisyMax(epsilon=1.0), **({"sensitivities": [1.0, 1.0]} | options))


# --- Draws --------------------------------------------------------------------------------------------


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
    """400 audits at 80 %: a right bound fails 20 % or less; above 29 % by chance in one run of 200,000."""
    mechanism = dps.RandomizedResponse(epsilon=0.5)
    truth = privacy_loss(mechanism, *PAIR).epsilon
    sampler = Repeatable(mechanism, seed=1000)
    bounds = [audit_sampler(sampler, *PAIR, draws=2_000, confidence=0.8).epsilon for _ in range(400)]
    assert sum(bound > truth for bound in bounds) <= 116


def test_a_sampler_without_a_law_is_audited_too_and_found_out():
    sampler = Repeatable(HeterogeneousNoisyMax(epsilon=1.0), known=False)
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
    """200 p-values; a fair one is below 0.1 more than 40 times by chance in one run of 40,000."""
    sampler = Repeatable(dps.GEM(epsilon=1.0), seed=50_000)
    values = np.array([audit_sampler(sampler, *PAIR, draws=2_000).p_value for _ in range(200)])
    assert (values < 0.1).sum() <= 40
    assert (values > 0.9).sum() <= 40
    assert (values < 0.5).sum() == pytest.approx(100, abs=32)


def test_one_draw_at_a_time():
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
def test_answers_that_are_no_candidates_are_refused(answer):
    class Broken:
        def select(self, *_):
            return np.array(answer)

    with pytest.raises(ValueError, match="sampler must return an index"):
        audit_sampler(Broken(), *PAIR, draws=600)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"draws": 1}, "draws must be at least 2"),
        ({"confidence": 1.0}, "confidence must lie strictly between 0 and 1"),
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
def test_other_libraries_keep_their_promise_and_come_near_it(make):
    """False alarms: one in a billion for each peer, as their randomness is not seeded."""
    epsilon = 2.0
    witness = audit(dps.NoisyMax(epsilon=epsilon), [1.0, 1.0, 1.0], **QUICK)
    pair = witness.scores, witness.neighbour, witness.sensitivities
    found = audit_sampler(make(epsilon), *pair, draws=10_000, confidence=1 - 1e-9)
    assert 0.5 * epsilon < found.epsilon
    assert not found.refutes(epsilon)
    assert found.p_value > 1e-9


def test_another_library_with_too_little_noise_is_found_out():
    witness = audit(dps.NoisyMax(epsilon=4.0), [1.0, 1.0, 1.0], **QUICK)
    pair = witness.scores, witness.neighbour, witness.sensitivities
    found = audit_sampler(OpenDPNoisyMax(epsilon=4.0), *pair, draws=10_000, confidence=1 - 1e-9)
    assert found.refutes(2.0)
