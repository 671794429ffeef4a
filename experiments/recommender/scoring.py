"""Scores of all users and all items, in bounded memory.

Percentiles need whole columns and the best candidates need whole rows, but the matrix may have 20 GB. It is
therefore computed twice: in blocks of items for the percentiles, and in batches of users for the candidates.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from experiments.recommender.models import Model
from experiments.recommender.preprocessing import Likes

__all__ = ["CONSTANT", "Candidates", "Ranges", "find_candidates", "find_ranges", "quiet", "recall", "score_items"]

FloatArray: TypeAlias = NDArray[np.float32]
Step: TypeAlias = Callable[[str, float], None]
"""Receives the name of a stage and the share of it that is done."""

CANDIDATES = 500
CONSTANT = 1e-6
"""The sensitivity of an item whose score is the same for all users."""
BLOCK_BYTES = 128 << 20
"""The size of one dense block of scores."""


@dataclass(frozen=True, kw_only=True)
class Ranges:
    """Each item's 1st and 99th percentile of predicted scores over users who have not seen it."""

    lower: FloatArray
    upper: FloatArray

    @property
    def sensitivities(self) -> NDArray[np.float64]:
        """The width of each range, or 10⁻⁶ if it is 0."""
        widths = self.upper.astype(np.float64) - self.lower.astype(np.float64)
        return np.where(widths > 0, widths, CONSTANT)

    @property
    def midpoints(self) -> NDArray[np.float64]:
        """The midpoint of each range."""
        return (self.lower.astype(np.float64) + self.upper) / 2


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """The items of each user's list, best first, and their predicted scores."""

    items: NDArray[np.int32]
    scores: FloatArray
    nonzero: NDArray[np.int32]
    """The number of each user's unseen items with a non-zero score."""


def quiet(_what: str, _share: float) -> None:
    """Show no progress."""


def _blocks(total: int, size: int) -> Iterator[tuple[int, int]]:
    size = max(1, size)
    for first in range(0, total, size):
        yield first, min(first + size, total)


