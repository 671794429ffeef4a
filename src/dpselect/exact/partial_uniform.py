"""Lazily refined uniform random numbers, and exact comparisons of them with exponentials."""

from collections.abc import Callable, Iterable, Iterator
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import partial

FIRST_DIGITS = 40


class PartialUniform:
    """A uniform real number in [0, 1), known to some bits. More bits are drawn when a comparison needs them."""

    def __init__(self, leading: int, bits: int, further: Iterator[int]) -> None:
        self._leading = leading
        self._span = 1  # it lies in [leading, leading + span)/2^bits
        self.bits = bits
        """The number of known bits."""
        self._further = further

    @property
    def low(self) -> Fraction:
        """The smallest value it can have."""
        return Fraction(self._leading, 1 << self.bits)

    @property
    def high(self) -> Fraction:
        """An upper bound, which it cannot reach."""
        return Fraction(self._leading + self._span, 1 << self.bits)

    def refine(self) -> None:
        """Draw 64 more bits."""
        self._leading = (self._leading << 64) + next(self._further) * self._span
        self.bits += 64

    def split(self, parts: int) -> int:
        """Return which of ``parts`` equal parts of [0, 1) it lies in, and become its position in that part.

        The position is uniform in [0, 1) again, and independent of the part.
        """
        while (self._leading * parts >> self.bits) != ((self._leading + self._span) * parts - 1 >> self.bits):
            self.refine()
        index = self._leading * parts >> self.bits
        self._leading = self._leading * parts - (index << self.bits)
        self._span *= parts
        return index

    def move_to_octave(self, octave: int) -> None:
        """Become (1 + this number)/2^(octave + 1): uniform between 2^−(octave + 1) and 2^−octave."""
        self._leading += 1 << self.bits
        self.bits += octave + 1

    def move_below_octave(self, octave: int) -> None:
        """Become 2^−octave + (1 − 2^−octave) · this number: uniform between 2^−octave and 1."""
        self._leading = (1 << self.bits) + self._leading * (2**octave - 1)
        self._span *= 2**octave - 1
        self.bits += octave


def bernoulli_exp(uniform: PartialUniform, x: Fraction) -> bool:
    """Return whether a uniform real number is below exp(−x): a Bernoulli draw of exactly that probability."""
    while x >= uniform.bits:  # exp(−x) < 2^−bits: any set bit decides, and exp(−x) is not needed
        if uniform.low > 0:
            return False
        uniform.refine()
    return is_below(uniform, partial(exp_bounds, x))


def is_below(uniform: PartialUniform, bounds: Callable[[int], Iterable[Fraction]]) -> bool:
    """Return whether a uniform real number is below another that has bounds of any number of digits."""
    digits = FIRST_DIGITS
    while True:
        low, high = bounds(digits)
        if uniform.high <= low:
            return True
        if uniform.low >= high:
            return False
        uniform.refine()
        digits *= 2


def exp_bounds(x: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Return bounds on exp(−x) that agree in about ``digits`` digits.

    ``decimal`` rounds ``exp`` correctly. Its argument is bracketed first, and the results are widened by one unit
    in the last place.
    """
    context = wide_context(digits)
    # `-` would round to the precision of the caller's context; `copy_negate` does not round.
    low = context.exp(_divide(x, digits, ROUND_CEILING).copy_negate()).next_minus(context)
    high = context.exp(_divide(x, digits, ROUND_FLOOR).copy_negate()).next_plus(context)
    return max(Fraction(0), Fraction(low)), Fraction(high)


def log_bounds(x: Fraction, digits: int) -> tuple[Decimal, Decimal]:
    """Return bounds on log(x), x > 0."""
    if x == 1:
        return Decimal(0), Decimal(0)
    context = wide_context(digits)
    low = context.ln(_divide(x, digits, ROUND_FLOOR)).next_minus(context)
    high = context.ln(_divide(x, digits, ROUND_CEILING)).next_plus(context)
    return low, high


def wide_context(digits: int, rounding: str | None = None) -> Context:
    """Return an independent context: no limits on exponents, and none of the caller's traps."""
    return Context(prec=digits, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


def _divide(x: Fraction, digits: int, rounding: str) -> Decimal:
    return wide_context(digits, rounding).divide(Decimal(x.numerator), Decimal(x.denominator))


def passes(uniform: PartialUniform, gap: Fraction | None) -> bool:
    """Return whether a candidate passes: with probability exp(−gap), and never if the gap is infinite."""
    return gap is not None and bernoulli_exp(uniform, gap)
