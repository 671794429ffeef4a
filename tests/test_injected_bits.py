"""Random bits made to land where floats cannot decide: every sampler must notice, and decide beside it."""

from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp

from dpselect import exact
from dpselect.exact import ExactStream
from dpselect.kernels import chacha, draws, picks, rows
from dpselect.kernels.arrays import Units
from dpselect.kernels.lazy_gaps import KNOWN, GapOracle
from dpselect.kernels.quadrature import EXPONENTIAL, LAPLACE
from dpselect.mechanisms.rows import FILTER_WIDTH
from dpselect.parameters import NOISES

X = 1.25
UNITS = Units(np.zeros(8, dtype=np.uint32), np.zeros((1, 3), dtype=np.uint32))
NEAR, CLEAR = 2.0**-42, 2.0**-36
"""Relative distances from an edge: inside the filter's width of 2⁻⁴⁰, and outside."""


def inject(tape, words):
    """Make a tape read these words next."""
    tape[chacha.USED], tape[chacha.READ] = 0, 1
    tape[chacha.SEQUENCE : chacha.SEQUENCE + len(words)] = np.array(words, dtype=np.uint64)
    return tape


def tape_of(*words):
    tape = chacha.new_stream(UNITS.key)
    chacha.seek(tape, UNITS.nonces, 0)
    return inject(tape, words)


def stream_of(*words):
    stream = ExactStream(UNITS, 0)
    inject(stream._tape, words)
    return stream


