"""How good a private list is, on average: recall, the sum of its scores, and NDCG."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpselect import parameters as check
from dpselect.candidates import Batch, Numbers, read_numbers
from dpselect.kernels.arrays import FloatArray, IndexArray
from dpselect.lists.laws import check_exact, draw_lists, exact_ranks, read_rows
from dpselect.lists.top_k import TopK
from dpselect.randomness import Randomness

__all__ = ["ListQuality", "list_errors", "list_quality"]

DRAWS = 8
"""How many lists are drawn for each row to estimate its error. Tuning takes the mean over many rows."""


@dataclass(frozen=True, kw_only=True)
class ListQuality:
    """Expected values, one for each row, or plain numbers for one row. As private as the scores.

    Attributes:
        recall: The share of the best ``count`` candidates that are in the list. A candidate that ties with the last
            of them counts.
        score_sum: The sum of the scores in the list.
        ndcg: The discounted cumulative gain $Σ_r g_r / log₂(r + 1)$, r from 1, over that of the best list; 1 if
            nothing has a gain.
        standard_errors: Those of the three, in this order, if lists were drawn (NaN for one draw); zero if the
            values are exact.
        draws: The number of lists drawn for each row; 0 if the values are exact.
    """

    recall: Any = field(repr=False)
    score_sum: Any = field(repr=False)
    ndcg: Any = field(repr=False)
    standard_errors: tuple[Any, Any, Any] = field(repr=False)
    draws: int


def list_quality(
    top: TopK,
    scores: Numbers,
    sensitivities: Numbers,
    *,
    gains: Numbers | None = None,
    draws: int = 0,
    randomness: Randomness | None = None,
    **public: Numbers,
) -> ListQuality:
    """Return the expected recall, sum of scores and NDCG of a private list.

    **Not private**: it reads the scores and reveals them.

    Args:
        top: The list.
        scores: The scores, rows of the same length.
        sensitivities: The sensitivities.
        gains: What a candidate is worth in NDCG, ≥ 0. By default its score minus the lowest of its row.
        draws: How many lists to draw for each row; 0 computes exact values, which small rows and counts allow.
        randomness: For repeatable draws.
        **public: ``offsets=`` or ``anchors=``, for mechanisms that take them.

    Example:
        >>> import dpselect as dps
        >>> from dpselect.lists import list_quality
        >>> quality = list_quality(dps.TopK(dps.Uniform(), count=2), [0.0, 1.0, 2.0], 1.0)
        >>> round(float(quality.recall), 3), round(float(quality.score_sum), 3)
        (0.667, 2.0)
        >>> round(float(quality.ndcg), 3)  # (1 + 1/log₂ 3)/(2 + 1/log₂ 3)
        0.62
    """
    number = check.count("draws", draws, least=0)
    batch = read_rows(top, scores, sensitivities, public)
    measures = _Measures.of(top, batch, gains)
    if number == 0:
        check_exact(top, batch)
        ranks = exact_ranks(top, batch)
        means = [np.einsum("nrk,nk,r->n", ranks, worth, discount) for worth, discount in measures.parts]
        errors = [np.zeros(batch.rows)] * 3
    else:
        lists = draw_lists(top, batch, number, randomness)
        values = [_of_lists(lists, worth, discount) for worth, discount in measures.parts]
        means = [value.mean(axis=1) for value in values]
        deviations = [value.std(axis=1) for value in values]
        # One list says nothing about the spread of lists.
        errors = [d / np.sqrt(number - 1) if number > 1 else np.full(batch.rows, np.nan) for d in deviations]
    recall, score_sum, ndcg = map(batch.restore_rows, means)
    return ListQuality(
        recall=recall,
        score_sum=score_sum,
        ndcg=ndcg,
        standard_errors=tuple(map(batch.restore_rows, errors)),
        draws=number,
    )


@dataclass(frozen=True)
class _Measures:
    """Three measures, each Σ_r worth[pick r] · discount[r]."""

    parts: list[tuple[FloatArray, FloatArray]]

    def __repr__(self) -> str:
        return "_Measures()"  # worths are private

    @classmethod
    def of(cls, top: TopK, batch: Batch, gains: Numbers | None) -> "_Measures":
        shape = (batch.rows, batch.width)
        scores = batch.spread(batch.table.scores).reshape(shape)
        length = min(top.count, batch.width)
        last = np.sort(scores, axis=1)[:, -length, None]
        once = np.ones(top.count)
        if gains is None:
            worth = scores - scores.min(axis=1, keepdims=True)
        else:
            numbers, full = read_numbers("gains", gains), (*(batch.shape or ()), batch.width)
            if numbers.shape not in {full, (batch.width,)}:
                raise ValueError(f"gains must have one number for each of the {batch.width} candidates")
            worth = np.broadcast_to(numbers, full).reshape(shape)
            if not (np.isfinite(worth).all() and (worth >= 0).all()):
                raise ValueError("gains must be finite and ≥ 0")
        discount = 1 / np.log2(np.arange(top.count) + 2)
        ideal = np.sort(worth, axis=1)[:, ::-1][:, :length] @ discount[:length]
        ideal = ideal[:, None]
        normal = np.divide(worth, ideal, out=np.full(shape, 1 / discount[:length].sum()), where=ideal > 0)
        return cls([((scores >= last) / length, once), (scores, once), (normal, discount)])


def _of_lists(lists: IndexArray, worth: FloatArray, discount: FloatArray) -> FloatArray:
    """Return a measure of each list, (rows, draws); padding is worth nothing."""
    rows = np.arange(len(worth))[:, None, None]
    return np.where(lists >= 0, worth[rows, lists], 0.0) @ discount


def list_errors(top: TopK, batch: Batch, power: float) -> FloatArray:
    """Return an estimate of the mean of ((sum of the best scores − sum of the list's scores)/count)^power.

    It is the mean of some lists, drawn with a public seed and the content of the row. So it is a function of the
    row alone, whatever the other rows are. As private as the scores.
    """
    flat = batch.spread(batch.table.scores)
    order = np.lexsort((-flat, np.repeat(np.arange(batch.rows), batch.sizes)))
    ranked = np.concatenate([flat[order], np.zeros(top.count)])
    places = batch.table.bounds[:-1, None] + np.arange(top.count)
    best = np.where(np.arange(top.count) < batch.sizes[:, None], ranked[places], 0.0).sum(axis=1)
    randomness = Randomness.addressed(_contents(batch), DRAWS)
    lists = draw_lists(top, batch, DRAWS, randomness)
    starts = batch.table.bounds[:-1, None, None]
    sums = np.where(lists >= 0, flat[starts + np.maximum(lists, 0)], 0.0).sum(axis=2)
    regret = np.maximum(best[:, None] - sums, 0.0) / top.count
    errors: FloatArray = (regret**power).mean(axis=1)
    return errors


def _contents(batch: Batch) -> list[bytes]:
    """Return the content of each row: scores, sensitivities and further public numbers."""
    return [b"".join(column.tobytes() for column in batch.row(row)) for row in range(batch.rows)]