def find_ranges(model: Model, inputs: Likes, *, block_bytes: int = BLOCK_BYTES, step: Step = quiet) -> Ranges:
    """Return the percentiles of every item, a block of items at a time.

    Seen items are left out: they are never candidates, and SANSA scores them one lower than EASE does. An item that
    every user has seen gets the range [0, 0].

    Memory: a few times ``block_bytes``, in addition to the codes of all users.
    """
    users, items = inputs.shape
    codes = model.encode(inputs)
    seen = inputs.tocsc()
    lower, upper = np.zeros(items, np.float32), np.zeros(items, np.float32)
    for first, last in _blocks(items, block_bytes // (4 * users)):
        scores = np.ascontiguousarray(model.decode(codes, first, last).T)
        owners = seen.indices[seen.indptr[first] : seen.indptr[last]]
        counts = np.diff(seen.indptr[first : last + 1])
        # Infinite scores sort to the end of each row, beyond the counted ones.
        scores[np.repeat(np.arange(last - first), counts), owners] = np.inf
        scores.sort(axis=1)
        lower[first:last], upper[first:last] = (_quantile(scores, users - counts, q) for q in (0.01, 0.99))
        step("percentiles", last / items)
    return Ranges(lower=lower, upper=upper)


def _quantile(ordered: FloatArray, counts: NDArray[np.integer], probability: float) -> FloatArray:
    """Return a quantile of the first ``counts`` numbers of each sorted row, interpolated linearly."""
    place = probability * np.maximum(counts - 1, 0)
    below = np.floor(place).astype(np.int64)
    above = np.minimum(below + 1, np.maximum(counts - 1, 0))
    rows = np.arange(counts.size)
    low, high = ordered[rows, below].astype(np.float64), ordered[rows, above].astype(np.float64)
    low, high = (np.where(counts > 0, values, 0.0) for values in (low, high))
    return np.asarray(low + (place - below) * (high - low), dtype=np.float32)


def find_candidates(
    model: Model, inputs: Likes, *, size: int = CANDIDATES, block_bytes: int = BLOCK_BYTES, step: Step = quiet
) -> Candidates:
    """Return each user's best unseen items, a batch of users at a time.

    If fewer than ``size`` unseen items have a positive score, the list continues with items of score 0, the most
    popular first, and then with negative scores. Ties go to the more popular item.
    """
    users, items = inputs.shape
    if size > items:
        raise ValueError(f"size must be at most the number of items, {items}, got {size}")
    codes = model.encode(inputs)
    best = np.empty((users, size), np.int32)
    values = np.empty((users, size), np.float32)
    nonzero = np.empty(users, np.int32)
    taken = np.zeros(items, dtype=bool)
    for first, last in _blocks(users, block_bytes // (8 * items)):
        scores = model.decode_all(codes[first:last])
        for user, start, end in zip(range(first, last), scores.indptr, scores.indptr[1:], strict=False):
            seen = inputs.indices[inputs.indptr[user] : inputs.indptr[user + 1]]
            best[user], values[user], nonzero[user] = _best(
                scores.indices[start:end], scores.data[start:end], seen, taken, size
            )
        step("candidates", last / users)
    return Candidates(items=best, scores=values, nonzero=nonzero)


def _best(
    items: NDArray[np.int32], scores: FloatArray, seen: NDArray[np.int32], taken: NDArray[np.bool_], size: int
) -> tuple[NDArray[np.int32], FloatArray, int]:
    """Return the best unseen items, their scores, and the number of unseen items with a non-zero score.

    Args:
        items: The items with a non-zero score, in any order.
        scores: Their scores.
        seen: Items to leave out.
        taken: A work array: False for every item, before and after.
        size: The number of items to return.
    """
    taken[seen] = True
    kept = ~taken[items] & (scores != 0)
    items, scores = items[kept], scores[kept]
    positive = np.flatnonzero(scores > 0)
    chosen = positive[_largest(items[positive], scores[positive], size)]
    best, values = items[chosen], scores[chosen]
    if best.size < size:
        taken[items] = True
        zeros = np.flatnonzero(~taken)[: size - best.size].astype(np.int32)
        best, values = np.concatenate([best, zeros]), np.concatenate([values, np.zeros(zeros.size, np.float32)])
    if best.size < size:
        negative = np.flatnonzero(scores < 0)
        chosen = negative[_largest(items[negative], scores[negative], size - best.size)]
        best, values = np.concatenate([best, items[chosen]]), np.concatenate([values, scores[chosen]])
    taken[items] = False
    taken[seen] = False
    if best.size < size:
        raise ValueError(f"size must be at most the number of a user's unseen items, got {size}")
    return best, values, items.size


def _largest(items: NDArray[np.int32], scores: FloatArray, size: int) -> NDArray[np.int64]:
    """Return the positions of the largest scores in order. Ties go to the more popular item."""
    if scores.size > size:
        threshold = np.partition(scores, scores.size - size)[scores.size - size]
        near = np.flatnonzero(scores >= threshold)
        items, scores = items[near], scores[near]
    else:
        near = np.arange(scores.size)
    return near[np.lexsort((items, -scores))[:size]]


def score_items(
    model: Model, inputs: Likes, items: NDArray[np.int32], *, block_bytes: int = BLOCK_BYTES
) -> FloatArray:
    """Return every user's scores of the same few items, and −∞ for seen ones."""
    users, total = inputs.shape
    codes = model.encode(inputs)
    chosen = np.empty((users, items.size), np.float32)
    for first, last in _blocks(users, block_bytes // (8 * total)):
        chosen[first:last] = model.decode_all(codes[first:last])[:, items].toarray()
    chosen[inputs[:, items].toarray() > 0] = -np.inf
    return chosen


def recall(candidates: Candidates, targets: Likes, *, cutoff: int = 20, capped: bool) -> float:
    """Return the mean share of a user's targets among the first ``cutoff`` candidates.

    If ``capped``, divide by min(cutoff, targets), as published for MovieLens and Netflix. Otherwise divide by the
    number of targets, as published for datasets with their own split.
    """
    sizes = np.diff(targets.indptr)
    tested = sizes > 0
    rows = np.repeat(np.arange(targets.shape[0]), cutoff)
    hits = np.asarray(targets[rows, candidates.items[:, :cutoff].ravel()]).reshape(-1, cutoff).sum(axis=1)
    possible = np.minimum(sizes, cutoff) if capped else sizes
    return float(np.mean(hits[tested] / possible[tested]))
