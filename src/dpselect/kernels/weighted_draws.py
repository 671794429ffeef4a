"""Exact draws from public weights, and what the best share of them is.

Weights are rounded to integers once, in public: $W_a = ⌈2²⁸ w_a/max w⌉$. Everything after that is integer
arithmetic with the total $T = Σ W_a ≤ 2⁶⁰$. Equal weights, in any unit, all become 2²⁸.
"""

import math
from typing import NamedTuple, cast

import numpy as np

from dpselect.kernels.arrays import FloatArray, IndexArray, Share
from dpselect.kernels.chacha import StreamState, next_word
from dpselect.kernels.coins import LOW
from dpselect.kernels.compilation import compiled_without_refcounts, in_numpy, inlined
from dpselect.kernels.instructions import leading_zeros

UNIT = 2**28
"""The integer of the largest weight. A 32-bit number is then below a column's height times a whole number with a
probability of at least 15/16, and 2³² candidates have a total below 2⁶³."""

# Not literals: the compiler would compile a kernel for each of them.
NO, YES = cast("tuple[bool, bool]", tuple(np.array([False, True])))
BEFORE, ZERO, ONE = cast("tuple[int, int, int]", tuple(np.arange(-1, 2)))

ABOVE, AT = NO, YES
"""Which scores to weigh: those above a bar, or those equal to it."""

EMPTY = -1
"""The owner of what no weight fills: draw again."""


class Urn(NamedTuple):
    """The integer weights of a row, and an alias table: columns of one height, each with at most two owners."""

    weights: IndexArray
    owners: IndexArray
    cuts: IndexArray
    """Below the cut a column belongs to its owner, and from there on to the other owner."""
    others: IndexArray


class Sizes(NamedTuple):
    """What to know about an urn."""

    equal: bool
    """Whether all weights are equal: then the table is not filled."""
    columns: int
    """The number of candidates that have a weight."""
    height: int
    total: int
    columns_left: np.uint64
    """2³² modulo the number of columns."""
    height_left: np.uint64
    """2³² modulo the height."""


class Odds(NamedTuple):
    """What a pick needs to know about the share."""

    share: int
    """M: the weight of the best candidates, out of the total T."""
    gap: float
    """−log s: the pick ignores the scores with probability s = 1/(1 + (e^ε − 1) M/T)."""


def new_urn(size: int) -> Urn:
    """Return room for rows of up to ``size`` candidates."""
    return Urn(
        np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    )


@compiled_without_refcounts
def sizes_of(equal: bool, columns: int, total: int) -> Sizes:  # noqa: FBT001
    """Return the sizes of an urn; its columns are just high enough for the total."""
    height = (total + columns - 1) // columns
    left = np.uint64(0x100000000 % columns), np.uint64(0x100000000 % height)
    return Sizes(equal, columns, height, total, left[0], left[1])


@compiled_without_refcounts
def equal_sizes(size: int) -> Sizes:
    """Return the sizes of an urn of equal weights."""
    return sizes_of(YES, size, size * UNIT)


@compiled_without_refcounts
def fill_urn(weights: FloatArray, urn: Urn) -> Sizes:
    """Round weights, of which at least one is positive, to integers, and fill the table."""
    largest, smallest = weights[0], weights[0]
    for a in range(weights.size):
        largest, smallest = max(largest, weights[a]), min(smallest, weights[a])
    if smallest == largest:
        return equal_sizes(weights.size)
    columns, total = ZERO, ZERO
    for a in range(weights.size):
        urn.weights[a] = np.int64(math.ceil(weights[a] / largest * UNIT))
        total += urn.weights[a]
        if urn.weights[a] > 0:
            urn.owners[columns] = a
            columns += 1
    sizes = sizes_of(NO, columns, total)
    fill_columns(urn, columns, sizes.height)
    return sizes


@compiled_without_refcounts
def next_column(urn: Urn, column: int, columns: int, height: int, heavy: bool) -> int:  # noqa: FBT001
    """Return the next column whose own weight is above its height (heavy), or is not."""
    column += 1
    while column < columns and (urn.weights[urn.owners[column]] > height) != heavy:
        column += 1
    return column


