"""Tables of bandit runs with known outcomes."""

import numpy as np
import pyarrow as pa

from experiments.bandit.runs import ALPHAS, optimist
from experiments.bandit.styles import POLICY_STYLES

POINTS = 125


TIMES = np.arange(1, POINTS + 1) * 8


def story(rate_before, rate_after, *, means=(0.2, 0.756), rise=TIMES[-1] * 2, error=0.0, worlds=6):
    """Return made-up runs: reward a step before and after, regret to match, means that rise after some steps."""
    shift = int(TIMES[-1] * 3 // 5)
    noise = 1 + 1e-4 * np.arange(worlds)
    before, after = np.minimum(TIMES, shift), np.maximum(TIMES - shift, 0)
    reward = np.outer(noise, before * rate_before + after * rate_after)
    risen = np.where(shift + rise <= TIMES, means[1], means[0])
    quantiles = {
        0: {"low": (0.0718, 0.4155), "high": (0.3282, 1.0)},
        1: {"low": (0.4155, 0.0718), "high": (1.0, 0.3282)},
    }
    columns = {
        f"{end}_{arm}": np.tile(np.where(shift >= TIMES, *quantiles[arm][end]) + error, worlds)
        for arm in (0, 1)
        for end in ("low", "high")
    }
    return {
        "world": np.repeat(np.arange(worlds), POINTS),
        "time": np.tile(TIMES, worlds),
        "reward": reward.reshape(-1),
        "regret": np.outer(noise, before * (0.756 - rate_before) + after * (0.756 - rate_after)).reshape(-1),
        "mean_0": np.tile(risen, worlds),
        "mean_1": np.tile(np.full(POINTS, 0.7), worlds),
        **columns,
    }


def runs(optimists=None, **stories):
    """Return tables in which everybody earns like random choice unless said otherwise.

    ``optimists`` has the stories of UCB by α.
    """
    usual = story(0.45, 0.45)
    told = {policy: stories.get(policy.replace("-", "_"), usual) for policy in POLICY_STYLES}
    upper = {optimist(alpha): (optimists or {}).get(alpha, usual) for alpha in ALPHAS}
    return {"runs": _table(told), "optimism": _table(upper)}


def _table(stories):
    return pa.concat_tables(
        pa.table({"policy": [policy] * len(told["time"]), **told}) for policy, told in stories.items()
    )
