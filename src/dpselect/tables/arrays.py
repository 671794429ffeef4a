"""What tables need of Arrow arrays: kinds of columns, lists as flat numbers with bounds, text as numbers."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpselect import rules
from dpselect.kernels.arrays import FloatArray, IndexArray

NUMBER = r"^\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$"
MOST_EXACT = 2**53
"""The largest integer up to which float64 holds all."""


def is_list(kind: pa.DataType) -> bool:
    """Tell whether a type is one of Arrow's lists."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_number(kind: pa.DataType) -> bool:
    """Tell whether a type holds numbers."""
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def is_identifier(kind: pa.DataType) -> bool:
    """Tell whether a type can identify units and candidates: integers, text, bytes, or a dictionary of them."""
    if pa.types.is_dictionary(kind):
        return is_identifier(kind.value_type)
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    data = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    return bool(pa.types.is_integer(kind) or text or data)


def decoded(array: pa.Array) -> pa.Array:
    """Return an array without its dictionary, if it has one."""
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def to_numpy(array: pa.Array) -> NDArray[Any]:
    """Return an Arrow array as NumPy's. Arrow's own method loads pandas, which takes longer than many picks."""
    if array.null_count or not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        return np.asarray(array.to_numpy(zero_copy_only=False))
    return np.from_dlpack(array)


def from_numpy(array: NDArray[Any]) -> pa.Array:
    """Return numbers as an Arrow array that is not copied, without loading pandas."""
    flat = np.ascontiguousarray(array)
    return pa.Array.from_buffers(pa.from_numpy_dtype(flat.dtype), flat.size, [None, pa.py_buffer(flat)])


def split_lists(array: pa.Array) -> tuple[pa.Array, IndexArray]:
    """Return (flat values, bounds) of a list array. Bounds start at 0; only a dictionary's values are copied."""
    if array.null_count:
        raise ValueError("a list is missing")
    if pa.types.is_fixed_size_list(array.type):
        return decoded(array.flatten()), np.arange(len(array) + 1, dtype=np.int64) * array.type.list_size
    bounds = to_numpy(array.offsets).astype(np.int64)
    return decoded(array.flatten()), bounds - bounds[0]


def as_floats(name: str, column: pa.Array, locate: Callable[[int], str] = "row {}".format) -> FloatArray:
    """Return a column as float64, with NaN for null and for text that is not a number; copy only what must be.

    What float64 may round is refused; ``locate`` says where a row is.
    """
    numbers, rounded = read_numbers(column)
    if rounded.any():
        raise ValueError(f"{locate(int(rounded.argmax()))}: column {name!r} {rules.EXACT_INTEGERS}")
    return numbers


def read_numbers(column: pa.Array) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return a column as float64, and which entries must be refused because float64 may round them.

    Those are integers and decimals beyond 2⁵³, as text too. A number in text with an exponent is a float already.
    """
    parsed = parse_numbers(column)
    if pa.types.is_decimal(parsed.type):
        parsed = parsed.cast(pa.float64())
    numbers = np.asarray(to_numpy(parsed), dtype=np.float64)
    rounded = np.zeros(len(numbers), dtype=np.bool_)
    if not pa.types.is_floating(column.type):
        for place in np.flatnonzero((np.abs(numbers) >= MOST_EXACT) & np.isfinite(numbers)):
            number = column[place].as_py()
            is_float = isinstance(number, str) and "e" in number.lower()
            rounded[place] = not is_float and abs(Decimal(number)) > MOST_EXACT
    return numbers, rounded


def parse_numbers(column: pa.Array) -> pa.Array:
    """Return a column of text as numbers, null where the text is not a number; any other column as it is."""
    if not pa.types.is_string(column.type):
        return column
    try:
        return column.cast(pa.float64())
    except pa.ArrowInvalid:  # spaces, or no number
        readable = pc.if_else(pc.match_substring_regex(column, NUMBER), column, None)
        return pc.utf8_trim_whitespace(readable).cast(pa.float64())


def rows_with_duplicates(identifiers: pa.Array, bounds: IndexArray) -> NDArray[np.bool_]:
    """Tell for each row whether it names a candidate twice."""
    found = np.zeros(len(bounds) - 1, dtype=np.bool_)
    if not len(identifiers):
        return found
    rising = np.ones(len(identifiers), dtype=np.uint8)
    compared = pc.greater(identifiers[1:], identifiers[:-1]).cast(pa.uint8())
    rising[:-1] = to_numpy(pc.fill_null(compared, 0) if compared.null_count else compared)
    rising[bounds[1:-1] - 1] = 1  # the last candidate of a row is not compared with the next row
    if rising.all():
        return found
    if not pa.types.is_integer(identifiers.type):
        identifiers = identifiers.dictionary_encode().indices
    numbers = to_numpy(pc.fill_null(identifiers, 0) if identifiers.null_count else identifiers)
    if (int(numbers.max()) - int(numbers.min()) + 1) * found.size >= 2**63:
        numbers = np.unique(numbers, return_inverse=True)[1]
    codes = numbers.astype(np.int64) - numbers.min().astype(np.int64)  # wraps back, if unsigned
    span = int(codes.max()) + 1
    keys = np.sort(np.repeat(np.arange(found.size), np.diff(bounds)) * span + codes)
    found[keys[1:][keys[1:] == keys[:-1]] // span] = True
    return found
