"""The check of anyone's selector: it finds what is wrong, and passes what is right."""

import re

import numpy as np
import pytest
from numpy.polynomial import polynomial
from peers import DiffprivlibNoisyMax, OpenDPNoisyMax

import dpselect as dps
from dpselect.auditing import check
from dpselect.guarantees import ANY_SCORES, SAME_DIRECTION

WIDTHS = [0.1, 0.5, 1.0]
PROMISE = dps.Guarantee(epsilon=1.0, theorem="claimed", reference="none")
QUICK = {"restarts": 2, "draws": 2000}


def claiming(function):
    return dps.from_pmf(function, guarantee=PROMISE)


# --- Wrong selectors -----------------------------------------------------------------------------------------


def seeded(pick):
    """Return a function of one row that draws from a generator of its own."""
    rng = np.random.default_rng(7)
    return lambda scores, sensitivities: pick(scores, sensitivities, rng)


@seeded
def naive_noisy_max(scores, sensitivities, rng):
    return np.argmax(scores + rng.exponential(2 * sensitivities))


@seeded
def too_little_noise(scores, sensitivities, rng):
    return np.argmax(scores + rng.laplace(scale=sensitivities.max() / 2, size=scores.size))


def gem_with_a_wrong_factor(scores, sensitivities):
    """GEM scores have sensitivity 1, and both sides of a comparison move: the factor is ε/2, not ε."""
    shifted = scores - 2 * np.log(scores.size / 0.05) * sensitivities
    gaps, sums = np.subtract.outer(shifted, shifted), np.add.outer(sensitivities, sensitivities)
    quotients = np.divide(gaps, sums, out=np.where(gaps < 0, -np.inf, 0.0), where=sums > 0)
    weights = np.exp(np.maximum(quotients.min(axis=1), -600.0))
    return weights / weights.sum()


def permute_and_flip_in_floats(scores, sensitivities):
    """The textbook: a coin of bias e^(ε(q − q*)/2Δ) for one after the other. Far behind, it underflows to 0."""
    flips = np.exp((scores - scores.max()) / (2 * sensitivities.max() or 1.0))
    law = []
    for a, flip in enumerate(flips):
        others = [1.0]
        for b, other in enumerate(flips):
            others = polynomial.polymul(others, [1.0, -other]) if b != a else others
        law.append(flip * polynomial.polyval(1.0, polynomial.polyint(others)))
    return np.array(law)


@pytest.mark.parametrize("widths", [WIDTHS, [1.0, 1.0, 1.0]])
def test_naive_noisy_max_is_found_by_draws_even_if_it_is_right_for_equal_sensitivities(widths):
    found = check(naive_noisy_max, widths, epsilon=1.0, **QUICK)
    assert found.verdict == "violated"
    assert found.worst.certain > 1
    assert not found.is_exact


def test_naive_noisy_max_is_found_by_its_probabilities():
    found = check(dps.unsafe.NaiveHeterogeneousNoisyMax(1.0), WIDTHS, restarts=2)
    assert found.verdict == "violated"
    assert found.worst.sensitivities.tolist() == WIDTHS
    # The least sensitive candidate is far behind, and both it and the most sensitive move: (0.1 + 1)/(2 · 0.1).
    assert found.worst.loss == pytest.approx(5.5, rel=0.02)


def test_too_little_noise_is_found_by_draws():
    """Laplace noise of scale Δ/2 has a loss of up to 4 in place of 1."""
    found = check(too_little_noise, [1.0, 1.0], epsilon=1.0, **QUICK)
    assert found.verdict == "violated"
    assert 1 < found.worst.certain < 4


@pytest.mark.parametrize("widths", [WIDTHS, [1.0, 1.0, 1.0]])
def test_gem_with_a_wrong_factor_is_found_even_if_it_is_right_for_equal_sensitivities(widths):
    found = check(claiming(gem_with_a_wrong_factor), widths, restarts=1)
    assert found.verdict == "violated"
    assert 1.2 < found.worst.loss < 2


