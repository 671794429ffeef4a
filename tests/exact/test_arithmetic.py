"""The arithmetic of exact samplers: coins that report when they are unsure, intervals, and gaps.

Expected values come from mpmath and from fractions.
"""

import decimal
import random
from fractions import Fraction
from itertools import repeat

import numpy as np
import pytest
import reference
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mp

from dpselect.exact.partial_uniform import PartialUniform, bernoulli_exp, exp_bounds, log_bounds
from dpselect.kernels import coins
from dpselect.kernels.gaps import FAR
from dpselect.laws.base import FILTER_ERROR

GAP_ERROR = Fraction(1, 2**42)
"""The largest error of a trusted gap below FAR."""

ROUNDING = 2.0**-45
"""The error of adding two tabulated logarithms; samplers allow for 2⁻⁴⁰."""


def power(x, bits):
    """Return exp(−x) · 2^bits to 120 digits, for a float or a fraction."""
    mp.dps = 120
    if x == np.inf:
        return mp.zero
    return mp.exp(-reference.real(Fraction(x))) * mp.mpf(2) ** bits


# --- Coins ------------------------------------------------------------------------------------------------


def bernoulli_exp_interval(number, bits, x):
    """Decide U < exp(−x) if the first bits of U are ``number``, converted to a float as in the samplers."""
    high, low = divmod(number, 2**64)
    return coins.bernoulli_exp_interval(float(high) * 2.0**64 + float(low), 1.0, 2.0**bits, x, FILTER_ERROR)


def assert_right(number, bits, x):
    """A decision must hold for every real number with these bits and for every gap within the error of this one."""
    verdict = bernoulli_exp_interval(number, bits, x)
    least, most = (power(x + sign * GAP_ERROR if x < FAR else x, bits) for sign in (Fraction(1), Fraction(-1)))
    if verdict == coins.PASS:
        assert number + 1 <= least
    elif verdict == coins.FAIL:
        assert number >= most
    else:
        doubt = mp.mpf(2) ** -39
        assert number * (1 - doubt) <= most
        assert (number + 1) * (1 + doubt) >= least


@settings(max_examples=1500)
@given(
    bits=st.sampled_from([8, 64, 72]),
    x=st.one_of(
        st.sampled_from([0.0, 1e-300, 1e-12, 44.3, 63.9, 64.1, 745.0, 746.0, np.inf]), st.floats(0.0, 800.0)
    ),
    fraction=st.fractions(0, 1),
    nudge=st.sampled_from([None, *(sign * 2.0**-e for e in range(35, 46) for sign in (1, -1)), 0.0]),
    step=st.integers(-2, 2),
)
def test_a_coin_is_decided_correctly_or_not_at_all(bits, x, fraction, nudge, step):
    number = int(fraction * (2**bits - 1)) if nudge is None else int(power(x, bits) * (1 + mp.mpf(nudge)))
    assert_right(min(max(0, number + step), 2**bits - 1), bits, x)


