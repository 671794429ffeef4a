"""Noisy values that compete for being the largest."""

from fractions import Fraction
from typing import NamedTuple

from dpselect.exact.reals import FIRST_DIGITS, UniformReal, log_bounds

__all__ = ["Contender", "largest"]


class Contender(NamedTuple):
    """A noisy value: location + sign · scale · (−log U)."""

    candidate: int
    sign: int
    uniform: UniformReal
    scale: Fraction
    location: Fraction

    def __repr__(self) -> str:
        return f"Contender({self.candidate})"  # where it stands is private, and so is its noise

    def bounds(self, digits: int) -> tuple[Fraction, Fraction]:
        """Return bounds on the value, tighter with more digits and more bits of U."""
        least = -Fraction(log_bounds(self.uniform.high, digits)[1])
        most = -Fraction(log_bounds(self.uniform.low, digits)[0]) if self.uniform.low else None
        if most is None:  # no bit of U is set yet
            self.uniform.refine()
            return self.bounds(digits)
        ends = (self.sign * self.scale * least, self.sign * self.scale * most)
        return self.location + min(ends), self.location + max(ends)


def largest(contenders: list[Contender], floor: Fraction | None = None) -> int:
    """Return the candidate of the largest value, or −1 if that is below ``floor``."""
    digits = FIRST_DIGITS
    while True:
        bounds = [contender.bounds(digits) for contender in contenders]
        reached = max(low for low, _ in bounds)
        if floor is not None:
            if max(high for _, high in bounds) < floor:
                return -1
            reached = max(reached, floor)
        contenders = [c for c, (_, high) in zip(contenders, bounds, strict=True) if high >= reached]
        above_floor = floor is None or max(low for low, _ in bounds) > floor
        if len({contender.candidate for contender in contenders}) == 1 and above_floor:
            return contenders[0].candidate
        for contender in contenders:
            contender.uniform.refine()
        digits *= 2
