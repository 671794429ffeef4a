"""What draws can show: bounds on shares, and whether draws follow a law.

All bounds are Chernoff's: n draws of probability p have a share s as far from p as it is with probability at most
$exp(−n KL(s, p))$. They hold for every number of draws.
"""

import math
import operator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpselect.kernels.arrays import FloatArray
from dpselect.mechanisms.base import Mechanism
from dpselect.randomness import Randomness

Counts: TypeAlias = NDArray[np.int64]

DRAWS_AT_ONCE = 1 << 20
"""The largest number of scores in one call of ``select``."""


class BrokenError(Exception):
    """What is no law of a pick; its text says what a selector did."""


def draw(selector: Any, scores: FloatArray, sensitivities: FloatArray, draws: int, seed: int) -> Counts:
    """Return picks from the same scores: of an object with ``select``, or of a function of one row.

    Raises:
        BrokenError: If a pick is not the position of a candidate.
    """
    if not hasattr(selector, "select"):
        each = (selector(scores.copy(), sensitivities.copy()) for _ in range(draws))
        return np.array([_position(pick, scores.size) for pick in each], dtype=np.int64)
    block, found = max(1, DRAWS_AT_ONCE // scores.size), []
    seeded = {"randomness": Randomness.seeded(seed)} if isinstance(selector, Mechanism) else {}
    for first in range(0, draws, block):
        batch = np.tile(scores, (min(block, draws - first), 1))
        picks = np.asarray(selector.select(batch, sensitivities.copy(), **seeded))
        if picks.shape != batch.shape[:1]:
            raise BrokenError(
                "select does not return one position for each row; if it takes one row, pass it as a function"
            )
        found += [_position(pick, scores.size) for pick in picks.tolist()]
    return np.array(found, dtype=np.int64)


def _position(pick: Any, size: int) -> int:
    try:
        position = operator.index(pick)
    except TypeError:
        position = -1
    if isinstance(pick, bool) or not 0 <= position < size:
        hint = "; if these are probabilities, use dps.from_pmf" if np.shape(pick) == (size,) else ""
        raise BrokenError(f"returned {pick!r:.60}, which is not the position of a candidate, 0 to {size - 1}{hint}")
    return position


def divergence(share: float, probability: float) -> float:
    """Return KL(share, probability) of two coins."""
    parts = ((share, probability), (1 - share, 1 - probability))
    return sum(part * (math.log(part / chance) if chance > 0 else math.inf) for part, chance in parts if part > 0)


def epsilon_shown(more: int, less: int, draws: int, error: float) -> float:
    """Return a lower bound on log(p/p'), from how often each was seen. It is wrong with probability ``error``."""
    lower, upper = _bound(more, draws, error / 2, 0.0), _bound(less, draws, error / 2, 1.0)
    return max(0.0, math.log(lower / upper)) if lower > 0 else 0.0


def _bound(seen: int, draws: int, error: float, end: float) -> float:
    """Return how far the true probability may be from the share seen, towards ``end``, which is 0 or 1."""
    near, far = seen / draws, end
    for _ in range(60):
        middle = (near + far) / 2
        if draws * divergence(seen / draws, middle) < -math.log(error):
            near = middle
        else:
            far = middle
    return far


def fits(counts: Counts, law: FloatArray, error: float) -> bool:
    """Return whether counts can follow a law; a law that they do follow is refused with probability ``error``."""
    draws, bound = int(counts.sum()), math.log(2 * counts.size / error)
    return all(
        draws * divergence(seen / draws, min(float(p), 1.0)) <= bound for seen, p in zip(counts, law, strict=True)
    )


def are_alike(first: Counts, second: Counts, error: float) -> bool:
    """Return whether two counts of the same number of draws can follow one law.

    Given the sum of the two, the first is hypergeometric, which Hoeffding's bound for a fair coin covers.
    """
    bound = math.log(2 * first.size / error)
    sums = (first + second).tolist()
    return all(
        n == 0 or n * divergence(seen / n, 0.5) <= bound for seen, n in zip(first.tolist(), sums, strict=True)
    )


def are_independent(picks: Counts, random: np.random.Generator, error: float) -> bool:
    """Return whether neighbours in a sequence of draws agree as often as two draws at random do."""
    half = picks.size // 4 * 2
    near, far = picks[:half].reshape(-1, 2), random.permutation(picks[half : 2 * half]).reshape(-1, 2)
    agree = [int((pairs[:, 0] == pairs[:, 1]).sum()) for pairs in (near, far)]
    counts = [np.array([seen, half // 2 - seen]) for seen in agree]
    return are_alike(counts[0], counts[1], error)
