"""Random real numbers, and comparisons of them with exponentials, decided exactly."""

from collections.abc import Iterator
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

__all__ = [
    "FIRST_DIGITS",
    "PartialUniform",
    "bernoulli_exp",
    "exp_bounds",
    "largest_priority",
    "log_bounds",
    "passes",
    "wide_context",
]

FIRST_DIGITS = 40


class PartialUniform:
    """A uniform real number in [0, 1), known to some bits; more are drawn when a comparison asks for them."""

    def __init__(self, leading: int, bits: int, further: Iterator[int]) -> None:
        self._leading = leading
        self._span = 1  # it lies in [leading, leading + span)/2^bits
        self.bits = bits
        """How many bits are known."""
        self._further = further

    @property
    def low(self) -> Fraction:
        """The smallest number it can be."""
        return Fraction(self._leading, 1 << self.bits)

    @property
    def high(self) -> Fraction:
        """What it is certainly below."""
        return Fraction(self._leading + self._span, 1 << self.bits)

    def refine(self) -> None:
        """Draw 64 more bits."""
        self._leading = (self._leading << 64) + next(self._further) * self._span
        self.bits += 64

    def split(self, parts: int) -> int:
        """Return in which of so many equal parts of [0, 1) it lies, and become its place in that part.

        The place is uniform in [0, 1) again, and independent of the part.
        """
        while (self._leading * parts >> self.bits) != ((self._leading + self._span) * parts - 1 >> self.bits):
            self.refine()
        index = self._leading * parts >> self.bits
        self._leading = self._leading * parts - (index << self.bits)
        self._span *= parts
        return index

    def move_to_octave(self, octave: int) -> None:
        """Become (1 + itself)/2^(octave + 1): uniform between 2^−(octave + 1) and 2^−octave."""
        self._leading += 1 << self.bits
        self.bits += octave + 1


def bernoulli_exp(uniform: PartialUniform, x: Fraction) -> bool:
    """Decide whether a uniform real number is below exp(−x): a coin of exactly that probability."""
    digits = FIRST_DIGITS
    while x >= uniform.bits:  # exp(−x) < 2^−bits: any bit that is set decides, and exp(−x) is not needed
        if uniform.low > 0:
            return False
        uniform.refine()
    while True:
        low, high = exp_bounds(x, digits)
        if uniform.high <= low:
            return True
        if uniform.low >= high:
            return False
        uniform.refine()
        digits *= 2


def exp_bounds(x: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Return bounds on exp(−x) that agree in about ``digits`` digits.

    ``decimal`` rounds ``exp`` correctly; its argument is bracketed first, and the results are widened by a
    unit in the last place.
    """
    context = wide_context(digits)
    # `copy_negate` and not `-`, which would round to the precision of whoever is calling.
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
    """Return a context of its own: no limits on exponents, and no traps of whoever is calling."""
    return Context(prec=digits, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


def _divide(x: Fraction, digits: int, rounding: str) -> Decimal:
    return wide_context(digits, rounding).divide(Decimal(x.numerator), Decimal(x.denominator))


def passes(uniform: PartialUniform, gap: Fraction | None) -> bool:
    """Decide whether a candidate passes: with probability exp(−gap), and never if the gap is infinite."""
    return gap is not None and bernoulli_exp(uniform, gap)


def largest_priority(candidates: list[tuple[int, PartialUniform]]) -> int:
    """Return whose random real number is the largest, looking at as many bits as that takes."""
    while len(candidates) > 1:
        reached = max(priority.low for _, priority in candidates)
        candidates = [(a, priority) for a, priority in candidates if priority.high > reached]
        for _, priority in candidates:
            priority.refine()
    return candidates[0][0]