def test_permute_and_flip_in_floats_is_found_where_it_underflows():
    found = check(claiming(permute_and_flip_in_floats), [0.5, 1.0], restarts=1)
    assert found.verdict == "violated"
    assert found.worst.loss == np.inf
    assert 0 < max(found.worst.probabilities) < 1e-300
    assert "floats round or underflow there: keep every probability above 1e-300" in str(found)
    many = check(claiming(permute_and_flip_in_floats), np.ones(60), restarts=1)
    assert any("add up to 1" in text for text in many.broken)  # its sum of signs cancels


def test_probabilities_that_keep_two_digits_are_found():
    def clipped_too_late(scores, sensitivities):
        weights = np.exp(np.maximum((scores - scores.max()) / (2 * sensitivities.max() or 1.0), -741.0))
        return weights / weights.sum()

    found = check(claiming(clipped_too_late), [1.0, 1.0], restarts=2)
    assert found.verdict == "violated"
    assert 1.001 < found.worst.loss < 1.5


def test_permute_and_flip_that_never_underflows_passes():
    def clipped(scores, sensitivities):
        unit = 2 * (sensitivities.max() or 1.0)
        return permute_and_flip_in_floats(np.maximum((scores - scores.max()) / unit, -600.0), np.array([0.5]))

    found = check(claiming(clipped), [1.0, 1.0], restarts=1)
    assert found.verdict == "no violation found"
    assert 0.99 < found.worst.loss <= 1 + 1e-9


def test_permute_and_flip_drawn_in_floats_is_found_where_it_divides_by_zero():
    @seeded
    def flip(scores, sensitivities, rng):
        biases = np.exp((scores - scores.max()) / (2 * sensitivities.max()))
        return next((int(a) for a in rng.permutation(scores.size) if rng.random() < biases[a]), None)

    found = check(flip, [1.0, 1.0], epsilon=1.0, **QUICK)
    assert found.verdict == "broken"
    assert "returned None, which is not the position of a candidate, 0 to 1, with sensitivities all 0" in str(found)
    assert found.worst.verdict == "no violation found"  # what draws cannot see


def test_exponentials_of_scores_that_are_not_shifted_are_found():
    def overflow(scores, sensitivities):
        weights = np.exp(scores / (2 * sensitivities.max() if sensitivities.any() else 1.0))
        return weights / weights.sum()

    assert "numbers ≥ 0 that add up to 1" in str(check(claiming(overflow), [1.0, 1.0], restarts=1))


# --- Right ones ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", dps.MECHANISMS)
def test_every_mechanism_passes(name):
    found = check(dps.MECHANISMS[name](epsilon=1.0), WIDTHS, **QUICK)
    assert (found.verdict, found.notes, len(found.tried)) == ("no violation found", [], 10)


