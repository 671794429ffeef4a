"""The table of outcomes as arrays, and means and medians with confidence intervals."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from scipy.special import bdtr, stdtrit

from experiments.arrays import FloatArray
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
    """The outcomes of each policy, one for each world."""

    table: pa.Table

    @property
    def policies(self) -> list[str]:
        """The policies, in the order of figures."""
        present = set(unique(self.table, "policy"))
        return [name for name in POLICY_STYLES if name in present]

    def of(self, policy: str, column: str) -> FloatArray:
        """Return one column of one policy."""
        return np.asarray(where(self.table, policy=policy)[column].to_numpy(), dtype=np.float64)

    def before(self, policy: str, quantity: str = "reward") -> FloatArray:
        """Return the reward or regret until the shift."""
        return self.of(policy, f"{quantity}_before")

    def after(self, policy: str, quantity: str = "reward") -> FloatArray:
        """Return the reward or regret after the shift."""
        return self.of(policy, f"{quantity}_after")

    def total(self, policy: str, quantity: str = "reward") -> FloatArray:
        """Return the reward or regret of all steps."""
        return self.before(policy, quantity) + self.after(policy, quantity)

    def half_times(self, policy: str) -> FloatArray:
        """Return the time after the shift until the new best arm's estimated mean has covered half of its rise."""
        return self.of(policy, "half_time")
