"""What crosses the border between Python and the kernels: array types, limits, and rows as slices of flat values.

Row r of a column starts at ``starts[r]``, so a column shared by all rows (one table of sensitivities for a
whole batch) is stored once. Row r has ``bounds[r + 1] - bounds[r]`` candidates, and its probabilities go to
``pmf[bounds[r]:bounds[r + 1]]``. Dense, ragged and Arrow batches all look like this.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IndexArray: TypeAlias = NDArray[np.int64]
WordArray: TypeAlias = NDArray[np.uint32]
FlagArray: TypeAlias = NDArray[np.bool_]


LARGEST = 2.0**300
"""No input may exceed this in magnitude; parameters, sensitivities and anchors may not be below its inverse, but 0.

Kernels multiply up to three inputs, and carry rounding errors 2⁻¹⁰⁶ times smaller than the results: within
these limits nothing overflows and nothing that matters underflows.
"""

MOST_DRAWS = 2**33
"""A random stream has bits for so many draws of random stopping."""


UNRESOLVED = -1
"""In place of a pick: floats could not decide; pick the row again in exact arithmetic."""

ALL_GAPS_NEEDED = -3
"""In place of a pick: compute all gaps of the row, and pick again from its first random bit."""

INVALID = -4
"""In place of a pick: a score is not finite, or too large; refuse the batch."""


class Column(NamedTuple):
    """One number for each candidate of each row."""

    values: FloatArray
    starts: IndexArray

    def __repr__(self) -> str:
        return f"Column({self.values.size} values, {self.starts.size} rows)"  # values may be private


class Table(NamedTuple):
    """A batch: private scores, public sensitivities, and a public number more (an offset or an anchor)."""

    scores: Column
    sensitivities: Column
    public: Column
    bounds: IndexArray


class Units(NamedTuple):
    """Where each row's randomness comes from: one key, and one address (three words) for each row."""

    key: WordArray
    nonces: WordArray
