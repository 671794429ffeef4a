"""Random bits placed where floats cannot decide: every sampler must detect that, and decide next to it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp

from dpselect.exact import ExactStream
from dpselect.exact.samplers import random_stopping as twin
from dpselect.exact.samplers.randomized_response import report_bit
from dpselect.kernels import chacha, coins
from dpselect.kernels.arrays import UNRESOLVED, Units
from dpselect.kernels.lazy_gaps import KNOWN, LazyGaps
from dpselect.kernels.samplers import (
    exponential_mechanism,
    laplace_noisy_max,
    permute_and_flip,
    random_stopping,
    randomized_response,
)
from dpselect.kernels.samplers.loops import Workspace
from dpselect.laws.base import FILTER_ERROR
from dpselect.laws.noises import sampler_of

LAPLACE, EXPONENTIAL = False, True
"""Whether noise is one-sided."""

X = 1.25
UNITS = Units(np.zeros(8, dtype=np.uint32), np.zeros((1, 3), dtype=np.uint32))
NEAR, CLEAR = 2.0**-42, 2.0**-36
"""Relative distances from an edge: inside the filter's width of 2⁻⁴⁰, and outside."""


def inject(state, words):
    """Make a state read these words next."""
    state[chacha.USED], state[chacha.READ] = 0, 1
    state[chacha.SEQUENCE : chacha.SEQUENCE + len(words)] = np.array(words, dtype=np.uint64)
    return state


def state_of(*words):
    state = chacha.new_stream(UNITS.key)
    chacha.seek(state, UNITS.nonces, 0)
    return inject(state, words)


def stream_of(*words):
    stream = ExactStream(UNITS, 0)
    inject(stream._state, words)
    return stream


def joined(a, size, rest, bits=64):
    """Return the bits of a number that splits into index ``a`` below ``size`` and about ``rest``/2^bits."""
    return ((a << bits) + rest) // size


def edge(p, bits=64, off=0.0):
    """Return the integer in which p · (1 + off) · 2^bits lies."""
    mp.dps = 60
    return int(p * (1 + mp.mpf(off)) * mp.mpf(2) ** bits)


def chance(x):
    mp.dps = 60
    return mp.exp(-mp.mpf(x))


ZERO_GAP_PASSES = 5
"""Bits of a coin that passes with probability one, and not by a narrow margin."""


def frozen(*numbers):
    array = np.array(numbers, dtype=float)
    array.flags.writeable = False
    return array


def gaps_of(*gaps):
    values = frozen(*(-gap for gap in gaps))
    return LazyGaps(values, 0.0, 1.0, KNOWN, values, 0.0, 0.0, 0.0)


def room():
    """Return room for the counts of random stopping."""
    return np.empty(random_stopping.OCTAVES + 1, dtype=np.int64)


def workspace_of(state, size=2):
    return Workspace(state, FILTER_ERROR, np.zeros(size, dtype=np.bool_), np.zeros(size + 1, dtype=np.int64))


def visit(*words, x=X):
    workspace = workspace_of(state_of(*words))
    found = permute_and_flip.pick(gaps_of(0.0, x), 2, workspace)
    assert not workspace.seen.any()
    return found


def propose(*words, x=X):
    return exponential_mechanism.pick(gaps_of(0.0, x), 0, workspace_of(state_of(*words)))


def reply(*words, x=X):
    return randomized_response.keep_proposal(2, 0, x, state_of(*words), FILTER_ERROR)


@pytest.mark.parametrize("pick", [visit, propose, reply], ids=["visit", "propose", "reply"])
@pytest.mark.parametrize("x", [1e-9, 0.5, X, 15.0])
def test_a_coin_on_the_edge_leaves_the_row_undecided_and_one_beside_it_does_not(pick, x):
    def after(off):
        return pick(joined(1, 2, edge(chance(x), off=off)), joined(0, 2, ZERO_GAP_PASSES), x=x)

    assert {after(off) for off in (0.0, NEAR, -NEAR)} == {UNRESOLVED}
    assert after(-CLEAR) == 1
    assert x == 1e-9 or after(CLEAR) == 0


