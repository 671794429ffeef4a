"""The laws that ignore sensitivities: k-ary randomised response, and uniform choice."""

from dataclasses import dataclass

import numpy as np

from dpselect import kernels
from dpselect.candidates import Batch
from dpselect.exact import ExactStream
from dpselect.exact.samplers import randomized_response
from dpselect.kernels.arrays import FloatArray, IndexArray, Units
from dpselect.kernels.chacha import new_stream
from dpselect.laws.base import RowLaw


@dataclass(frozen=True, slots=True)
class RandomizedResponseLaw(RowLaw):
    """Picks the best candidate with odds e^ε : 1 against every other."""

    epsilon: float

    def fill_pmf(self, batch: Batch, first: int, last: int, pmf: FloatArray) -> None:
        """Write the probabilities of a block of rows."""
        kernels.pmf.randomized_response.fill_rows(first, last, batch.table, self.epsilon, pmf)

    def fill_picks(
        self, batch: Batch, first: int, last: int, units: Units, error_bound: float, picks: IndexArray
    ) -> None:
        """Write the picks of a block of rows."""
        kernels.samplers.randomized_response.select_rows(
            first, last, batch.table, self.epsilon, units, new_stream(units.key), error_bound, picks
        )

    def pick_exactly(self, batch: Batch, row: int, stream: ExactStream) -> int:
        """Return the pick of one row, in exact arithmetic."""
        return randomized_response.pick(batch.row(row)[0], self.epsilon, stream)


class UniformLaw(RowLaw):
    """Picks every candidate with the same probability."""

    def fill_pmf(self, batch: Batch, first: int, last: int, pmf: FloatArray) -> None:
        """Write the probabilities of a block of rows."""
        bounds = batch.table.bounds[first : last + 1]
        pmf[bounds[0] : bounds[-1]] = np.repeat(1.0 / np.diff(bounds), np.diff(bounds))

    def fill_picks(
        self, batch: Batch, first: int, last: int, units: Units, _error_bound: float, picks: IndexArray
    ) -> None:
        """Write the picks of a block of rows. Integer arithmetic decides all of them."""
        kernels.samplers.uniform.select_rows(first, last, batch.table, units, new_stream(units.key), picks)

    def pick_exactly(self, batch: Batch, row: int, stream: ExactStream) -> int:
        """Return the pick of one row."""
        return stream.below(int(batch.sizes[row]))
