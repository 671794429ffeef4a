"""Random bits made to land where floats cannot decide: every sampler must notice, and decide beside it."""

from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp

from dpselect import exact
from dpselect.exact import ExactStream
from dpselect.kernels import chacha, draws, largest_draws, picks, rows
from dpselect.kernels.arrays import Units
from dpselect.kernels.lineups import KNOWN, Lineup
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


def lineup_of(*gaps):
    values = frozen(*(-gap for gap in gaps))
    return Lineup(values, 0.0, 1.0, KNOWN, values, 0.0, 0.0, 0.0)


def source_of(tape, size=2):
    return picks.Source(tape, FILTER_WIDTH, np.zeros(size, dtype=np.bool_), np.zeros(size + 1, dtype=np.int64))


def visit(*words, x=X):
    source = source_of(tape_of(*words))
    found = picks.pick_passer(lineup_of(0.0, x), 2, source)
    assert not source.seen.any()
    return found


def propose(*words, x=X):
    return picks.pick_until_pass(lineup_of(0.0, x), source_of(tape_of(*words)))


def reply(*words, x=X):
    return rows.keep_proposal(2, 0, x, tape_of(*words), FILTER_WIDTH)


@pytest.mark.parametrize("pick", [visit, propose, reply], ids=["visit", "propose", "reply"])
@pytest.mark.parametrize("x", [1e-9, 0.5, X, 15.0])
def test_a_coin_on_the_edge_leaves_the_row_undecided_and_one_beside_it_does_not(pick, x):
    def after(off):
        return pick(joined(1, 2, edge(chance(x), off=off)), joined(0, 2, ZERO_GAP_PASSES), x=x)

    assert {after(off) for off in (0.0, NEAR, -NEAR)} == {picks.UNRESOLVED}
    assert after(-CLEAR) == 1
    assert x == 1e-9 or after(CLEAR) == 0


@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
@pytest.mark.parametrize(
    ("off", "expected"), [(-CLEAR, {1}), (CLEAR, {0}), (0.0, {0, 1}), (NEAR, {0}), (-NEAR, {1})]
)
def test_exact_samplers_decide_coins_on_the_edge_and_agree_beside_it(noise, off, expected):
    stream = stream_of(joined(1, 2, edge(chance(X), off=off)), joined(0, 2, ZERO_GAP_PASSES))
    assert exact.pick_noisy_max(noise, [Fraction(0), Fraction(X)], 2, stream) in expected
    stream = stream_of(joined(1, 2, edge(chance(X), off=off)), joined(0, 2, ZERO_GAP_PASSES))
    assert exact.report_sign(0, X, stream) in expected


@pytest.mark.parametrize("x", [0.001, X, 20.0])
def test_a_scanned_candidate_on_the_edge_is_undecided(x):
    for off, expected in ((0.0, draws.UNSURE), (-CLEAR, draws.PASS), (CLEAR, draws.FAIL)):
        byte, word = divmod(edge(chance(x), 72, off), 2**64)
        after_zero, own = (word, 0) if byte == 0 else (0, word)
        tape = tape_of()
        tape[chacha.LOADED_WORDS] = 0
        tape[chacha.WORDS + 7] = own
        verdict = picks.judge_candidate(tape, np.uint64(byte), np.uint64(after_zero), 7, x, FILTER_WIDTH)
        assert verdict == expected


def test_a_byte_that_decides_needs_no_word():
    tape = tape_of()
    assert picks.judge_candidate(tape, np.uint64(255), np.uint64(0), 7, X, FILTER_WIDTH) == draws.FAIL
    assert picks.judge_candidate(tape, np.uint64(1), np.uint64(0), 7, X, FILTER_WIDTH) == draws.PASS
    assert tape[chacha.LOADED_WORDS] == chacha.NO_GROUP