@compiled_without_refcounts
def fill_columns(urn: Urn, columns: int, height: int) -> None:
    """Fill light columns from heavy ones, one after the other; a heavy one that falls below its height is light.

    All columns together hold at least the total. What is missing at the end stays empty.
    """
    light = next_column(urn, BEFORE, columns, height, NO)
    heavy = next_column(urn, BEFORE, columns, height, YES)
    left = urn.weights[urn.owners[heavy]] if heavy < columns else 0
    while light < columns or heavy < columns:
        giver = urn.owners[heavy] if heavy < columns else EMPTY
        if light < columns and (left > height or heavy == columns):
            urn.cuts[light], urn.others[light] = urn.weights[urn.owners[light]], giver
            left -= height - urn.cuts[light]
            light = next_column(urn, light, columns, height, NO)
        else:
            following = next_column(urn, heavy, columns, height, YES)
            giver = urn.owners[following] if following < columns else EMPTY
            urn.cuts[heavy], urn.others[heavy] = left, giver
            if following < columns:
                left += urn.weights[giver] - height
            heavy = following


@inlined
def draw_weighted(urn: Urn, sizes: Sizes, stream: StreamState) -> int:
    """Return a candidate with probability W_a/T.

    The upper half of a word chooses the column and the lower half the place in it, both by multiplication with
    rejection. One word usually suffices.
    """
    while True:
        word = next_word(stream)
        column = (word >> np.uint64(32)) * np.uint64(sizes.columns)
        place = (word & LOW) * np.uint64(sizes.height)
        if column & LOW < sizes.columns_left or place & LOW < sizes.height_left:
            continue
        chosen: int = np.int64(column >> np.uint64(32))  # type: ignore[assignment]
        if not sizes.equal:
            inside = np.int64(place >> np.uint64(32)) < urn.cuts[chosen]
            chosen = urn.owners[chosen] if inside else urn.others[chosen]
        if chosen != EMPTY:
            return chosen


@compiled_without_refcounts
def draw_long(stream: StreamState, bound: int) -> int:
    """Return a uniform integer in [0, bound), 0 < bound < 2⁶³: the leading bits of words, until one is below."""
    shift = np.uint64(leading_zeros(np.uint64(bound)))
    number = next_word(stream) >> shift
    while number >= np.uint64(bound):
        number = next_word(stream) >> shift
    result: int = np.int64(number)  # type: ignore[assignment] # unsigned, it would make later results unsigned
    return result


@compiled_without_refcounts
def odds_of(share: Share, sizes: Sizes) -> Odds:
    """Return the best share as an integer, and the odds of ignoring the scores that make the loss exactly ε for it.

    The gap errs by less than 2⁻⁴² below 64 and relatively above, as coins need it.
    """
    part = math.ceil(share.share * np.float64(sizes.total))
    part = min(max(part, sizes.height if share.by_rule else 1), sizes.total)
    fraction = np.float64(part) / np.float64(sizes.total)
    if share.epsilon < 500.0:
        return Odds(part, math.log1p(fraction * math.expm1(share.epsilon)))
    return Odds(part, share.epsilon + math.log(fraction))


@compiled_without_refcounts
def weight_of(scores: FloatArray, bar: float, at: bool, weights: IndexArray, equal: bool) -> int:  # noqa: FBT001
    """Return the weight of the candidates whose score is above the bar, or at it."""
    total = 0
    if equal:
        for a in range(scores.size):
            total += scores[a] == bar if at else scores[a] > bar
        return total * UNIT
    for a in range(scores.size):
        total += weights[a] if (scores[a] == bar if at else scores[a] > bar) else 0
    return total


@in_numpy(weight_of)
def _weight_of(scores: FloatArray, bar: float, at: bool, weights: IndexArray, equal: bool) -> int:  # noqa: FBT001
    inside = scores == bar if at else scores > bar
    return int(inside.sum()) * UNIT if equal else int(weights[: scores.size][inside].sum())
