"""Reads the arguments of a call together: validates, broadcasts and flattens them.

Scores are private: messages name the argument and the rule, and never show a value.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect import rules
from dpselect.arrays import is_foreign, like
from dpselect.inputs import (
    Numbers,
    check_finite,
    check_public,
    is_arrow,
    is_ragged,
    read_numbers,
    read_only,
    split_ragged,
)
from dpselect.kernels.arrays import Column, FloatArray, IndexArray, Rows
from dpselect.labels import Labels, is_labelled, split_labels

MOST_CANDIDATES = 2**32
"""The largest number of candidates that random 32-bit integers can index."""

OUTSIDE = 1e-9
"""Neighbours may exceed a sensitivity by this fraction of it: that is rounding, not a violation."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The candidates of any number of rows, flat, and how to return results in the caller's form."""

    table: Rows = field(repr=False)
    shape: tuple[int, ...] | None
    """The leading axes of a dense batch; ``None`` for ragged rows."""
    arrow: bool
    """Whether the scores are an Arrow array, so that probabilities are returned as one."""
    has_offsets: bool
    """Whether the call passed offsets, or weights. If not, they are zero."""
    row_size: int = 0
    """The number of candidates in each row of a dense batch."""
    labels: Labels | None = None
    """The labels of the candidates, if the scores have any."""
    given: Any = field(default=None, repr=False)
    """The scores, if they are an array of another library than NumPy."""

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.table.bounds.size - 1

    @property
    def sizes(self) -> IndexArray:
        """The number of candidates in each row."""
        sizes: IndexArray = self.table.bounds[1:] - self.table.bounds[:-1]
        return sizes

    def widest_row(self, first: int, last: int) -> int:
        """Return the number of candidates in the longest row of a block."""
        return self.row_size or int(np.diff(self.table.bounds[first : last + 1]).max())

    def check_scores(self) -> None:
        """Raise if a score is not finite, or too large."""
        check_finite("scores", self.table.scores.values)

    def check_weights(self, count: int = 1) -> None:
        """Raise unless each row has a positive weight for each of ``count`` picks, or for all its candidates."""
        values, starts = self.table.offsets
        positive = np.append(0, np.cumsum(values > 0))
        if (positive[starts + self.sizes] - positive[starts] < np.minimum(count, self.sizes)).any():
            several = f"must be positive for at least {count} candidates of each row"
            raise ValueError(f"weights {rules.POSITIVE_WEIGHT if count == 1 else several}")

    def row(self, index: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the scores, sensitivities and offsets (or weights) of one row."""
        size = self.table.bounds[index + 1] - self.table.bounds[index]
        columns = (self.table.scores, self.table.sensitivities, self.table.offsets)
        scores, sensitivities, offsets = (c.values[c.starts[index] : c.starts[index] + size] for c in columns)
        return scores, sensitivities, offsets

    def rows_between(self, first: int, last: int) -> "Batch":
        """Return a block of rows."""
        bounds = self.table.bounds[first : last + 1]
        sizes = np.diff(bounds)

        def block(column: Column) -> Column:
            starts = column.starts[first:last]
            low, high = int(starts.min()), int((starts + sizes).max())
            return Column(column.values[low:high], starts - low)

        shape = None if self.shape is None else (last - first,)
        return replace(
            self, table=map_columns(self.table, block, bounds - bounds[0]), shape=shape, labels=None, given=None
        )

    def spread(self, column: Column) -> FloatArray:
        """Return a column of the table as a flat array: one number for each candidate, repeated where shared."""
        starts = self.table.bounds[:-1]
        if column.values.size == self.table.bounds[-1] and np.array_equal(column.starts, starts):
            return column.values
        if self.shape is not None and self.rows and (column.starts == column.starts[0]).all():
            return np.tile(column.values[column.starts[0] :][: self.row_size], self.rows)
        places: IndexArray = np.repeat(column.starts - starts, self.sizes) + np.arange(self.table.bounds[-1])
        return column.values.take(places)

    def reduced(self, flat: FloatArray, function: np.ufunc) -> FloatArray:
        """Return what a function such as ``np.maximum`` makes of each row's numbers."""
        return function.reduceat(flat, self.table.bounds[:-1]) if self.rows else np.empty(0)

    def restore_candidates(self, flat: FloatArray) -> Any:
        """Return one number for each candidate, in the form of the scores."""
        if self.arrow:
            import pyarrow as pa  # noqa: PLC0415 - only for callers that pass Arrow arrays

            return pa.LargeListArray.from_arrays(self.table.bounds, flat)
        if self.shape is None:
            return self._like_given(flat)
        shaped = flat.reshape(*self.shape, self.row_size)
        return self._like_given(shaped) if self.labels is None else self.labels.name_candidates(shaped)

    def restore_picks(self, flat: IndexArray) -> Any:
        """Return a pick or a list for each row, with leading axes: positions, or labels if the scores have them."""
        if self.shape is None:
            return self._like_given(flat)
        picks = flat.reshape((*self.shape, *flat.shape[1:]))
        if self.labels is not None:
            return self.labels.name_picks(picks, lists=flat.ndim > 1)
        return self._like_given(picks) if picks.ndim else int(picks)

    def restore_rows(self, flat: NDArray[Any]) -> Any:
        """Return one number for each row, or a scalar for a single row without leading axes."""
        return flat if self.shape is None else flat.reshape(self.shape)[()]

    def _like_given(self, numbers: NDArray[Any]) -> Any:
        return numbers if self.given is None else like(numbers, self.given)


def read_batch(
    scores: Numbers,
    sensitivities: Numbers,
    offsets: Numbers | None = None,
    *,
    weights: Numbers | None = None,
    finite: bool = True,
) -> Batch:
    """Validate the arguments of ``pmf`` and ``select`` and lay them out for the kernels.

    ``finite=False`` leaves the check for NaN, infinities and magnitude to :meth:`Batch.check_scores`, or to a
    kernel that does it in the same pass over memory. A call may have offsets or weights, but not both: they are
    kept in one column.
    """
    labels = None
    name, public = ("offsets", offsets) if weights is None else ("weights", weights)
    if is_labelled(scores) or is_labelled(sensitivities) or is_labelled(public):
        scores, others, labels = split_labels(scores, sensitivities=sensitivities, **{name: public})
        sensitivities, public = others.values()
    read = _read_ragged if is_ragged(scores) else _read_dense
    batch = read(scores, sensitivities, name, public)
    if labels is not None:
        batch = replace(batch, labels=labels)
    if is_foreign(array := scores[0] if isinstance(scores, tuple) else scores):
        batch = replace(batch, given=array)
    if weights is not None:
        batch.check_weights()
    if finite:
        batch.check_scores()
    return batch


def read_neighbours(
    scores: ArrayLike, neighbour: ArrayLike, sensitivities: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Check two sets of scores that are neighbours, and the sensitivities; return them as arrays."""
    if is_ragged(scores) or is_ragged(neighbour):
        raise ValueError("scores and neighbour must be arrays whose last axis is candidates, not ragged rows")
    scores, others, _ = split_labels(scores, neighbour=neighbour, sensitivities=sensitivities)
    neighbour, sensitivities = others.values()
    read_batch(scores, sensitivities)
    here, there = read_numbers("scores", scores), read_numbers("neighbour", neighbour)
    check_finite("neighbour", there)
    if here.shape != there.shape:
        raise ValueError(f"neighbour must have the shape of scores, {here.shape}, got {there.shape}")
    bounds = _fit_last_axis("sensitivities", sensitivities, here.shape[-1])
    if (np.abs(here - there) > bounds * (1 + OUTSIDE)).any():
        raise ValueError("neighbour must be within the sensitivities of scores: |q_a − q'_a| ≤ Δ_a for every a")
    return here, there, bounds


def read_sensitivities(sensitivities: Numbers) -> FloatArray:
    """Check sensitivities that come without scores, one for each candidate or one for all; return them."""
    widths = read_numbers("sensitivities", sensitivities)
    if widths.ndim > 1 or not widths.size:
        raise ValueError("sensitivities must be one number for each candidate, without leading axes")
    check_public("sensitivities", widths)
    return widths


def map_columns(table: Rows, change: Callable[[Column], Column], bounds: IndexArray) -> Rows:
    """Return a table of read-only arrays whose columns are changed, each by the same function."""
    columns = (change(column) for column in (table.scores, table.sensitivities, table.offsets))
    scores, sensitivities, offsets = (Column(read_only(c.values), read_only(c.starts)) for c in columns)
    return Rows(scores, sensitivities, offsets, read_only(bounds))


# --- Dense batches ------------------------------------------------------------------------------------


def _read_dense(scores: Numbers, sensitivities: Numbers, name: str, public: Numbers | None) -> Batch:
    score_array = read_numbers("scores", scores)
    if score_array.ndim == 0:
        raise ValueError("scores must have a last axis of candidates, got a single number")
    size = score_array.shape[-1]
    if size == 0:
        raise ValueError(f"scores {rules.HAS_CANDIDATES} in each row")
    if size > MOST_CANDIDATES:
        raise ValueError("scores must hold at most 2^32 candidates in each row")
    arrays = {
        "scores": score_array,
        "sensitivities": _fit_last_axis("sensitivities", sensitivities, size),
        name: np.zeros(size) if public is None else _fit_last_axis(name, public, size),
    }
    shape = _broadcast_leading_axes(arrays)
    bounds = read_only(np.arange(0, (math.prod(shape) + 1) * size, size, dtype=np.int64))
    starts = {shape: bounds[:-1]}
    score_column, sensitivity_column, public_column = (_dense_column(a, shape, starts) for a in arrays.values())
    table = Rows(score_column, sensitivity_column, public_column, bounds)
    return Batch(table, shape, arrow=False, has_offsets=public is not None, row_size=size)


def _broadcast_leading_axes(arrays: dict[str, FloatArray]) -> tuple[int, ...]:
    leading = {array.shape[:-1] for array in arrays.values()} - {()}
    if not leading:
        return ()
    if len(leading) == 1:
        return leading.pop()
    try:
        return np.broadcast_shapes(*leading)
    except ValueError:
        named = ", ".join(f"{name} {array.shape}" for name, array in arrays.items() if array.ndim > 1)
        raise ValueError(f"leading axes must broadcast against each other, got {named}") from None


def _fit_last_axis(name: str, numbers: Numbers, size: int) -> FloatArray:
    """Return numbers whose last axis has length ``size``, repeating a single number."""
    if is_ragged(numbers):
        raise ValueError(f"{name} must be an array like scores, got ragged rows")
    array = read_numbers(name, numbers)
    check_public(name, array)  # before it is repeated
    if array.ndim == 0:
        return array.repeat(size)
    if array.shape[-1] == 1 != size:
        return np.repeat(array, size, axis=-1)
    if array.shape[-1] != size:
        raise ValueError(f"{name} must have one number for each of the {size} candidates, got {array.shape[-1]}")
    return array


def _dense_column(array: FloatArray, shape: tuple[int, ...], starts: dict[tuple[int, ...], IndexArray]) -> Column:
    """Return a column, without copying numbers; ``starts`` holds where rows start, by the leading axes."""
    lead, size = array.shape[:-1], array.shape[-1]
    if lead not in starts:
        own = np.arange(0, math.prod(lead) * size, size, dtype=np.int64).reshape(lead)
        starts[lead] = read_only(np.broadcast_to(own, shape).flatten())  # kernels need contiguous numbers
    return Column(read_only(array.reshape(-1) if lead else array), starts[lead])


# --- Ragged rows --------------------------------------------------------------------------------------


def _read_ragged(scores: Numbers, sensitivities: Numbers, name: str, public: Numbers | None) -> Batch:
    values, bounds = split_ragged("scores", scores)
    bounds = read_only(bounds)
    if (np.diff(bounds) == 0).any():
        row = int(np.argmax(np.diff(bounds) == 0))
        raise ValueError(f"scores {rules.HAS_CANDIDATES} in each row: row {row} has none")
    sensitivity_column = _ragged_column("sensitivities", sensitivities, bounds)
    public_column = _ragged_column(name, 0.0 if public is None else public, bounds)
    table = Rows(Column(read_only(values), bounds[:-1]), sensitivity_column, public_column, bounds)
    return Batch(table, None, arrow=is_arrow(scores), has_offsets=public is not None)


def _ragged_column(name: str, numbers: Numbers, bounds: IndexArray) -> Column:
    """Return public numbers in the layout of ragged scores. They may be ragged rows, flat, or one number."""
    if is_ragged(numbers):
        values, own_bounds = split_ragged(name, numbers)
        if not np.array_equal(own_bounds, bounds):
            raise ValueError(f"{name} must have rows of the same lengths as scores")
    else:
        values = read_numbers(name, numbers)
        if values.shape not in {(), (bounds[-1],)}:
            raise ValueError(f"{name} must be flat, with one number for each of the {bounds[-1]} candidates")
    check_public(name, values)
    if values.ndim == 0:
        starts = np.zeros(bounds.size - 1, dtype=np.int64)
        return Column(read_only(np.full(np.diff(bounds).max(initial=1), values)), read_only(starts))
    return Column(read_only(values), bounds[:-1])