def test_a_word_that_does_not_tell_its_index_leaves_the_row_undecided():
    third = 2**64 // 3  # the bits that follow make it 0 or 1

    def pick_all(word):
        source = source_of(tape_of(word), size=3)
        tossed = picks.pick_passer(lineup_of(0.0, 0.0, 0.0), 3, source)
        proposed = picks.pick_until_pass(lineup_of(0.0, 0.0, 0.0), source_of(tape_of(word), size=3))
        replied = rows.keep_proposal(3, 1, 0.0, tape_of(word), FILTER_WIDTH)
        return {tossed, proposed, replied}

    assert pick_all(third) == {picks.UNRESOLVED}
    assert pick_all(third // 2) == {0}
    assert pick_all(third + 2) == {1}
    assert exact.pick_noisy_max("gumbel", [Fraction(0)] * 3, 3, stream_of(third)) in {0, 1}


def test_a_byte_of_zero_is_followed_by_the_next_word_and_any_other_by_the_candidates_own():
    stream = stream_of(123)
    tape = tape_of()
    chacha.load_bytes(tape, 0)
    bytes_of = [int(chacha.candidate_byte(tape, a)) for a in range(chacha.GROUP_BYTES)]
    zero, other = bytes_of.index(0), next(a for a, byte in enumerate(bytes_of) if byte)
    own = int(chacha.candidate_word(tape, other))
    assert stream.candidate_uniform(zero).low == Fraction(123, 2**72)
    assert stream.candidate_uniform(other).low == Fraction((bytes_of[other] << 64) + own, 2**72)


def test_fixed_work_is_undecided_by_a_coin_on_the_edge_and_by_equal_priorities():
    def pick(coin, first, second):
        tape = tape_of(ZERO_GAP_PASSES, first, coin, second)
        return picks.pick_passer_at_fixed_work(lineup_of(0.0, X), source_of(tape))

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
        return picks.pick_laplace(lineup_of(0.0, X), source_of(tape_of(*words(off))))

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
        source = source_of(tape_of(signed(2**62), signed(number)))
        assert picks.pick_laplace(lineup_of(0.0, X), source) == picks.UNRESOLVED
    assert exact.pick_noisy_max("laplace", [Fraction(0), Fraction(X)], 2, stream_of(signed(2**62), signed(0))) == 1


def stopping_tape(tape, count, numbers, further):
    """Make a tape read this word for K, and these 32 bits and then 64 for draws."""
    packed = np.zeros(chacha.GROUP_WORDS * 2, dtype=np.uint32)
    packed[2 : 2 + len(numbers)] = numbers
    tape[chacha.BYTES : chacha.BYTES + chacha.GROUP_WORDS] = packed.view(np.uint64)
    tape[chacha.BYTES] = count
    tape[chacha.WORDS : chacha.WORDS + len(further)] = np.array(further, dtype=np.uint64)
    tape[chacha.LOADED_BYTES] = tape[chacha.LOADED_WORDS] = 0
    return tape


ONCE, TWICE, THRICE = (2**64 * np.array([0.1, 0.4, 0.6]) // 1).astype(np.uint64)
"""Words for which K is 1, 2 or 3 if γ = 0.3 and η = 1: Pr[K ≤ n] is 0.3, 0.51, 0.657."""


def stop(*reals, count=TWICE, noise=LAPLACE, scores=(0.0, -1.0), widths=(1.0, 2.0), gamma=0.3, eta=1.0):
    """Return what the kernel and its twin pick if draw i's random real number starts with the i-th 96 bits."""
    bits = count, [real >> 64 for real in reals], [real & 2**64 - 1 for real in reals]
    scores, widths = frozen(*scores), frozen(*widths)
    tape, stream = stopping_tape(tape_of(), *bits), stream_of()
    stopping_tape(stream._tape, *bits)
    top = scores.max()
    kernel = largest_draws.pick_by_random_stopping(noise, scores, top, widths, 1.0, gamma, eta, tape, FILTER_WIDTH)
    return kernel, exact.pick_by_random_stopping(NOISES[noise], scores, widths, Fraction(1), gamma, eta, stream)


def drawn(a, noise, sign=1):
    """Return 96 bits of a draw of candidate ``a`` of two, its noise being ±(−log W) with W = noise/2⁹⁴."""
    return joined(a, 2, (sign << 95) + (noise << 1), 96)


@pytest.mark.parametrize("noise", [LAPLACE, EXPONENTIAL])
def test_draws_that_come_out_equal_leave_random_stopping_undecided(noise):
    first = mp.mpf(0.3)
    second = mp.sqrt(first) * mp.exp(-mp.mpf(0.5))  # −2 log U₁ − 1 = −log U₀

    def draws_of(off):
        return drawn(0, edge(first, 94)), drawn(1, edge(second, 94, off))

    assert stop(*draws_of(0.0), noise=noise)[0] == picks.UNRESOLVED
    assert stop(*draws_of(-CLEAR), noise=noise) == (1, 1)
    assert stop(*draws_of(CLEAR), noise=noise) == (0, 0)
    assert stop(*draws_of(-NEAR), noise=noise) == (picks.UNRESOLVED, 1)
    assert stop(*draws_of(NEAR), noise=noise) == (picks.UNRESOLVED, 0)


THREE = {"scores": (0.0, -1.0, -40.0), "widths": (1.0, 2.0, 1.0)}


def test_a_draw_whose_first_bits_do_not_tell_its_sign_is_looked_at_again():
    """Below the edge candidate 0 has hardly any noise, downwards; above it an enormous one, upwards."""
    edge_of_sign, rival = 2**95 // 3, joined(1, 3, (1 << 95) + edge(chance(3.0), 95), 96)
    assert (edge_of_sign - 2**40) >> 64 == (edge_of_sign + 2**40) >> 64
    assert stop(edge_of_sign - 2**40, rival, **THREE) == (1, 1)
    assert stop(edge_of_sign + 2**40, rival, **THREE) == (0, 0)
    assert stop(edge_of_sign, rival, **THREE) == (picks.UNRESOLVED, 1)
    assert stop(edge_of_sign + 1, rival, **THREE) == (picks.UNRESOLVED, 0)


def test_a_draw_whose_first_bits_do_not_tell_its_candidate_is_looked_at_again():
    edge_of_candidate = 2**96 // 3
    assert (edge_of_candidate - 2**40) >> 64 == (edge_of_candidate + 2**40) >> 64
    assert stop(edge_of_candidate - 2**40, count=ONCE, **THREE) == (0, 0)
    assert stop(edge_of_candidate + 2**40, count=ONCE, **THREE) == (1, 1)
    assert stop(edge_of_candidate, count=ONCE, **THREE)[0] == picks.UNRESOLVED
    assert stop(edge_of_candidate + 1, count=ONCE, **THREE) == (picks.UNRESOLVED, 1)


@pytest.mark.parametrize(("count", "expected"), [(ONCE, 0), (TWICE, 1), (THRICE, 0)])
def test_as_many_draws_are_made_as_the_first_word_says(count, expected):
    reals = drawn(0, edge(chance(1.0), 94)), drawn(1, edge(chance(5.0), 94)), drawn(0, edge(chance(30.0), 94))
    assert stop(*reals, count=count) == (expected, expected)


def test_of_draws_without_noise_that_tie_the_first_counts():
    settings = {"scores": (1.0, 1.0), "widths": (0.0, 0.0)}
    assert stop(drawn(1, 5), drawn(0, 5), **settings) == (1, 1)
    assert stop(drawn(0, 5), drawn(1, 5), **settings) == (0, 0)


LATER = drawn(0, edge(chance(30.0), 94))
"""A large noise, if there is another draw."""


def test_a_geometric_number_of_draws_on_the_edge_leaves_the_row_undecided():
    mp.dps = 60
    for n in (1, 2, 10):
        reached = 1 - (1 - mp.mpf(0.3)) ** n  # Pr[K ≤ n]
        small = [drawn(1, edge(chance(2.0 + 0.1 * i), 94)) for i in range(n)]

        def pick(off, reached=reached, small=small):
            return stop(*small, LATER, count=edge(reached, off=off))

        assert pick(0.0)[0] == picks.UNRESOLVED
        assert pick(-1e-8) == (1, 1)
        assert pick(1e-8) == (0, 0)


@pytest.mark.parametrize("eta", [0.0, -0.5, 4.0])
def test_an_inverted_number_of_draws_on_the_edge_leaves_the_row_undecided(eta):
    mp.dps = 60
    gamma = mp.mpf(0.2)
    once = (1 - gamma) * (eta / (gamma**-eta - 1) if eta else -1 / mp.log(gamma))  # Pr[K = 1]
    twice = once * (1 + (1 - gamma) * (1 + mp.mpf(eta)) / 2)  # Pr[K ≤ 2]

    def pick(p, off, draws_before):
        small = [drawn(1, edge(chance(2.0 + 0.1 * i), 94)) for i in range(draws_before)]
        return stop(*small, LATER, count=edge(p, off=off), gamma=0.2, eta=eta)

    for p, count in ((once, 1), (twice, 2)):
        assert pick(p, 0.0, count)[0] == picks.UNRESOLVED
        assert pick(p, -1e-8, count) == (1, 1)
        assert pick(p, 1e-8, count)[1] == 0


def test_a_noisy_draw_level_with_a_draw_without_noise_leaves_the_row_undecided():
    level = chance(1.0)  # −1 + 2 · (−log U) = 1 where U = 1/e

    def draws_of(off):
        return joined(0, 2, 7, 96), drawn(1, edge(level, 94, off))

    settings = {"scores": (1.0, -1.0), "widths": (0.0, 2.0)}
    assert stop(*draws_of(0.0), **settings)[0] == picks.UNRESOLVED
    assert stop(*draws_of(-CLEAR), **settings) == (1, 1)
    assert stop(*draws_of(CLEAR), **settings) == (0, 0)
