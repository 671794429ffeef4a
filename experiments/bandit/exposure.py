"""What a policy costs the person whose reward it sees: counted block by block and window by window.

Neighbours are two worlds that differ in what the arms would pay in one step: one person's visit. A policy releases
all its picks, all its private means and all its private quantiles.

- The pick of a person's own step is made before the reward is seen, from releases about earlier people.
- The reward then enters the running sum of one arm, through a few blocks, and one window of that arm.
- All later picks are functions of released means and quantiles: post-processing, whatever the mechanism that picks.

So one reward costs what its blocks cost, plus what its window costs, and neither the number of arms nor the number
of steps enters. docs/theory/bandit.md has the proof.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from experiments.bandit.policies import Budget
from experiments.bandit.sums import Block, hybrid_blocks

__all__ = ["Account", "account", "block_losses", "window_losses"]

FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Account:
    """What one reward loses at most, and other ways to count."""

    means: float
    quantiles: float
    total: float
    """The largest loss of any one reward, through means and quantiles together."""
    as_printed: float
    """ε_M + ε_S + 2ε_p: the paper adds the budget of one pick, and pays for quantiles once for each arm."""
    from_exact_means: float
    """T · ε_S: what all picks cost together if they were made from exact means, each with an ε_S of its own."""


def account(budget: Budget, *, horizon: int, window: int) -> Account:
    """Return what one reward costs if an arm may be pulled in every step.

    Counts what every single reward of a stream of that length loses, and takes the largest.
    """
    means = (
        block_losses(hybrid_blocks(horizon, epsilon=budget.means), horizon) if budget.means else np.zeros(horizon)
    )
    quantiles = window_losses(horizon, window, epsilon=budget.quantiles)
    return Account(
        means=float(means.max()),
        quantiles=float(quantiles.max()),
        total=float((means + quantiles).max()),
        as_printed=budget.means + budget.pick + 2 * budget.quantiles,
        from_exact_means=horizon * budget.pick,
    )


def block_losses(blocks: Iterable[Block], length: int) -> FloatArray:
    """Return what each item of a stream loses through the blocks that hold it, if items change by at most 1.

    Laplace noise of scale b on a sum that moves by at most 1 costs 1/b.

    Example:
        >>> block_losses(hybrid_blocks(8, epsilon=1.0), 8)
        array([0.5 , 0.5 , 1.  , 0.5 , 1.  , 0.75, 0.75, 0.5 ])
    """
    steps = np.zeros(length + 1)
    for block in blocks:
        steps[block.first - 1] += 1 / block.scale
        steps[block.last] -= 1 / block.scale
    return np.asarray(np.cumsum(steps[:-1]).round(12))  # thousands of additions leave dust in the last digits


def window_losses(length: int, window: int, *, epsilon: float) -> FloatArray:
    """Return what each item of a stream loses through the pair of quantiles of its window, once that is full."""
    losses = np.zeros(length)
    losses[: length // window * window] = epsilon
    return losses