@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
@pytest.mark.parametrize(
    ("off", "expected"), [(-CLEAR, {1}), (CLEAR, {0}), (0.0, {0, 1}), (NEAR, {0}), (-NEAR, {1})]
)
def test_exact_samplers_decide_coins_on_the_edge_and_agree_beside_it(noise, off, expected):
    stream = stream_of(joined(1, 2, edge(chance(X), off=off)), joined(0, 2, ZERO_GAP_PASSES))
    assert sampler_of(noise).twin.pick([Fraction(0), Fraction(X)], 2, stream) in expected
    stream = stream_of(joined(1, 2, edge(chance(X), off=off)), joined(0, 2, ZERO_GAP_PASSES))
    assert report_bit(0, X, stream) in expected


@pytest.mark.parametrize("x", [0.001, X, 20.0])
def test_a_scanned_candidate_on_the_edge_is_undecided(x):
    for off, expected in ((0.0, coins.UNSURE), (-CLEAR, coins.PASS), (CLEAR, coins.FAIL)):
        byte, word = divmod(edge(chance(x), 72, off), 2**64)
        after_zero, own = (word, 0) if byte == 0 else (0, word)
        state = state_of()
        state[chacha.LOADED_WORDS] = 0
        state[chacha.WORDS + 7] = own
        verdict = permute_and_flip.bernoulli_exp_candidate(
            state, np.uint64(byte), np.uint64(after_zero), 7, x, FILTER_ERROR
        )
        assert verdict == expected


def test_a_byte_that_decides_needs_no_word():
    state = state_of()
    assert (
        permute_and_flip.bernoulli_exp_candidate(state, np.uint64(255), np.uint64(0), 7, X, FILTER_ERROR)
        == coins.FAIL
    )
    assert (
        permute_and_flip.bernoulli_exp_candidate(state, np.uint64(1), np.uint64(0), 7, X, FILTER_ERROR)
        == coins.PASS
    )
    assert state[chacha.LOADED_WORDS] == chacha.NO_GROUP