@pytest.mark.parametrize("x", [1e-10, 0.3, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("bits", [64, 72])
def test_a_coin_that_lands_on_its_probability_is_unsure_and_passes_below_and_fails_above(x, bits):
    edge = int(power(x, bits))
    apart = max(1, edge // 2**38)
    assert bernoulli_exp_interval(edge, bits, x) == coins.UNSURE
    assert bernoulli_exp_interval(edge - apart - 2, bits, x) == coins.PASS
    assert x == 1e-10 or bernoulli_exp_interval(edge + apart + 2, bits, x) == coins.FAIL


def test_a_coin_is_unsure_on_one_side_or_the_other_of_the_whole_interval_of_doubt():
    edge = int(power(0.7, 64))
    doubtful = [k for k in range(-4096, 4097) if bernoulli_exp_interval(edge + k * 2**13, 64, 0.7) == coins.UNSURE]
    assert doubtful == list(range(doubtful[0], doubtful[-1] + 1))
    width = float(edge) * FILTER_ERROR / 2**13
    assert -doubtful[0] == pytest.approx(width, rel=0.02)
    assert doubtful[-1] == pytest.approx(width, rel=0.02)


@pytest.mark.parametrize("x", [64.1, 745.0, 1e300, np.inf])
def test_only_a_coin_without_a_bit_set_leaves_a_far_candidate_in_doubt(x):
    for bits in (64, 72):
        assert bernoulli_exp_interval(0, bits, x) == coins.UNSURE
        assert bernoulli_exp_interval(1, bits, x) == coins.FAIL


def test_a_gap_that_is_not_known_decides_nothing():
    assert {bernoulli_exp_interval(number, 64, np.nan) for number in (0, 1, 2**63, 2**64 - 1)} == {coins.UNSURE}


@given(st.integers(32, 2**63 - 1))
@example(32)
@example(2**63 - 1)
def test_exponential_noise_is_within_its_error(number):
    mp.dps = 60
    value, error = coins.draw_exponential(np.uint64(number), np.uint64(1))
    least, most = (-mp.log(mp.mpf(end) / 2**63) for end in (number + 1, number))
    assert value - error <= least
    assert most <= value + error


@given(
    st.integers(0, 2**63 - 1),
    st.one_of(st.integers(1, 2**63), st.integers(0, 62).map(lambda e: 2**e)),
    st.booleans(),
)
@example(2**63 - 2, 2, False)
@example(0, 1, False)
@example(1, 1, False)
@example(2**62, 2**53, False)
@example(2**62 + 2**53 - 1, 2**53 - 1, False)
def test_bounds_on_exponential_noise_hold_for_every_number_of_the_span(number, span, fine):
    mp.dps = 60
    span = min(span, 2**63 - number)
    least, most = coins.exponential_bounds(np.uint64(number), np.uint64(span), fine)
    assert least <= -mp.log(mp.mpf(number + span) / 2**63) + ROUNDING
    if number == 0:
        assert most == np.inf
    else:
        assert -mp.log(mp.mpf(number) / 2**63) <= most + ROUNDING


def test_bounds_on_exponential_noise_are_close_where_the_span_is_small():
    for number in (2**62, 2**63 - 2**40, 2**50 + 7, 2**45):
        least, most = coins.exponential_bounds(np.uint64(number), np.uint64(2**30), False)
        assert most - least < 2 / 512 + 1e-12


def test_exponential_noise_of_hardly_any_bits_is_unsure():
    assert {coins.draw_exponential(np.uint64(number), np.uint64(1))[1] for number in range(32)} == {np.inf}
    assert {coins.draw_exponential(np.uint64(number), np.uint64(2))[1] for number in range(64)} == {np.inf}


# --- Splitting --------------------------------------------------------------------------------------------

PARTS = st.one_of(st.integers(1, 2**32), st.sampled_from([1, 2, 3, 500, 2**31, 2**32 - 1, 2**32]))


@given(st.integers(0, 2**64 - 1), PARTS, st.integers(-2, 2))
def test_a_word_is_split_into_an_index_and_a_rest_or_does_not_tell(word, parts, step):
    for near_edge in (False, True):
        number = min(max(0, -(-(word * parts >> 64) * 2**64 // parts) + step), 2**64 - 1) if near_edge else word
        index, rest = coins.split(np.uint64(number), parts)
        first, last = Fraction(number * parts, 2**64), Fraction((number + 1) * parts, 2**64)
        assert index == (first.__floor__() if last <= first.__floor__() + 1 else coins.UNSURE)
        assert Fraction(int(rest), 2**64) == first - first.__floor__()


@given(st.integers(0, 2**64 - 1), st.lists(st.integers(0, 2**64 - 1), min_size=8, max_size=8), PARTS, PARTS)
def test_a_random_real_number_is_split_into_indices_and_the_place_that_is_left(word, further, parts, more):
    real = PartialUniform(word, 64, iter(further))
    indices = real.split(parts), real.split(more)
    real.refine()
    value = Fraction(int("".join(f"{part:064b}" for part in [word, *further]), 2), 2 ** (64 * 9))
    expected = (value * parts).__floor__()
    value = value * parts - expected
    assert indices == (expected, (value * more).__floor__())
    value = value * more - indices[1]
    assert real.low <= value < real.high
    assert real.high - real.low <= Fraction(parts * more, 2**128)


@given(st.integers(0, 2**64 - 1), PARTS, st.floats(0, 50), st.integers(-40, 40))
def test_a_coin_with_a_span_is_decided_correctly_or_not_at_all(word, span, x, step):
    for number in (word, min(max(0, int(power(x, 64)) + step * span // 16), 2**64 - 1)):
        top = min(span, 2**64 - number)
        verdict = coins.bernoulli_exp(np.uint64(number), span, x, FILTER_ERROR)
        least, most = (power(x + sign * GAP_ERROR, 64) for sign in (Fraction(1), Fraction(-1)))
        if verdict == coins.PASS:
            assert number + top <= least
        elif verdict == coins.FAIL:
            assert number >= most
        else:
            doubt = mp.mpf(2) ** -39
            assert number * (1 - doubt) <= most
            assert (number + span) * (1 + doubt) >= least


# --- Real numbers -----------------------------------------------------------------------------------------


def words(number, count):
    """Return an integer's lowest ``count`` words, highest first."""
    return [number >> 64 * place & (2**64 - 1) for place in reversed(range(count))]


def test_random_bits_are_compared_exactly_with_exponentials():
    rng = random.Random(5)  # noqa: S311
    for _ in range(3000):
        x = Fraction(rng.expovariate(0.2)) * rng.choice([1, Fraction(1, 3), Fraction(1, 10**9)])
        edge = int(power(x, 64))
        leading = rng.choice([rng.getrandbits(64), edge, max(0, edge - 1), min(edge + 1, 2**64 - 1)])
        further = [rng.getrandbits(64) for _ in range(3)]
        number = leading << 192 | further[0] << 128 | further[1] << 64 | further[2]
        assert bernoulli_exp(PartialUniform(leading, 64, iter(further)), x) == (number < power(x, 256))


@pytest.mark.parametrize("known", [1, 2, 3, 4])
@pytest.mark.parametrize("x", [Fraction(1, 7), Fraction(1), Fraction(0.1), Fraction(41), Fraction(300)])
def test_bits_that_agree_with_an_exponential_for_long_are_decided_by_the_first_that_do_not(x, known):
    mp.dps = 300
    edge = int(mp.exp(-reference.real(x)) * mp.mpf(2) ** (64 * known))
    first, *rest = words(edge, known)
    below = PartialUniform(first, 64, iter([*rest, *[0] * 12]))
    above = PartialUniform(first, 64, iter([*rest, *[2**64 - 1] * 12]))
    assert bernoulli_exp(below, x)
    assert not bernoulli_exp(above, x)


def test_every_number_is_below_one_and_hardly_any_is_below_a_minute_probability():
    assert bernoulli_exp(PartialUniform(2**64 - 1, 64, repeat(2**64 - 2)), Fraction(0))
    assert bernoulli_exp(PartialUniform(0, 64, repeat(0)), Fraction(150))
    assert not bernoulli_exp(PartialUniform(0, 64, iter([0, 0, 1])), Fraction(10**6))


def test_comparisons_do_not_depend_on_how_the_caller_has_set_up_decimals():
    with decimal.localcontext(prec=3):
        low, high = exp_bounds(Fraction(0.123456), 40)
    assert low <= Fraction(float(power(0.123456, 0))) * (1 + Fraction(1, 2**52))
    assert high >= Fraction(float(power(0.123456, 0))) * (1 - Fraction(1, 2**52))


def test_bounds_enclose_exponentials_and_logarithms_tightly():
    rng = random.Random(6)  # noqa: S311
    for _ in range(1000):
        digits = rng.choice([20, 40, 80, 160])
        x = Fraction(rng.expovariate(1)) * Fraction(10) ** rng.randrange(-12, 3) / rng.randrange(1, 99)
        mp.dps = digits + 40
        low, high = (reference.real(end) for end in exp_bounds(x, digits))
        value, slack = mp.exp(-reference.real(x)), mp.mpf(10) ** (3 - digits)
        assert low <= value <= high
        assert high - low <= slack * value * (1 + reference.real(x))
        y = Fraction(rng.getrandbits(63) + 1, 2**63) ** rng.choice([1, 3]) * rng.choice([1, Fraction(1, 2**900)])
        low, high = (reference.real(Fraction(end)) for end in log_bounds(y, digits))
        value = mp.log(reference.real(y))
        assert low <= value <= high
        assert high - low <= slack * (1 + abs(value))


def test_a_random_real_number_is_narrowed_by_64_bits_at_a_time():
    number = PartialUniform(5, 3, iter([7, 2**64 - 1]))
    assert (number.low, number.high) == (Fraction(5, 8), Fraction(6, 8))
    number.refine()
    assert (number.low, number.high) == (Fraction(5 * 2**64 + 7, 2**67), Fraction(5 * 2**64 + 8, 2**67))
    number.refine()
    assert number.high - number.low == Fraction(1, 2**131)