def index(a, size, rest=0):
    """Return a word that draws index ``a`` below ``size``, and 32 bits that are left of it."""
    return ((2 * a + 1 << 32) // (2 * size)) << 32 | rest


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


def visit(*words, x=X):
    values = frozen(0.0, -x)
    oracle = GapOracle(KNOWN, values, values, 0.0, 0.0, 0.0, 0.0)
    seen, visited = np.zeros(2, dtype=np.bool_), np.zeros(3, dtype=np.int64)
    found = picks.pick_passer(values, 0.0, 1.0, 2, tape_of(*words), seen, visited, oracle, FILTER_WIDTH)
    assert not seen.any()
    return found


def propose(*words, x=X):
    return picks.pick_until_pass(frozen(0.0, -x), 0.0, 1.0, tape_of(*words), FILTER_WIDTH)


def reply(*words, x=X):
    return rows.keep_proposal(2, 0, x, tape_of(*words), FILTER_WIDTH)


@pytest.mark.parametrize("pick", [visit, propose, reply], ids=["visit", "propose", "reply"])
@pytest.mark.parametrize("x", [1e-9, 0.5, X, 15.0])
def test_a_coin_on_the_edge_leaves_the_row_undecided_and_one_beside_it_does_not(pick, x):
    def after(off):
        return pick(index(1, 2), edge(chance(x), off=off), index(0, 2), ZERO_GAP_PASSES, x=x)

    assert {after(off) for off in (0.0, NEAR, -NEAR)} == {picks.UNRESOLVED}
    assert after(-CLEAR) == 1
    assert x == 1e-9 or after(CLEAR) == 0


@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
@pytest.mark.parametrize(
    ("off", "expected"), [(-CLEAR, {1}), (CLEAR, {0}), (0.0, {0, 1}), (NEAR, {0}), (-NEAR, {1})]
)
def test_exact_samplers_decide_coins_on_the_edge_and_agree_beside_it(noise, off, expected):
    stream = stream_of(index(1, 2), edge(chance(X), off=off), index(0, 2), ZERO_GAP_PASSES)
    assert exact.pick_noisy_max(noise, [Fraction(0), Fraction(X)], 2, stream) in expected
    stream = stream_of(index(1, 2), edge(chance(X), off=off), index(0, 2), ZERO_GAP_PASSES)
    assert exact.report_sign(0, X, stream) in expected


@pytest.mark.parametrize("x", [0.001, X, 20.0])
def test_a_scanned_candidate_on_the_edge_is_undecided(x):
    for off, expected in ((0.0, draws.UNSURE), (-CLEAR, draws.PASS), (CLEAR, draws.FAIL)):
        byte, word = divmod(edge(chance(x), 72, off), 2**64)
        tape = tape_of()
        tape[chacha.LOADED] = 0
        tape[chacha.WORDS + 7] = word
        assert picks.judge_candidate(tape, np.uint64(byte), 7, x, FILTER_WIDTH) == expected


def test_a_byte_that_decides_needs_no_word():
    tape = tape_of()
    assert picks.judge_candidate(tape, np.uint64(255), 7, X, FILTER_WIDTH) == draws.FAIL
    assert picks.judge_candidate(tape, np.uint64(0), 7, X, FILTER_WIDTH) == draws.PASS
    assert tape[chacha.LOADED] == chacha.NO_GROUP


def test_fixed_work_is_undecided_by_a_coin_on_the_edge_and_by_equal_priorities():
    def pick(coin, first, second):
        tape = tape_of(ZERO_GAP_PASSES, first, coin, second)
        return picks.pick_passer_at_fixed_work(frozen(0.0, -X), 0.0, 1.0, tape, FILTER_WIDTH)

    assert pick(edge(chance(X)), 9, 5) == picks.UNRESOLVED
    assert pick(edge(chance(X), off=-CLEAR), 5, 9) == 1
    assert pick(edge(chance(X), off=-CLEAR), 9, 5) == 0
    assert pick(edge(chance(X), off=CLEAR), 5, 9) == 0
    assert pick(edge(chance(X), off=-CLEAR), 9, 9) == picks.UNRESOLVED
    assert pick(edge(chance(X), off=CLEAR), 0, 9) == picks.UNRESOLVED
    stream = stream_of(ZERO_GAP_PASSES, 9, edge(chance(X), off=-CLEAR), 9)
    assert exact.pick_passer_at_fixed_work([Fraction(0), Fraction(X)], stream) in {0, 1}


def signed(number, sign=1):
    return number << 1 | sign


@pytest.mark.parametrize("sign", [0, 1])
def test_laplace_noises_that_come_out_equal_leave_the_row_undecided(sign):
    first = edge(mp.mpf(0.1), 63)
    ratio = chance(X) if sign else 1 / chance(X)  # −log U₁ − x = −log U₀, or log U₁ − x = log U₀

    def words(off):
        return signed(first, sign), signed(edge(ratio * first, 0, off), sign)

    def kernel(off):
        return picks.pick_laplace(frozen(0.0, -X), 0.0, 1.0, tape_of(*words(off)), FILTER_WIDTH)

    def fractions(off):
        return exact.pick_noisy_max("laplace", [Fraction(0), Fraction(X)], 2, stream_of(*words(off)))

    assert {kernel(off) for off in (0.0, NEAR, -NEAR)} == {picks.UNRESOLVED}
    smaller, larger = (
        (1, 0) if sign else (0, 1)
    )  # a smaller U is a larger noise, and pushes in its sign's direction
    assert kernel(-CLEAR) == fractions(-CLEAR) == fractions(-NEAR) == smaller
    assert kernel(CLEAR) == fractions(CLEAR) == fractions(NEAR) == larger


def test_laplace_noise_of_hardly_any_bits_leaves_the_row_undecided():
    for number in (0, 31):
        tape = tape_of(signed(2**62), signed(number))
        assert picks.pick_laplace(frozen(0.0, -X), 0.0, 1.0, tape, FILTER_WIDTH) == picks.UNRESOLVED
    assert exact.pick_noisy_max("laplace", [Fraction(0), Fraction(X)], 2, stream_of(signed(2**62), signed(0))) == 1


GO_ON, STOP = 2**32 - 1, 0


def stopping(*words, noise=LAPLACE, scores=(0.0, -1.0), widths=(1.0, 2.0), gamma=0.3, eta=1.0):
    tape = tape_of(*words)
    scores, widths = frozen(*scores), frozen(*widths)
    kernel = picks.pick_by_random_stopping(noise, scores, scores.max(), widths, 1.0, gamma, eta, tape, FILTER_WIDTH)
    stream = stream_of(*words)
    return kernel, exact.pick_by_random_stopping(NOISES[noise], scores, widths, Fraction(1), gamma, eta, stream)


@pytest.mark.parametrize("noise", [LAPLACE, EXPONENTIAL])
def test_draws_that_come_out_equal_leave_random_stopping_undecided(noise):
    first = mp.mpf(0.3)
    second = mp.sqrt(first) * mp.exp(-mp.mpf(0.5))  # −2 log U₁ − 1 = −log U₀

    def words(off):
        noises = signed(edge(first, 63)), signed(edge(second, 63, off))
        return index(0, 2, GO_ON), noises[0], index(1, 2, STOP), noises[1]

    assert stopping(*words(0.0), noise=noise)[0] == picks.UNRESOLVED
    assert stopping(*words(-CLEAR), noise=noise) == (1, 1)
    assert stopping(*words(CLEAR), noise=noise) == (0, 0)
    assert stopping(*words(-NEAR), noise=noise) == (picks.UNRESOLVED, 1)
    assert stopping(*words(NEAR), noise=noise) == (picks.UNRESOLVED, 0)


def test_a_stopping_coin_on_the_edge_leaves_the_row_undecided():
    threshold = int(Fraction(0.3) * 2**32)
    later = index(0, 2, STOP), signed(2**40)  # a large noise, if there is a second draw
    for rest, expected in ((threshold - 1, 1), (threshold, picks.UNRESOLVED), (threshold + 1, 0)):
        kernel, fractions = stopping(index(1, 2, rest), signed(2**62), *later)
        assert kernel == expected
        assert fractions in ({0, 1} if expected < 0 else {expected})


def test_a_stopping_probability_that_is_a_fraction_of_32_bits_is_never_in_doubt():
    later = index(0, 2, STOP), signed(2**40)
    assert stopping(index(1, 2, 2**30 - 1), signed(2**62), *later, gamma=0.25) == (1, 1)
    assert stopping(index(1, 2, 2**30), signed(2**62), *later, gamma=0.25) == (0, 0)


@pytest.mark.parametrize("eta", [0.0, -0.5, 4.0])
def test_an_inverted_number_of_draws_on_the_edge_leaves_the_row_undecided(eta):
    mp.dps = 60
    gamma = mp.mpf(0.2)
    once = (1 - gamma) * (eta / (gamma**-eta - 1) if eta else -1 / mp.log(gamma))  # Pr[K = 1]
    twice = once * (1 + (1 - gamma) * (1 + mp.mpf(eta)) / 2)  # Pr[K ≤ 2]

    def pick(p, off, draws_before):
        noisy = [index(1, 2), signed(2**62), index(1, 2), signed(2**61)][: 2 * draws_before]
        noisy += [index(0, 2), signed(2**30), index(0, 2), signed(2**31)]
        return stopping(edge(p, off=off), *noisy, gamma=0.2, eta=eta)

    for p, drawn in ((once, 1), (twice, 2)):
        assert pick(p, 0.0, drawn)[0] == picks.UNRESOLVED
        assert pick(p, -1e-8, drawn) == (1, 1)
        assert pick(p, 1e-8, drawn)[1] == 0


def test_a_noisy_draw_level_with_a_draw_without_noise_leaves_the_row_undecided():
    level = chance(1.0)  # −1 + 2 · (−log U) = 1 where U = 1/e

    def words(off):
        return index(0, 2, GO_ON), index(1, 2, STOP), signed(edge(level, 63, off))

    settings = {"scores": (1.0, -1.0), "widths": (0.0, 2.0)}
    assert stopping(*words(0.0), **settings)[0] == picks.UNRESOLVED
    assert stopping(*words(-CLEAR), **settings) == (1, 1)
    assert stopping(*words(CLEAR), **settings) == (0, 0)
