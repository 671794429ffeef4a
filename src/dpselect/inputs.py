"""One argument of a call: numbers in any form, as float64 arrays.

Scores are private: messages name the argument and the rule, and never show a value.
"""

import math
from typing import Any, NoReturn, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect import kernels, rules
from dpselect.arrays import PLAIN, is_elsewhere, to_host
from dpselect.kernels.arrays import LARGEST, FloatArray, IndexArray

Numbers: TypeAlias = ArrayLike | tuple[ArrayLike, ArrayLike] | Any
"""The accepted forms of scores and of public numbers:

- an array whose last axis is candidates and whose leading axes are a batch: NumPy's, or one of torch, CuPy, JAX or
  another library with DLPack, and then picks are arrays of that library on the same device;
- a tuple ``(values, offsets)`` for rows of different length: row i is ``values[offsets[i]:offsets[i + 1]]``;
- an Arrow list array (``ListArray``, ``LargeListArray``, ``FixedSizeListArray``, chunked or not) or a polars list
  column, with one list for each row;
- a mapping or a pandas Series, with a label for each candidate: then a pick is a label (:mod:`dpselect.labels`).
"""

AT_ONCE = 1 << 23
"""Numbers that are copied from another device at once: 64 MiB of float64."""

WORTH_A_KERNEL = 1 << 14
"""NumPy checks fewer numbers than this faster than a compiled kernel is called."""


def refuse_scores(name: str = "scores") -> NoReturn:
    """Raise the error for numbers that are not finite, or too large."""
    raise ValueError(f"{name} {rules.FINITE.words}")


def is_arrow(numbers: Numbers) -> bool:
    """Tell whether numbers are an Arrow array."""
    return type(numbers).__module__.partition(".")[0] == "pyarrow"


def is_ragged(numbers: Numbers) -> bool:
    """Tell whether numbers are rows of different length. Of polars, a column of numbers or of pairs is an array."""
    if isinstance(numbers, PLAIN):
        return False
    if type(numbers).__module__.startswith("polars."):
        return str(getattr(numbers, "dtype", "")).startswith("List")
    return isinstance(numbers, tuple) or is_arrow(numbers)


