"""The exact law of a private list: of each rank, and of being in the list at all."""

import math
from typing import Any

import numpy as np

from dpselect.candidates import Batch, Numbers, map_columns
from dpselect.kernels.arrays import Column, FloatArray, IndexArray
from dpselect.lists.top_k import TopK

__all__ = ["inclusion", "rank_probabilities"]

MOST_NUMBERS = 1 << 22
"""The largest number of probabilities that the exact law of lists may need: some seconds of work."""


def rank_probabilities(top: TopK, scores: Numbers, sensitivities: Numbers, **public: Numbers) -> FloatArray:
    """Return the exact probability of each candidate at each rank: an array (…, count, candidates).

    The law of a pick depends on the set of earlier picks, not on their order, so it is computed over sets:
    $Σ_{r < count} C(k, r)$ laws of one pick. **Not private**: it reads the scores and reveals them.

    Args:
        top: The list.
        scores: The scores, rows of the same length.
        sensitivities: The sensitivities.
        **public: ``offsets=``, for mechanisms that take them.

    Raises:
        ValueError: If there are too many sets. Draw many lists with :meth:`TopK.select` instead.

    Example:
        >>> import dpselect as dps
        >>> from dpselect.lists import rank_probabilities
        >>> rank_probabilities(dps.TopK(dps.NoisyMax(2.0), count=2), [0.0, 1.0], 1.0).round(4)
        array([[0.1839, 0.8161],
               [0.8161, 0.1839]])
    """
    batch = _read_rows(top, scores, sensitivities, public)
    return _exact_ranks(top, batch).reshape(*(batch.shape or ()), top.count, batch.row_size)


def inclusion(top: TopK, scores: Numbers, sensitivities: Numbers, **public: Numbers) -> FloatArray:
    """Return the exact probability of each candidate to be in the list, in the shape of the scores.

    The probabilities of a row add up to the length of its list. **Not private**: it reads the scores and reveals
    them.

    Args:
        top: The list.
        scores: The scores, rows of the same length.
        sensitivities: The sensitivities.
        **public: ``offsets=``, for mechanisms that take them.

    Raises:
        ValueError: If there are too many sets; see :func:`rank_probabilities`.

    Example:
        >>> import dpselect as dps
        >>> from dpselect.lists import inclusion
        >>> top = dps.TopK(dps.NoisyMax(2.0, noise="gumbel"), count=2)  # weights 1, e and e²
        >>> inclusion(top, [0.0, 1.0, 2.0], 1.0)[0].round(3)  # 1 − e³/(1 + e + e²) · (1/(1 + e²) + 1/(1 + e))
        np.float64(0.298)
    """
    shares: FloatArray = rank_probabilities(top, scores, sensitivities, **public).sum(axis=-2)
    return shares


def _read_rows(top: TopK, scores: Numbers, sensitivities: Numbers, public: dict[str, Any]) -> Batch:
    """Validate the arguments, and refuse what would take too long."""
    if not isinstance(top, TopK):
        raise ValueError(f"top must be a TopK, got {type(top).__name__}: write TopK(mechanism, count=10)")
    batch = top.read(scores, sensitivities, **public)
    top.law(batch.sizes)  # refuses rows that are too short
    batch.check_scores()
    if batch.shape is None:
        raise ValueError("scores must be an array: the law of a list is for rows of the same length")
    numbers, size = 0, batch.row_size
    for number in range(min(top.count, size)):
        numbers += math.comb(size, number) * (size - number) * max(1, batch.rows)
        if numbers > MOST_NUMBERS:
            raise ValueError(
                f"count is too large: the exact law of {batch.rows} lists of {top.count} out of {size} candidates "
                "takes too long; pass fewer rows at a time, or draw many lists with select and count"
            )
    return batch


def _exact_ranks(top: TopK, batch: Batch) -> FloatArray:
    """Return the probability of each candidate at each rank of each row, (rows, count, candidates)."""
    rows, size, kept = batch.rows, batch.row_size, top.law(batch.sizes).kept(batch)
    ranks = np.zeros((rows, top.count, size))
    taken, reached = np.zeros((1, size), dtype=bool), np.ones((rows, 1))  # sets of earlier picks; their chances
    for number in range(min(top.count, size) if rows else 0):
        left = np.nonzero(~taken)[1].reshape(len(taken), size - number)
        chances = (reached[:, :, None] * _pmf_of_sets(top, batch, kept, left)).reshape(rows, -1)
        picks = left.reshape(-1)
        ranks[:, number] = [np.bincount(picks, row, size) for row in chances]
        if number + 1 < top.count:
            bigger = np.repeat(np.packbits(taken, axis=1), size - number, axis=0)
            bigger[np.arange(picks.size), picks // 8] |= (128 >> picks % 8).astype(np.uint8)
            sets, places = np.unique(bigger, axis=0, return_inverse=True)
            taken = np.unpackbits(sets, axis=1, count=size).astype(bool)
            reached = np.array([np.bincount(places.reshape(-1), row) for row in chances])
    return ranks


def _pmf_of_sets(top: TopK, batch: Batch, kept: Column | None, left: IndexArray) -> FloatArray:
    """Return the law of the next pick for each row and each set of candidates that are left."""
    sets, size = left.shape

    def subsets(column: Column) -> Column:
        rows = column.values[column.starts[:, None] + np.arange(batch.row_size)]
        return Column(rows[:, left].reshape(-1), np.arange(batch.rows * sets) * size)

    table = map_columns(batch.table, subsets, np.arange(batch.rows * sets + 1) * size)
    part = Batch(table, (batch.rows * sets,), arrow=False, has_offsets=batch.has_offsets, row_size=size)
    law = top.law(batch.sizes).law(part, kept and subsets(kept))
    return law.pmf(part).reshape(batch.rows, sets, size)
