"""Two arms with clipped Gaussian rewards that swap at a shift."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeAlias

import numpy as np

from experiments.arrays import FloatArray, IndexArray

__all__ = ["Clip", "Problem"]

Clip: TypeAlias = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """The length, the time of the shift, and the rewards."""

    horizon: int = 50_000
    shift: int = 30_000
    """The number of steps after which the arms swap."""
    means: tuple[float, float] = (0.2, 0.8)
    deviations: tuple[float, float] = (0.1, 0.3)

    def arm(self, arm: int, *, shifted: bool) -> NormalDist:
        """Return the distribution of an arm's reward before clipping."""
        place = 1 - arm if shifted else arm
        return NormalDist(self.means[place], self.deviations[place])

    def rewards(self, repetitions: int, rng: np.random.Generator) -> FloatArray:
        """Return the reward of each arm in each step and repetition, before clipping: (steps, repetitions, arms).

        Policies that share this table have common random numbers: their differences vary less than their earnings.
        """
        table = rng.standard_normal((self.horizon, repetitions, 2))
        for shifted, steps in ((False, slice(self.shift)), (True, slice(self.shift, None))):
            for arm in (0, 1):
                law = self.arm(arm, shifted=shifted)
                table[steps, :, arm] = law.mean + law.stdev * table[steps, :, arm]
        return table

    def clipped_mean(self, arm: int, clip: Clip, *, shifted: bool) -> float:
        """Return an arm's mean reward after clipping."""
        law, standard = self.arm(arm, shifted=shifted), NormalDist()
        low, high = ((end - law.mean) / law.stdev for end in clip)
        inside = law.mean * (standard.cdf(high) - standard.cdf(low))
        inside += law.stdev * (standard.pdf(low) - standard.pdf(high))
        return inside + clip[0] * standard.cdf(low) + clip[1] * (1 - standard.cdf(high))

    def clipped_quantile(self, arm: int, level: float, clip: Clip, *, shifted: bool) -> float:
        """Return a quantile of an arm's reward after clipping."""
        return min(max(self.arm(arm, shifted=shifted).inv_cdf(level), clip[0]), clip[1])

    def truth(self, arm: int, quantity: str, times: IndexArray) -> FloatArray:
        """Return an arm's true ``mean``, ``p10`` or ``p90`` (10th, 90th percentile) at each time, for [0, 1]."""
        clip = (0.0, 1.0)

        def at(*, shifted: bool) -> float:
            if quantity == "mean":
                return self.clipped_mean(arm, clip, shifted=shifted)
            return self.clipped_quantile(arm, {"p10": 0.1, "p90": 0.9}[quantity], clip, shifted=shifted)

        return np.where(times <= self.shift, at(shifted=False), at(shifted=True))