@pytest.mark.statistics
@pytest.mark.parametrize("name", dps.MECHANISMS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_every_mechanism_passes_a_long_check(name, epsilon):
    found = check(dps.MECHANISMS[name](epsilon=epsilon), [0.0, 0.1, 0.5, 1.0, 1.0], restarts=24, draws=400_000)
    assert (found.verdict, found.notes) == ("no violation found", [])


class WithoutProbabilities:
    """A mechanism that only picks, from one seed after the other."""

    def __init__(self, mechanism, seed):
        self.mechanism, self.seeds = mechanism, iter(range(seed, seed + 10**6))

    def select(self, scores, sensitivities):
        return self.mechanism.select(scores, sensitivities, randomness=dps.Randomness.seeded(next(self.seeds)))


def test_a_correct_selector_fails_no_more_often_than_stated():
    """Of 4 checks at an error of 1 %, two or more fail for one in 1,700 choices of seeds."""
    selectors = (WithoutProbabilities(dps.NoisyMax(1.0), 10**6 * number) for number in range(4))
    found = [check(one, [1.0, 1.0], epsilon=1.0, draws=2000, error=0.01, seed=n) for n, one in enumerate(selectors)]
    assert sum(one.verdict != "no violation found" for one in found) <= 1
    assert max(one.worst.certain for one in found) > 0.5


def test_rows_about_one_person_have_any_row_as_a_neighbour():
    found = check(dps.TopShare(1.0), [1.0, 1.0, 1.0], restarts=2)
    assert found.worst.loss == pytest.approx(1.0)
    assert (np.abs(found.worst.scores - found.worst.neighbour) > 1).any()
    careless = check(dps.NoisyMax(1.0), [1.0, 1.0], neighbours=ANY_SCORES, restarts=2)
    assert careless.verdict == "violated"


def test_neighbours_in_the_same_direction_are_those_of_the_guarantee():
    monotone = dps.NoisyMax(1.0, monotone=True)
    assert check(monotone, [1.0, 1.0], restarts=2).verdict == "no violation found"
    doubled = check(monotone.pmf.__self__, [1.0, 1.0], neighbours=dps.GEM(1.0).guarantee.neighbours, restarts=2)
    assert doubled.worst.loss == pytest.approx(2, rel=0.02)
    assert (
        check(dps.NoisyMax(2.0), [1.0, 1.0], epsilon=1.0, neighbours=SAME_DIRECTION, restarts=2).worst.loss
        <= 1 + 1e-9
    )


PEERS = {
    "opendp": OpenDPNoisyMax(epsilon=2.0),
    "opendp-gumbel": OpenDPNoisyMax(epsilon=2.0, noise="gumbel"),
    "diffprivlib": DiffprivlibNoisyMax(epsilon=2.0),
    "diffprivlib-gumbel": DiffprivlibNoisyMax(epsilon=2.0, noise="gumbel"),
}


@pytest.mark.parametrize("peer", PEERS.values(), ids=PEERS)
def test_other_libraries_draw_what_they_claim(peer):
    """The false-alarm rate for each peer is one in a billion, because their randomness is not seeded."""
    found = check(peer, [1.0, 1.0, 1.0], restarts=1, draws=800, error=1e-9)
    assert not [text for text in found.broken if "draws" in text]
    assert found.worst.verdict == "no violation found"


def test_an_exponential_mechanism_that_compares_a_float_with_a_cumulative_sum_is_found():
    """What diffprivlib does with a random number that is a multiple of 2⁻⁵³, as probabilities."""
    mechanisms = pytest.importorskip("diffprivlib.mechanisms", exc_type=ImportError)

    def as_sampled(scores, sensitivities):
        sums = mechanisms.Exponential._find_probabilities(1.0, sensitivities.max(), scores.tolist(), False, None)
        ends = np.append(np.minimum(np.floor(sums[:-1] * 2.0**53) + 1, 2.0**53), 2.0**53)
        return np.diff(ends, prepend=0.0) / 2.0**53

    found = check(claiming(as_sampled), [1.0, 1.0], restarts=1)
    assert found.verdict == "violated"
    assert found.worst.loss == np.inf
    assert max(found.worst.probabilities) == pytest.approx(2.0**-53)


# --- Selectors that misbehave --------------------------------------------------------------------------------


def softmax(scores, sensitivities):
    weights = np.exp(np.maximum((scores - scores.max()) / (2 * (sensitivities.max() or 1.0)), -600.0))
    return weights / weights.sum()


def test_a_selector_with_a_state_is_found():
    turns = iter(range(10**9))
    found = check(lambda scores, _: next(turns) % scores.size, [1.0, 1.0], epsilon=1.0, **QUICK)
    assert found.verdict == "broken"
    assert "a pick depends on those before it: it keeps a state" in str(found)
    calls = iter(range(10**9))
    law = claiming(
        lambda scores, _: np.full(scores.size, 1 / scores.size) if next(calls) % 2 else np.eye(scores.size)[0]
    )
    assert check(law, [1.0, 1.0], restarts=1).verdict != "no violation found"


def test_a_selector_that_draws_its_noise_once_is_found():
    noise = np.random.default_rng(0).exponential(2.0, 8)
    found = check(lambda scores, _: np.argmax(scores + noise[: scores.size]), [1.0, 1.0], epsilon=1.0, **QUICK)
    assert found.verdict == "violated"
    assert {0.0, 1.0} == set(found.worst.probabilities)


def test_a_selector_that_returns_labels_is_told_what_to_return():
    found = check(lambda *_: "tea", [1.0, 1.0], epsilon=1.0, **QUICK)
    assert found.verdict == "broken"
    assert "broken: returned 'tea', which is not the position of a candidate, 0 to 1" in str(found)


def test_a_selector_that_raises_on_some_scores_is_found_and_the_rest_is_still_checked():
    def pick(scores, sensitivities):
        if np.unique(scores).size < scores.size:
            raise KeyError("ties")
        return naive_noisy_max(scores, sensitivities)

    found = check(pick, [0.0, 1.0], epsilon=1.0, draws=1000)
    assert any(text == "raised KeyError: 'ties'" for text in found.broken)
    assert re.search(r"raised KeyError: 'ties', with sensitivities .* and scores \[0\. 0\.", str(found))


def test_a_polite_refusal_of_other_sensitivities_is_no_fault():
    @seeded
    def pick(scores, sensitivities, rng):
        if not sensitivities.all() or np.isnan(scores).any() or scores.size < 2:
            raise ValueError("sensitivities must be positive")
        return np.argmax(scores + rng.exponential(2 * sensitivities.max(), scores.size))

    found = check(pick, [1.0, 1.0], epsilon=1.0, **QUICK)
    assert (found.verdict, found.notes) == ("no violation found", [])
    assert {"all 0 (refused)", "of one candidate (refused)"} <= set(found.tried)


def test_order_shift_and_nan_are_noted():
    def law(scores, _):
        share = 0.25 if scores[0] > 100 else 0.2
        return (
            np.array([share, *np.full(scores.size - 1, (1 - share) / (scores.size - 1))])
            if scores.size > 1
            else [1.0]
        )

    found = check(claiming(law), [1.0, 1.0], restarts=1)
    assert found.notes[:2] == ["the order of candidates matters", "a common shift of all scores matters"]

    class Careless:
        def pmf(self, scores, sensitivities):
            return np.full(scores.shape, 1 / scores.shape[-1]) + 0 * np.max(sensitivities)

        def select(self, scores, sensitivities):  # noqa: ARG002
            return np.random.default_rng().integers(scores.shape[-1], size=len(scores))

    assert check(Careless(), [1.0, 1.0], epsilon=0.0, **QUICK).notes == [
        "it accepts a score that is NaN: refuse it with a ValueError"
    ]


def test_draws_that_do_not_follow_the_probabilities_are_found():
    class Wrong:
        pmf = dps.NoisyMax(1.0).pmf
        epsilon = 1.0

        def select(self, scores, sensitivities):
            return dps.NoisyMax(2.0).select(scores, sensitivities, randomness=dps.Randomness.seeded(len(scores)))

    found = check(Wrong(), [1.0, 1.0], restarts=2)
    assert found.verdict == "broken"
    assert "draws do not follow pmf" in found.broken
    assert found.name == "Wrong"


def test_a_report_reads_well():
    text = str(check(dps.GEM(1.0), [1.0, 2.0], **QUICK))
    for part in ("no violation found", "largest loss", "claimed 1", "pairs of neighbours, by exact probabilities"):
        assert part in text
    assert "a correct selector fails one check in 1,000,000" in text
    assert "draws alone" in str(check(lambda *_: 0, [1.0, 1.0], epsilon=1.0, **QUICK))


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"selector": dps.TopK(dps.GEM(1.0))}, "selector must make single picks"),
        ({"selector": lambda *_: 0}, "epsilon must be given: the selector claims none"),
        ({"sensitivities": [1.0]}, "sensitivities must be one number for each of at least two candidates"),
        ({"sensitivities": 1.0}, "sensitivities must be one number for each of at least two candidates"),
        ({"epsilon": -1.0}, "epsilon must be ≥ 0"),
        ({"neighbours": "friends"}, "neighbours must be one of"),
        ({"restarts": 0}, "restarts must be ≥ 1"),
        ({"draws": 10}, "draws must be ≥ 200"),
        ({"error": 0.0}, "error must be positive"),
        ({"seed": -1}, "seed must be ≥ 0"),
    ],
)
def test_bad_options_are_refused(options, rule):
    with pytest.raises(ValueError, match=rule):
        check(**{"selector": dps.GEM(1.0), "sensitivities": [1.0, 1.0]} | options)
