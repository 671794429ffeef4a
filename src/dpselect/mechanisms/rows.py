"""Running a kernel over the rows of a batch."""

from collections.abc import Callable

import numpy as np

from dpselect import kernels
from dpselect.candidates import Batch, refuse_scores
from dpselect.exact import ExactStream
from dpselect.kernels.arrays import FloatArray, IndexArray, Units
from dpselect.parallel import over_rows
from dpselect.randomness import Randomness

__all__ = ["pick_rows", "weigh_rows"]

TOLERANCE = 1e-12

FILTER_WIDTH = 2.0**-40
"""A bound on the relative error of any probability a sampler computes; docs/theory/exact-sampling.md derives it."""


def weigh_rows(batch: Batch, fill: Callable[[int, int, FloatArray], None], *, seconds: float = 5e-8) -> FloatArray:
    """Return flat probabilities. ``fill(first, last, pmf)`` writes those of a block of rows.

    ``seconds`` is roughly what a candidate takes.

    Probabilities are returned as computed: dividing them by their sum would hide an error, so a sum that
    misses 1 is one.
    """
    bounds = batch.table.bounds
    pmf = np.empty(int(bounds[-1]))

    def work(first: int, last: int) -> float:
        fill(first, last, pmf)
        return kernels.rows.largest_miss(first, last, bounds, pmf)

    miss = max(over_rows(bounds, work, seconds=seconds)) if batch.rows else 0.0
    if not miss <= TOLERANCE:
        raise ArithmeticError(f"probabilities miss a sum of 1 by {miss:.1e}; please report this as a bug")
    return pmf


def pick_rows(
    batch: Batch,
    randomness: Randomness | None,
    fill: Callable[[int, int, Units, float, IndexArray], None],
    resolve: Callable[[int, ExactStream], int] | None = None,
) -> IndexArray:
    """Return one pick for each row.

    ``fill(first, last, units, width, picks)`` writes those of a block of rows, and −1 where floats of relative
    precision ``width`` cannot decide; ``resolve(row, stream)`` decides such a row exactly. A kernel that checks
    scores itself writes INVALID for bad ones, and nothing is returned.
    """
    units = Randomness.given(randomness).units(batch.rows)
    picks = np.empty(batch.rows, dtype=np.int64)
    if batch.rows:
        over_rows(
            batch.table.bounds,
            lambda first, last: fill(first, last, units, FILTER_WIDTH, picks),
            seconds=2e-9,
        )
    if resolve is not None and batch.rows and (picks[0] < 0 if batch.rows == 1 else picks.min() < 0):
        if (picks == kernels.picks.INVALID).any():
            refuse_scores()
        for row in np.flatnonzero(picks < 0).tolist():
            picks[row] = resolve(row, ExactStream(units, row))
    return picks
