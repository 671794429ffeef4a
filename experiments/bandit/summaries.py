"""What is kept of each policy's runs: a row for each world, and the curves of the figures.

Both are small enough to be kept with the code (:mod:`~experiments.bandit.kept`). They are rounded here, so that a
fast run that shows the kept tables shows the full run's digits.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from experiments.arrays import FloatArray, IndexArray
from experiments.bandit.problem import Problem
from experiments.bandit.simulation import Trace

__all__ = ["CLOSE", "NEAR", "QUANTILES", "curves", "half_times", "outcomes", "rounded"]

NEAR = 0.1
"""An estimated quantile is near the truth within this distance."""
CLOSE = 0.2
"""It is close to the truth within this share of the arm's range, from its 10th to its 90th percentile."""
QUANTILES: Mapping[str, tuple[int, int]] = {
    f"p{10 + 80 * end}_{arm}": (arm, end) for arm in (0, 1) for end in (0, 1)
}
"""The names of the quantiles: the arm and the end of each."""


def outcomes(policy: str, trace: Trace, problem: Problem) -> pa.Table:
    """Return a row for each run: rewards and regrets, and how well and how fast it learns."""
    shift = int(np.searchsorted(trace.times, problem.shift))
    means = [problem.clipped_mean(arm, (0.0, 1.0), shifted=True) for arm in (0, 1)]
    gap = max(means) - min(means)
    late_regret = trace.regrets[-1] - trace.regrets[shift]
    # In the second half of each phase no window straddles the shift, even for arms that are seldom pulled.
    points = trace.times.size
    steady = np.r_[shift // 2 : shift + 1, (shift + points) // 2 : points]
    misses = {
        name: np.abs(_quantile(trace, name)[steady].T - problem.truth(arm, name[:3], trace.times)[steady])
        for name, (arm, _) in QUANTILES.items()
    }
    ranges = [
        problem.truth(arm, "p90", trace.times)[steady] - problem.truth(arm, "p10", trace.times)[steady]
        for arm in (0, 1)
    ]
    values = {
        "reward_before": trace.rewards[shift],
        "reward_after": trace.rewards[-1] - trace.rewards[shift],
        "regret_before": trace.regrets[shift],
        "regret_after": late_regret,
        "old_arm": late_regret / (gap * (problem.horizon - problem.shift)),
        "half_time": half_times(trace, problem),
        **{f"near_{name}": _missing_as_nan((miss <= NEAR).mean(axis=1), miss) for name, miss in misses.items()},
        **{
            f"close_{name}": _missing_as_nan((miss <= CLOSE * ranges[QUANTILES[name][0]]).mean(axis=1), miss)
            for name, miss in misses.items()
        },
        "miss": np.median(np.concatenate(list(misses.values()), axis=1), axis=1),
    }
    return pa.table(
        {
            "policy": [policy] * len(trace.runs),
            "world": [run.world for run in trace.runs],
            **{name: rounded(each, 6) for name, each in values.items()},
        }
    )


def half_times(trace: Trace, problem: Problem) -> FloatArray:
    """Return the time after the shift until the new best arm's estimated mean has covered half of its rise.

    From then on it must stay above half. The time is infinite if that never happens.
    """
    rising = int(np.argmin(problem.means))
    truth = problem.truth(rising, "mean", trace.times)
    half = (truth[0] + truth[-1]) / 2
    late = ~(half < trace.means[:, :, rising].T)
    late[:, trace.times <= problem.shift] = True
    last = late.shape[1] - 1 - np.argmax(late[:, ::-1], axis=1)
    ends = np.r_[trace.times[1:], np.inf]
    return np.asarray(ends[last] - problem.shift)


def curves(policy: str, trace: Trace, quantities: Sequence[str]) -> pa.Table:
    """Return a row for each time: means over all runs of some quantities, and their 10th and 90th percentiles."""
    drawn: dict[str, FloatArray] = {"reward": trace.rewards, "regret": trace.regrets}
    drawn |= {f"mean_{arm}": trace.means[:, :, arm] for arm in (0, 1)}
    drawn |= {name: _quantile(trace, name) for name in QUANTILES}
    columns: dict[str, FloatArray | IndexArray | list[str]] = {
        "policy": [policy] * trace.times.size,
        "time": trace.times,
    }
    for name in quantities:
        values = drawn[name]
        low, high = np.quantile(values, [0.1, 0.9], axis=1)
        columns |= {
            name: rounded(values.mean(axis=1), 4),
            f"{name}_low": rounded(low, 4),
            f"{name}_high": rounded(high, 4),
        }
    return pa.table(columns)


def _quantile(trace: Trace, name: str) -> FloatArray:
    arm, end = QUANTILES[name]
    return np.asarray(trace.quantiles[:, :, arm, end])


def _missing_as_nan(shares: FloatArray, values: FloatArray) -> FloatArray:
    """Return the shares, or NaN for a policy that estimates no quantiles."""
    return np.where(np.isnan(values).all(axis=1), np.nan, shares)


def rounded(values: FloatArray, digits: int) -> FloatArray:
    """Round to a number of significant digits."""
    return np.array([float(f"{value:.{digits}g}") for value in values])
