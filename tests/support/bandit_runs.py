"""Tables of bandit runs with known outcomes."""

import numpy as np
import pyarrow as pa

from experiments.bandit.policies import Setting
from experiments.bandit.problem import Problem
from experiments.bandit.runs import ALPHAS, optimist
from experiments.bandit.simulation import Run, Trace
from experiments.bandit.styles import POLICY_STYLES
from experiments.bandit.summaries import outcomes

POINTS = 125
TIMES = np.arange(1, POINTS + 1) * 8
PROBLEM = Problem(horizon=1000, shift=600)


def story(rate_before, rate_after, *, means=(0.2, 0.756), rise=TIMES[-1] * 2, error=0.0, worlds=6):
    """Return made-up runs: reward a step before and after, regret to match, means that rise after some steps."""
    noise = 1 + 1e-4 * np.arange(worlds)
    before, after = np.minimum(TIMES, PROBLEM.shift), np.maximum(TIMES - PROBLEM.shift, 0)
    risen = np.where(PROBLEM.shift + rise <= TIMES, means[1], means[0])
    quantiles = {
        0: ((0.0718, 0.4155), (0.3282, 1.0)),
        1: ((0.4155, 0.0718), (1.0, 0.3282)),
    }
    estimated = np.array(
        [[np.where(PROBLEM.shift >= TIMES, *quantiles[arm][end]) for end in (0, 1)] for arm in (0, 1)]
    )
    return Trace(
        runs=[Run(setting=Setting(), world=world) for world in range(worlds)],
        times=TIMES,
        rewards=np.outer(before * rate_before + after * rate_after, noise),
        regrets=np.outer(before * (0.756 - rate_before) + after * (0.756 - rate_after), noise),
        means=np.tile(np.stack([risen, np.full(POINTS, 0.7)], axis=-1)[:, None], (1, worlds, 1)),
        quantiles=np.tile(estimated.transpose(2, 0, 1)[:, None] + error, (1, worlds, 1, 1)),
        pulls=np.zeros((worlds, 2), dtype=np.int64),
    )


def runs(optimists=None, **stories):
    """Return tables in which everybody earns like random choice unless said otherwise.

    ``optimists`` has the stories of UCB by α.
    """
    usual = story(0.45, 0.45)
    told = {policy: stories.get(policy.replace("-", "_"), usual) for policy in POLICY_STYLES}
    upper = {optimist(alpha): (optimists or {}).get(alpha, usual) for alpha in ALPHAS}
    return {"worlds": _table(told), "optimism": _table(upper)}


def _table(stories):
    return pa.concat_tables(outcomes(policy, told, PROBLEM) for policy, told in stories.items())
