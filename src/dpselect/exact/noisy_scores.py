"""Noisy scores, and the largest of them."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from dpselect.exact.partial_uniform import FIRST_DIGITS, PartialUniform, log_bounds


class NoisyScore(NamedTuple):
    """A noisy score: location + sign · scale · (−log U)."""

    candidate: int
    sign: int
    uniform: PartialUniform
    scale: Fraction
    location: Fraction

    def __repr__(self) -> str:
        return f"NoisyScore({self.candidate})"  # the location and the noise are private

    def bounds(self, digits: int) -> tuple[Fraction, Fraction]:
        """Return bounds on the noisy score, tighter with more digits and more bits of U."""
        least = -Fraction(log_bounds(self.uniform.high, digits)[1])
        most = -Fraction(log_bounds(self.uniform.low, digits)[0]) if self.uniform.low else None
        if most is None:  # no bit of U is set yet
            self.uniform.refine()
            return self.bounds(digits)
        ends = (self.sign * self.scale * least, self.sign * self.scale * most)
        return self.location + min(ends), self.location + max(ends)


def largest(scores: Sequence[NoisyScore], floor: Fraction | None = None) -> int:
    """Return the candidate of the largest noisy score, or −1 if that is below ``floor``."""
    digits = FIRST_DIGITS
    while True:
        bounds = [score.bounds(digits) for score in scores]
        reached = max(low for low, _ in bounds)
        if floor is not None:
            if max(high for _, high in bounds) < floor:
                return -1
            reached = max(reached, floor)
        scores = [c for c, (_, high) in zip(scores, bounds, strict=True) if high >= reached]
        above_floor = floor is None or max(low for low, _ in bounds) > floor
        if len({score.candidate for score in scores}) == 1 and above_floor:
            return scores[0].candidate
        for score in scores:
            score.uniform.refine()
        digits *= 2
