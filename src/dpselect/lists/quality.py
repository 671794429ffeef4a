"""The error of lists, for tuning."""

import numpy as np

from dpselect.candidates import Batch
from dpselect.kernels.arrays import FloatArray
from dpselect.lists.top_k import TopK
from dpselect.randomness import Randomness

__all__ = ["list_errors"]

DRAWS = 8
"""How many lists are drawn for each row to estimate its error. Tuning takes the mean over many rows."""


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
    many = batch.repeated(DRAWS)
    drawn = top.law(many.sizes).select(many, randomness.serving(top.law_name))
    lists = drawn.reshape(batch.rows, DRAWS, top.count)
    starts = batch.table.bounds[:-1, None, None]
    sums = np.where(lists >= 0, flat[starts + np.maximum(lists, 0)], 0.0).sum(axis=2)
    regret = np.maximum(best[:, None] - sums, 0.0) / top.count
    errors: FloatArray = (regret**power).mean(axis=1)
    return errors


def _contents(batch: Batch) -> list[bytes]:
    """Return the content of each row: scores, sensitivities and further public numbers."""
    return [b"".join(column.tobytes() for column in batch.row(row)) for row in range(batch.rows)]