def read_numbers(name: str, numbers: Any) -> FloatArray:
    """Return numbers as contiguous float64; raise if float64 cannot represent them exactly."""
    if type(numbers) is np.ndarray and numbers.dtype == np.float64 and numbers.flags.c_contiguous:
        return numbers  # what most calls pass
    if type(numbers) is float:
        return np.array(numbers)
    if isinstance(numbers, np.ma.MaskedArray) or (
        isinstance(numbers, list) and any(isinstance(entry, np.ma.MaskedArray) for entry in numbers)
    ):
        raise ValueError(f"{name} must not be a masked array: fill or drop the masked entries first")
    if not isinstance(numbers, np.ndarray | float) and is_elsewhere(numbers) and numbers.ndim:
        host = np.empty(numbers.shape)
        rows = max(1, AT_ONCE // max(1, math.prod(numbers.shape[1:])))
        for first in range(0, len(host), rows):
            host[first : first + rows] = read_numbers(name, to_host(numbers[first : first + rows, ...], name))
        return host
    numbers = to_host(numbers, name)
    try:
        array = np.asarray(numbers)
    except ValueError:
        raise ValueError(
            f"{name} must be rectangular; pass rows of different length as (values, offsets)"
        ) from None
    if array.dtype.kind not in "iuf" and array.size:
        lists = isinstance(array.reshape(-1)[0], list | np.ndarray)
        hint = f"; pass lists as an Arrow array, pyarrow.array({name})" if lists else ""
        raise ValueError(f"{name} must hold numbers, got {array.dtype.name}{hint}")
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        raise ValueError(f"{name} must be float64 or narrower, got {array.dtype.name}; convert with astype(float)")
    if _holds_wide_integers(array, numbers):
        raise ValueError(f"{name} {rules.EXACT_INTEGERS}")
    if array.ndim == 0:  # `ascontiguousarray` would add an axis
        return array.astype(np.float64)
    return np.ascontiguousarray(array, dtype=np.float64)


def _holds_wide_integers(array: NDArray[Any], numbers: Numbers) -> bool:
    """Return whether any number is an integer beyond 2⁵³, also if NumPy has converted it to a float."""
    limit = 2**53
    if array.dtype.kind in "iu":
        return array.size > 0 and (int(array.max()) > limit or int(array.min()) < -limit)
    if isinstance(numbers, np.ndarray | float) or array.size == 0 or not np.abs(array).max() >= limit:
        return False
    entries = np.asarray(numbers, dtype=object).reshape(-1)
    return any(isinstance(entry, int | np.integer) and abs(int(entry)) > limit for entry in entries)


def check_finite(name: str, values: FloatArray) -> None:
    """Raise unless all numbers are finite, and not too large."""
    if not _largest_magnitude(values) <= LARGEST:  # NaN compares false
        refuse_scores(name)


def _largest_magnitude(values: FloatArray) -> float:
    if values.size < WORTH_A_KERNEL:
        if values.ndim == 0:
            return abs(float(values))
        return max(float(values.max()), -float(values.min())) if values.size else 0.0
    return kernels.blocks.largest_magnitude(read_only(values.reshape(-1)))


def load_compiler() -> None:
    """Load the compiler and a kernel that all large calls need."""
    _largest_magnitude(np.zeros(WORTH_A_KERNEL))


def check_public(name: str, values: FloatArray) -> None:
    """Raise if public numbers break a rule for theirs."""
    check_finite(name, values)
    further = rules.NUMBERS[name][1:]  # the first rule, that numbers are finite, is already checked
    if not further or not values.size or (values if values.ndim == 0 else values.min()) >= 1 / LARGEST:
        return
    for rule in further:
        if rule.is_broken(values).any():
            raise ValueError(f"{name} {rule.words}")


Scalar = TypeVar("Scalar", bound=np.generic)


def read_only(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return a view that cannot be written to.

    Inputs are never changed. The compiler makes different code for writable and for read-only arrays, such as
    Arrow's. Making all of them read-only halves what is compiled.
    """
    view = array.view()
    view.setflags(write=False)
    return view


def split_ragged(name: str, numbers: Any) -> tuple[FloatArray, IndexArray]:
    """Return (values, bounds) of ragged rows; bounds start at 0."""
    if not isinstance(numbers, tuple):
        return _split_arrow(name, numbers if is_arrow(numbers) else numbers.to_arrow())
    if len(numbers) != 2:
        raise ValueError(f"{name}: a tuple means ragged rows (values, offsets); pass an array as a list")
    numbers = to_host(numbers, name)
    values = read_numbers(name, numbers[0])
    bounds = np.asarray(numbers[1])
    alike = all(isinstance(part, list | tuple) for part in numbers) or np.asarray(numbers[0]).dtype.kind in "iu"
    if alike and values.shape == bounds.shape and bounds.dtype.kind in "iu":
        raise ValueError(
            f"{name} may be two rows, or ragged rows (values, offsets): pass two rows as a list, "
            "[[…], […]], or ragged values as an array of floats, (numpy.array(values, float), numpy.array(offsets))"
        )
    if bounds.dtype.kind not in "iu" or bounds.ndim != 1 or bounds.size == 0:
        raise ValueError(
            f"{name}: a tuple means ragged rows (values, offsets); offsets must be a flat array of integers, "
            "one more than there are rows"
        )
    bounds = np.ascontiguousarray(bounds, dtype=np.int64)
    if values.ndim != 1:
        raise ValueError(f"{name}: the values of ragged rows must be flat")
    if bounds[0] != 0 or bounds[-1] != values.size or (np.diff(bounds) < 0).any():
        raise ValueError(f"{name}: offsets must increase from 0 to the number of values, {values.size}")
    return values, bounds


def _split_arrow(name: str, numbers: Any) -> tuple[FloatArray, IndexArray]:
    """Return (values, bounds) of an Arrow list array, zero-copy where Arrow allows it."""
    import pyarrow as pa  # noqa: PLC0415 - only for callers that pass Arrow arrays

    if not isinstance(numbers, pa.Array | pa.ChunkedArray):
        raise ValueError(
            f"{name} must be an Arrow list array, got {type(numbers).__name__}; for a table use "
            "dps.select_table(table, mechanism)"
        )
    array = numbers.combine_chunks() if isinstance(numbers, pa.ChunkedArray) else numbers
    kind = array.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
        raise ValueError(
            f"{name} must be an Arrow list array with one list for each row, got {kind}; pass a column of numbers "
            f"as {name}.to_numpy(), and a table to dps.select_table"
        )
    if not (pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)):
        raise ValueError(f"{name} must hold numbers, got {kind.value_type}")
    if array.null_count:
        raise ValueError(f"{name} must not have null rows; drop or fill them first")
    flat = array.flatten()
    if flat.null_count:
        raise ValueError(f"{name} must not have nulls; drop or fill them first")
    if pa.types.is_fixed_size_list(kind):
        bounds = np.arange(len(array) + 1, dtype=np.int64) * kind.list_size
    else:
        bounds = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
        bounds -= bounds[0]
    return read_numbers(name, flat.to_numpy(zero_copy_only=False)), bounds
