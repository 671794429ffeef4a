"""Two arms with clipped Gaussian rewards, which change places."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Clip", "Problem"]

FloatArray: TypeAlias = NDArray[np.float64]
Clip: TypeAlias = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """How long it lasts, when the arms change places, and what they pay."""

    horizon: int = 50_000
    shift: int = 30_000
    """After how many steps the arms change places."""
    means: tuple[float, float] = (0.2, 0.8)
    deviations: tuple[float, float] = (0.1, 0.3)

    def arm(self, arm: int, *, shifted: bool) -> NormalDist:
        """Return the distribution of an arm's reward before clipping."""
        place = 1 - arm if shifted else arm
        return NormalDist(self.means[place], self.deviations[place])

    def rewards(self, repetitions: int, rng: np.random.Generator) -> FloatArray:
        """Return what each arm would pay in each step and repetition, before clipping: (steps, repetitions, arms).

        Policies that share this table meet the same luck: their differences are known better than their earnings.
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
