"""The privacy loss of one person's reward, added up over the blocks and windows that contain it.

Neighbours are two worlds that differ in the rewards of one step, which is one person's visit. A policy releases all
its picks, all its private means and all its private quantiles.

- The pick in a person's own step comes before the reward, from releases about earlier people.
- The reward then enters the running sum of one arm, through a few blocks, and one window of that arm.
- All later picks are functions of released means and quantiles, so they are post-processing for every mechanism.

One reward therefore costs the sum of its blocks and its window, for any number of arms and steps.
docs/theory/bandit.md has the proof.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from experiments.arrays import FloatArray
from experiments.bandit.policies import Budget
from experiments.bandit.sums import Block, hybrid_blocks

__all__ = ["Account", "account", "block_losses", "window_losses"]


@dataclass(frozen=True, kw_only=True)
class Account:
    """The largest loss of one reward, and other ways to count it."""

    means: float
    quantiles: float
    total: float
    """The largest loss of any one reward, through means and quantiles together."""
    as_printed: float
    """ε_M + ε_S + 2ε_p: the paper adds the budget of one pick, and counts the quantiles of both arms."""
    from_exact_means: float
    """T · ε_S: the cost of all picks together if they used exact means, each at ε_S."""


def account(budget: Budget, *, horizon: int, window: int) -> Account:
    """Return the cost of one reward if an arm may be pulled in every step.

    It is the largest loss of any reward in a stream of that length.
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
    """Return the loss of each item of a stream through the blocks that contain it, if items change by at most 1.

    Laplace noise of scale b on a sum that changes by at most 1 costs 1/b.

    Example:
        >>> block_losses(hybrid_blocks(8, epsilon=1.0), 8)
        array([0.5 , 0.5 , 1.  , 0.5 , 1.  , 0.75, 0.75, 0.5 ])
    """
    steps = np.zeros(length + 1)
    for block in blocks:
        steps[block.first - 1] += 1 / block.scale
        steps[block.last] -= 1 / block.scale
    return np.asarray(np.cumsum(steps[:-1]).round(12))  # thousands of additions leave rounding errors


def window_losses(length: int, window: int, *, epsilon: float) -> FloatArray:
    """Return the loss of each item of a stream through the quantiles of its window, if the window gets full."""
    losses = np.zeros(length)
    losses[: length // window * window] = epsilon
    return losses
