"""The types that Python and the kernels exchange: arrays, limits, and rows as slices of flat values.

Row r of a column starts at ``starts[r]``. A column that all rows share (one table of sensitivities for a whole
batch) is therefore stored once. Row r has ``bounds[r + 1] - bounds[r]`` candidates, and its probabilities go to
``pmf[bounds[r]:bounds[r + 1]]``. Dense, ragged and Arrow batches all use this layout.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IndexArray: TypeAlias = NDArray[np.int64]
WordArray: TypeAlias = NDArray[np.uint32]
FlagArray: TypeAlias = NDArray[np.bool_]


LARGEST = 2.0**300
"""The largest magnitude of any input. Nonzero parameters and sensitivities must be at least its inverse.

Kernels multiply up to three inputs, and carry rounding errors 2⁻¹⁰⁶ times smaller than the results. Within these
limits nothing overflows and nothing that matters underflows.
"""

MOST_DRAWS = 2**33
"""The largest number of draws of random stopping that one random stream has bits for."""


UNRESOLVED = -1
"""Returned in place of a pick: floats could not decide. The caller picks the row again in exact arithmetic."""

ALL_GAPS_NEEDED = -3
"""Returned in place of a pick: the caller computes all gaps of the row and picks again from the first bit."""

INVALID = -4
"""Returned in place of a pick: a score is not finite, or too large. The caller rejects the batch."""


class Column(NamedTuple):
    """One number for each candidate of each row."""

    values: FloatArray
    starts: IndexArray

    def __repr__(self) -> str:
        return f"Column({self.values.size} values, {self.starts.size} rows)"  # values may be private


class Rows(NamedTuple):
    """A batch: private scores, public sensitivities, and public offsets."""

    scores: Column
    sensitivities: Column
    offsets: Column
    """Weights, for the mechanisms that take those."""
    bounds: IndexArray


class Points(NamedTuple):
    """The candidates of one row: q, o and Δ of each."""

    scores: FloatArray
    offsets: FloatArray
    sensitivities: FloatArray


class Units(NamedTuple):
    """The source of each row's randomness: one key, and one address (three words) for each row."""

    key: WordArray
    nonces: WordArray


class Share(NamedTuple):
    """The public parameters of top share."""

    epsilon: float
    share: float
    by_rule: bool
    """Whether a rule chose the share. It is then at least that of one candidate, 1/k."""
