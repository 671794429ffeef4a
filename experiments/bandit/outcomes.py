"""The table of runs as arrays, and means and medians with confidence intervals."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from scipy.special import bdtr, stdtrit

from experiments.arrays import FloatArray, IndexArray
from experiments.bandit.problem import Problem
from experiments.bandit.runs import POINTS
from experiments.bandit.styles import POLICY_STYLES
from experiments.tables import unique, where

__all__ = ["Estimate", "Median", "Outcomes", "estimate", "median"]

CONFIDENCE = 0.95


class Estimate(NamedTuple):
    """A mean over worlds, and half the length of its 95 % confidence interval (Student's t)."""

    mean: float
    margin: float

    def __str__(self) -> str:
        digits = 0 if abs(self.mean) >= 100 else 3
        return f"{self.mean:.{digits}f} ± {self.margin:.{digits}f}".replace("-", "−")

    @property
    def is_positive(self) -> bool:
        """Whether the whole interval is above 0."""
        return self.mean > self.margin


def estimate(values: FloatArray) -> Estimate:
    """Return the mean of one value for each world, with its interval."""
    quantile = float(stdtrit(values.size - 1, (1 + CONFIDENCE) / 2))
    return Estimate(float(values.mean()), quantile * float(values.std(ddof=1)) / values.size**0.5)


class Median(NamedTuple):
    """A median over worlds, and the ends of its 95 % confidence interval; any of them may be infinite."""

    middle: float
    low: float
    high: float

    def __str__(self) -> str:
        middle, low, high = ("never" if np.isinf(value) else f"{value:.0f}" for value in self)
        return middle if low == high else f"{middle} ({low} to {high})"


def median(values: FloatArray) -> Median:
    """Return the median of one value for each world, with an interval between two of the values.

    The number of values below the true median is binomial with ½ for every distribution. It takes at least six
    values for 95 %.
    """
    count = values.size
    # The interval from the (r+1)-th smallest to the (r+1)-th largest misses with probability 2 Pr[Bin(n, ½) ≤ r].
    below = bdtr(np.arange(count), count, 0.5)
    rank = max(int(np.searchsorted(below, (1 - CONFIDENCE) / 2)) - 1, 0)
    ordered = np.sort(values)
    return Median(float(np.median(values)), float(ordered[rank]), float(ordered[count - 1 - rank]))


@dataclass(frozen=True)
class Outcomes:
    """The earnings and estimates of each policy."""

    table: pa.Table

    @property
    def policies(self) -> list[str]:
        """The policies, in the order of figures."""
        present = set(unique(self.table, "policy"))
        return [name for name in POLICY_STYLES if name in present]

    @property
    def times(self) -> IndexArray:
        """The recorded times."""
        return np.asarray(self.table["time"].to_numpy()[:POINTS])

    @property
    def problem(self) -> Problem:
        """The problem that was played."""
        horizon = int(self.times[-1])
        return Problem(horizon=horizon, shift=horizon * 3 // 5)

    @property
    def shift(self) -> int:
        """The place of the shift among the recorded times."""
        return int(np.searchsorted(self.times, self.problem.shift))

    def of(self, policy: str, column: str) -> FloatArray:
        """Return one column of one policy: (worlds, times)."""
        return np.asarray(where(self.table, policy=policy)[column].to_numpy(), dtype=np.float64).reshape(-1, POINTS)

    def total(self, policy: str, column: str = "reward") -> FloatArray:
        """Return the total in each world."""
        return self.of(policy, column)[:, -1]

    def before(self, policy: str, column: str = "reward") -> FloatArray:
        """Return the total until the shift."""
        return self.of(policy, column)[:, self.shift]

    def after(self, policy: str, column: str = "reward") -> FloatArray:
        """Return the total after the shift."""
        return self.total(policy, column) - self.before(policy, column)

    def truth(self, arm: int, quantity: str) -> FloatArray:
        """Return an arm's true ``mean``, ``low`` (10th percentile) or ``high`` (90th) at each time, clipped."""
        clip = (0.0, 1.0)

        def at(*, shifted: bool) -> float:
            if quantity == "mean":
                return self.problem.clipped_mean(arm, clip, shifted=shifted)
            level = {"low": 0.1, "high": 0.9}[quantity]
            return self.problem.clipped_quantile(arm, level, clip, shifted=shifted)

        return np.where(self.times <= self.problem.shift, at(shifted=False), at(shifted=True))

    def half_times(self, policy: str) -> FloatArray:
        """Return the time after the shift until the new best arm's estimated mean has covered half of its rise.

        From then on it must stay above half. The time is infinite if that never happens.
        """
        rising = int(np.argmin(self.problem.means))
        truth = self.truth(rising, "mean")
        late = ~(self.of(policy, f"mean_{rising}") > (truth[0] + truth[-1]) / 2)
        late[:, : self.shift + 1] = True
        last = late.shape[1] - 1 - np.argmax(late[:, ::-1], axis=1)
        ends = np.r_[self.times[1:], np.inf]
        return np.asarray(ends[last] - self.problem.shift)