def test_a_word_that_does_not_tell_its_index_leaves_the_row_undecided():
    third = 2**64 // 3  # the following bits make it 0 or 1

    def pick_all(word):
        workspace = workspace_of(state_of(word), size=3)
        tossed = permute_and_flip.pick(gaps_of(0.0, 0.0, 0.0), 3, workspace)
        proposed = exponential_mechanism.pick(gaps_of(0.0, 0.0, 0.0), 0, workspace_of(state_of(word), size=3))
        replied = randomized_response.keep_proposal(3, 1, 0.0, state_of(word), FILTER_ERROR)
        return {tossed, proposed, replied}

    assert pick_all(third) == {UNRESOLVED}
    assert pick_all(third // 2) == {0}
    assert pick_all(third + 2) == {1}
    assert sampler_of("gumbel").twin.pick([Fraction(0)] * 3, 3, stream_of(third)) in {0, 1}


def test_a_byte_of_zero_is_followed_by_the_next_word_and_any_other_by_the_candidates_own():
    stream = stream_of(123)
    state = state_of()
    chacha.load_bytes(state, 0)
    bytes_of = [int(chacha.candidate_byte(state, a)) for a in range(chacha.GROUP_BYTES)]
    zero, other = bytes_of.index(0), next(a for a, byte in enumerate(bytes_of) if byte)
    own = int(chacha.candidate_word(state, other))
    assert stream.candidate_uniform(zero).low == Fraction(123, 2**72)
    assert stream.candidate_uniform(other).low == Fraction((bytes_of[other] << 64) + own, 2**72)


def signed(number, sign=1):
    return number << 1 | sign


@pytest.mark.parametrize("sign", [0, 1])
def test_laplace_noises_that_come_out_equal_leave_the_row_undecided(sign):
    first = edge(mp.mpf(0.1), 63)
    ratio = chance(X) if sign else 1 / chance(X)  # −log U₁ − x = −log U₀, or log U₁ − x = log U₀

    def words(off):
        return signed(first, sign), signed(edge(ratio * first, 0, off), sign)

    def kernel(off):
        return laplace_noisy_max.pick(gaps_of(0.0, X), 0, workspace_of(state_of(*words(off))))

    def fractions(off):
        return sampler_of("laplace").twin.pick([Fraction(0), Fraction(X)], 2, stream_of(*words(off)))

    assert {kernel(off) for off in (0.0, NEAR, -NEAR)} == {UNRESOLVED}
    smaller, larger = (1, 0) if sign else (0, 1)  # a smaller U is a larger noise, in the direction of its sign
    assert kernel(-CLEAR) == fractions(-CLEAR) == fractions(-NEAR) == smaller
    assert kernel(CLEAR) == fractions(CLEAR) == fractions(NEAR) == larger


def test_laplace_noise_of_hardly_any_bits_leaves_the_row_undecided():
    for number in (0, 31):
        workspace = workspace_of(state_of(signed(2**62), signed(number)))
        assert laplace_noisy_max.pick(gaps_of(0.0, X), 0, workspace) == UNRESOLVED
    assert sampler_of("laplace").twin.pick([Fraction(0), Fraction(X)], 2, stream_of(signed(2**62), signed(0))) == 1


def pair_state(units=UNITS):
    """Return a state at the start of a stream whose first words are computed."""
    state = chacha.new_stream(units.key)
    chacha.load_pair(state, units.nonces, 0, 0)
    chacha.seek_in_pair(state, units.nonces, 0, 0)
    return state


def stopping_state(state, packed, further):
    """Make a state read these words for K, for octaves and for draws, and the others as the draws' further 64
    bits.

    The kernel reads them from a pair of streams, its twin from half of a group of one stream.
    """
    for start in (chacha.BYTES, chacha.PAIR):
        state[start : start + chacha.GROUP_WORDS] = 0
        places = [start + n // 2 * 4 + n % 2 for n in range(len(packed))]
        state[places] = np.array(packed, dtype=np.uint64)
    state[chacha.WORDS : chacha.WORDS + len(further)] = np.array(further, dtype=np.uint64)
    state[chacha.LOADED_BYTES] = state[chacha.LOADED_WORDS] = 0
    return state


def stop_with(packed, further=(), noise=LAPLACE, scores=(0.0, -1.0), widths=(1.0, 2.0), gamma=0.3, eta=1.0):
    """Return the picks of the kernel and its twin if they read these words."""
    scores, widths = frozen(*scores), frozen(*widths)
    state, stream = stopping_state(pair_state(), packed, further), ExactStream(UNITS, 0)
    stopping_state(stream._state, packed, further)
    law = random_stopping.Stopping(noise, 1.0, gamma, eta, -math.log1p(-gamma))
    row = random_stopping.Row(scores, scores.max(), widths, widths.max())
    kernel = random_stopping.pick(law, row, random_stopping.Space(state, room(), FILTER_ERROR))
    return kernel, twin.pick(noise, scores, widths, Fraction(1), gamma, eta, stream)


COUNTS = (2**64 * np.array([0, 0.1, 0.4, 0.6]) // 1).astype(np.uint64)
"""Words for which K is 1, 2 or 3 (the first is not used) if γ = 0.3 and η = 1: Pr[K ≤ n] is 0.3, 0.51, 0.657."""


def stop(*draws, noise=LAPLACE, **settings):
    """Return the pick from these draws, each an octave (or DOWN) and 96 bits, the largest noise first."""
    octaves = [octave for octave, _ in draws]
    assert octaves == sorted(octaves, reverse=True)
    halvings = range(
        -1 if noise == LAPLACE else 0, max(octaves) + 1
    )  # of those that get this far, the first ones continue
    goes_on = [2 ** sum(octave > j for octave in octaves) - 1 for j in halvings]
    goes_on += [0] * (-len(goes_on) % 3)
    leading = [bits >> 64 for _, bits in draws] + [0]
    pairs = [leading[i] + (leading[i + 1] << 32) for i in range(0, len(draws), 2)]
    return stop_with(
        [COUNTS[len(draws)], *goes_on, *pairs], [bits & 2**64 - 1 for _, bits in draws], noise, **settings
    )


def drawn(a, w, off=0.0, size=2):
    """Return a draw of candidate ``a`` with positive noise −log(w (1 + off)): its octave and 96 bits."""
    mp.dps = 60
    w *= 1 + mp.mpf(off)
    octave = int(mp.ceil(-mp.log(w, 2))) - 1
    return octave, joined(a, size, edge(w * 2 ** (octave + 1) - 1, 96), 96)


def drawn_down(a, w, off=0.0, size=2):
    """Return a draw of candidate ``a`` with negative noise of size −log(w (1 + off))."""
    return random_stopping.DOWN, joined(a, size, edge(w, 96, off), 96)


@pytest.mark.parametrize("noise", [LAPLACE, EXPONENTIAL])
@pytest.mark.parametrize("first", [0.3, 0.6, 0.02])
def test_draws_that_come_out_equal_leave_random_stopping_undecided(noise, first):
    first = mp.mpf(first)
    second = mp.sqrt(first) * mp.exp(-mp.mpf(0.5))  # −2 log U₁ − 1 = −log U₀

    def pick(off):
        return stop(*sorted([drawn(0, first), drawn(1, second, off)], reverse=True), noise=noise)

    assert pick(0.0)[0] == UNRESOLVED
    assert pick(-CLEAR) == (1, 1)
    assert pick(CLEAR) == (0, 0)
    assert pick(-NEAR) == (UNRESOLVED, 1)
    assert pick(NEAR) == (UNRESOLVED, 0)


def test_noises_downwards_that_come_out_equal_leave_random_stopping_undecided():
    first = mp.mpf(0.3)
    second = mp.sqrt(first) * mp.exp(mp.mpf(0.5))  # 2 log U₁ − 1 = log U₀

    def pick(off):
        return stop(drawn_down(0, first), drawn_down(1, second, off))

    assert pick(0.0)[0] == UNRESOLVED
    assert pick(-CLEAR) == (0, 0)
    assert pick(CLEAR) == (1, 1)
    assert pick(-NEAR) == (UNRESOLVED, 0)
    assert pick(NEAR) == (UNRESOLVED, 1)


@pytest.mark.parametrize("octave", [0, 7])
def test_a_draw_whose_first_bits_do_not_tell_its_candidate_is_looked_at_again(octave):
    edge_of_candidate = 2**96 // 3
    settings = {"scores": (0.0, -1.0, -40.0), "widths": (1.0, 2.0, 1.0)}
    assert (edge_of_candidate - 2**40) >> 64 == (edge_of_candidate + 2**40) >> 64

    def pick(bits):
        return stop((octave, bits), **settings)

    assert pick(edge_of_candidate - 2**40) == (0, 0)
    assert pick(edge_of_candidate + 2**40) == (1, 1)
    assert pick(edge_of_candidate) == (UNRESOLVED, 0)
    assert pick(edge_of_candidate + 1) == (1, 1)


def test_the_first_of_tied_draws_without_noise_counts():
    settings = {"scores": (1.0, 1.0), "widths": (0.0, 0.0)}
    for draw in (drawn, drawn_down):
        assert stop(draw(1, 0.7), draw(0, 0.7), **settings) == (1, 1)
        assert stop(draw(0, 0.7), draw(1, 0.7), **settings) == (0, 0)


def test_a_noisy_draw_level_with_a_draw_without_noise_leaves_the_row_undecided():
    level = chance(1.0)  # −1 + 2 · (−log U) = 1 where U = 1/e

    def pick(off):
        return stop(drawn(1, level, off), drawn(0, 0.7), scores=(1.0, -1.0), widths=(0.0, 2.0))

    assert pick(0.0)[0] == UNRESOLVED
    assert pick(-CLEAR) == (1, 1)
    assert pick(CLEAR) == (0, 0)


def one_more(n):
    """Return the words after K's for which all noise is positive, within an octave, and only draw n is candidate
    1.

    Its noise is the largest possible, and that of all others the smallest, so 1 is picked if it is drawn.
    """
    leading = [(1 << 30) + (i << 16) for i in range(16)]  # no two are equal
    leading[n] = (1 << 31) + 2
    return [2**64 - 1, 0, 0, *(leading[i] + (leading[i + 1] << 32) for i in range(0, 16, 2))]


@pytest.mark.parametrize("n", [1, 2])
def test_the_first_word_determines_the_number_of_draws(n):
    assert stop_with([COUNTS[n], *one_more(n)]) == (0, 0)
    assert stop_with([COUNTS[n + 1], *one_more(n)]) == (1, 1)


def test_a_geometric_number_of_draws_on_the_edge_leaves_the_row_undecided():
    mp.dps = 60
    for n in (1, 2, 10):
        reached = 1 - (1 - mp.mpf(0.3)) ** n  # Pr[K ≤ n]

        def pick(off, n=n, reached=reached):
            return stop_with([edge(reached, off=off), *one_more(n)])

        assert pick(0.0)[0] == UNRESOLVED
        assert pick(-1e-8) == (0, 0)
        assert pick(1e-8) == (1, 1)


@pytest.mark.parametrize("eta", [0.0, -0.5, 4.0])
def test_an_inverted_number_of_draws_on_the_edge_leaves_the_row_undecided(eta):
    mp.dps = 60
    gamma = mp.mpf(0.2)
    once = (1 - gamma) * (eta / (gamma**-eta - 1) if eta else -1 / mp.log(gamma))  # Pr[K = 1]
    twice = once * (1 + (1 - gamma) * (1 + mp.mpf(eta)) / 2)  # Pr[K ≤ 2]
    for p, n in ((once, 1), (twice, 2)):

        def pick(off, n=n, p=p):
            return stop_with([edge(p, off=off), *one_more(n)], gamma=0.2, eta=eta)

        assert pick(0.0)[0] == UNRESOLVED
        assert pick(-1e-8) == (0, 0)
        assert pick(1e-8) == (1, 1)


def test_a_pair_of_streams_is_computed_as_each_by_itself():
    nonces = np.array([[1, 2, 3], [4, 5, 6], [2**32 - 1, 0, 7]], dtype=np.uint32)
    key = np.arange(8, dtype=np.uint32)
    for first, second in ((0, 1), (2, 0), (1, 1)):
        state = chacha.new_stream(key)
        chacha.load_pair(state, nonces, first, second)
        for side, row in enumerate((first, second)):
            chacha.seek_in_pair(state, nonces, row, side)
            stream = ExactStream(Units(key, nonces), row)
            for number in [*range(70), 5, 200, 0]:
                assert int(chacha.paired_word(state, number)) == stream.paired_word(number)


def test_no_word_of_a_pair_is_read_twice():
    words = {int(chacha.paired_word(pair_state(), number)) for number in range(200)}
    assert len(words) == 200


@pytest.mark.parametrize("noise", [LAPLACE, EXPONENTIAL])
@pytest.mark.parametrize("count", [1, 2, 64, 65, 100, 10_000])
def test_octaves_are_those_of_the_twin_and_share_out_all_draws(noise, count):
    kept = room()
    found, words = random_stopping.count_octaves(noise, count, pair_state(), kept)
    expected, used = twin._octaves(count, stream_of(), one_sided=noise)
    counts = kept[:found].tolist()
    down = expected.count(None)
    assert (words, counts[0], counts[-1]) == (used, count - down, 0)
    assert counts == [sum(each is not None and each >= j for each in expected) for j in range(found)]
    assert expected == sorted(expected[: count - down], reverse=True) + [None] * down
    assert noise == LAPLACE or not down


class Ones:
    """A stream that is all ones up to some word."""

    count_octaves = staticmethod(ExactStream.count_octaves)

    def __init__(self, last):
        self.last = last

    def paired_word(self, number):
        return 2**64 - 1 if number <= self.last else 0


def test_noise_of_any_size_is_counted_by_the_twin_and_left_to_it_by_the_kernel():
    assert twin._octaves(2, Ones(last=99), one_sided=True) == ([99, 99], 103)
    assert twin._octaves(1, Ones(last=0), one_sided=False) == ([None], 4)
    state = pair_state()
    state[chacha.PAIR : chacha.PAIR + chacha.GROUP_WORDS] = np.uint64(2**64 - 1)
    state[chacha.BYTES : chacha.BYTES + chacha.GROUP_WORDS] = np.uint64(2**64 - 1)
    state[chacha.LOADED_BYTES] = 1
    for noise in (LAPLACE, EXPONENTIAL):
        assert random_stopping.count_octaves(noise, 1, state, room())[0] == coins.UNSURE
    state[chacha.BYTES] = 0  # word 32 is that of group 1
    assert random_stopping.count_octaves(EXPONENTIAL, 1, state, room()) == (34, 34)


@pytest.mark.parametrize("noise", [LAPLACE, EXPONENTIAL])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 30.0])
def test_the_draws_that_are_not_made_would_not_have_been_picked(noise, epsilon):
    """With an infinite largest sensitivity no octave is skipped."""
    random = np.random.default_rng(5)
    law = random_stopping.Stopping(noise, 3 / epsilon, 0.02, 1.0, -math.log1p(-0.02))
    made_less = 0
    for address in range(400):
        units = UNITS._replace(nonces=np.array([[address, 0, 0]], dtype=np.uint32))
        scores, widths = random.normal(size=20), random.choice([0.0, 0.5, 1.0, 3.0], 20)
        found = []
        for widest in (widths.max(), np.inf):
            state = pair_state(units)
            row = random_stopping.Row(scores, scores.max(), widths, widest)
            found.append(random_stopping.pick(law, row, random_stopping.Space(state, room(), FILTER_ERROR)))
            loaded = int(state[chacha.LOADED_BYTES])
            found.append(0 if loaded == chacha.NO_GROUP else loaded)
        assert found[0] == found[2]
        assert found[1] <= found[3]
        made_less += found[1] < found[3]
    assert made_less > 0 or epsilon == 30.0
