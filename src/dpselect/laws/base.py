"""The interface of every law: exact probabilities, and private picks.

``Mechanism.select`` reads the batch. ``RowLaw.select`` runs a compiled sampler over blocks of rows. It then picks
the rows that floats cannot decide again in exact arithmetic, from the same random bits.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, TypeAlias, final

import numpy as np

from dpselect import kernels
from dpselect.candidates import Batch
from dpselect.exact import ExactStream
from dpselect.inputs import refuse_scores
from dpselect.kernels.arrays import INVALID, FloatArray, IndexArray, Units
from dpselect.parallel import over_rows
from dpselect.randomness import Randomness

FillPicks: TypeAlias = Callable[[Batch, int, int, Units, float, IndexArray], None]
PickExactly: TypeAlias = Callable[[Batch, int, ExactStream], int]

TOLERANCE = 1e-12

FILTER_ERROR = 2.0**-40
"""A bound on the relative error of any probability a sampler computes; docs/theory/exact-sampling.md derives it."""


class Law(ABC):
    """The distribution of one pick or list for each row, given the public parameters of a mechanism."""

    checks_scores: ClassVar[bool] = False
    """Whether ``select`` itself rejects scores that are not finite, in the same pass over memory."""

    @abstractmethod
    def pmf(self, batch: Batch) -> FloatArray:
        """Return the exact probability of each candidate, as a flat array."""

    @abstractmethod
    def select(self, batch: Batch, randomness: Randomness) -> IndexArray:
        """Return one pick for each row, or a list of picks: an array (rows, count)."""

    @property
    def refusal(self) -> str | None:
        """The reason why the law can be computed but not sampled; ``None`` if it can be sampled."""
        return None


class RowLaw(Law):
    """A law that treats every row separately: a kernel for blocks of rows, and an exact twin for single rows."""

    pmf_seconds: ClassVar[float] = 5e-8
    """Roughly how long ``pmf`` takes for one candidate; decides whether threads are worth starting."""

    def for_batch(self, batch: Batch) -> "RowLaw":  # noqa: ARG002 - for laws whose blocks share something
        """Return this law, with what all blocks of rows share computed once."""
        return self

    @abstractmethod
    def fill_pmf(self, batch: Batch, first: int, last: int, pmf: FloatArray) -> None:
        """Write the probabilities of a block of rows."""

    @abstractmethod
    def fill_picks(
        self, batch: Batch, first: int, last: int, units: Units, error_bound: float, picks: IndexArray
    ) -> None:
        """Write the picks of a block of rows.

        Write UNRESOLVED where floats within ``error_bound`` cannot decide, and INVALID where a kernel that checks
        scores finds bad ones.
        """

    @abstractmethod
    def pick_exactly(self, batch: Batch, row: int, stream: ExactStream) -> int:
        """Return the pick of one row, in exact arithmetic."""

    @final
    def pmf(self, batch: Batch) -> FloatArray:
        """Return the exact probability of each candidate, as a flat array.

        Probabilities are returned as computed. Dividing them by their sum would hide an error, so a sum that
        differs from 1 raises one.
        """
        law, bounds = self.for_batch(batch), batch.table.bounds
        pmf = np.empty(int(bounds[-1]))

        def work(first: int, last: int) -> float:
            law.fill_pmf(batch, first, last, pmf)
            return kernels.blocks.largest_miss(first, last, bounds, pmf)

        miss = max(over_rows(bounds, work, seconds=self.pmf_seconds)) if batch.rows else 0.0
        if not miss <= TOLERANCE:
            raise ArithmeticError(f"internal error: probabilities miss a sum of 1 by {miss:.1e}; please report it")
        return pmf

    @final
    def select(self, batch: Batch, randomness: Randomness) -> IndexArray:
        """Return one pick for each row."""
        law = self.for_batch(batch)
        return draw_rows(batch, randomness.units(batch.rows), law.fill_picks, law.pick_exactly)


def draw_rows(batch: Batch, units: Units, fill_picks: FillPicks, pick_exactly: PickExactly) -> IndexArray:
    """Return one pick for each row: from a kernel, or from exact arithmetic where floats could not decide."""
    picks = np.empty(batch.rows, dtype=np.int64)
    if not batch.rows:
        return picks
    over_rows(
        batch.table.bounds,
        lambda first, last: fill_picks(batch, first, last, units, FILTER_ERROR, picks),
        seconds=2e-9,
    )
    if picks[0] < 0 if batch.rows == 1 else picks.min() < 0:
        if (picks == INVALID).any():
            refuse_scores()
        for row in np.flatnonzero(picks < 0).tolist():
            picks[row] = pick_exactly(batch, row, ExactStream(units, row))
    return picks
