"""Loops over rows, for samplers that use only gaps.

Each loop is a template whose argument is the sampler. Each sampler's module compiles the loops with its own
sampler, so a call compiles only the sampler that it uses.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from dpselect.kernels.arrays import (
    ALL_GAPS_NEEDED,
    INVALID,
    LARGEST,
    UNRESOLVED,
    FlagArray,
    FloatArray,
    IndexArray,
    Rows,
    Units,
)
from dpselect.kernels.blocks import load_next_row, row_extent, row_of
from dpselect.kernels.chacha import StreamState, new_stream, seek
from dpselect.kernels.compilation import compiled, inlined
from dpselect.kernels.lazy_gaps import KNOWN, LazyGaps


class Workspace(NamedTuple):
    """Random bits, the precision of floats, and work arrays."""

    stream: StreamState
    error_bound: float
    """A bound on the relative error of a computed probability."""
    seen: FlagArray
    """False for every candidate when a sampler starts and when it ends."""
    visited: IndexArray
    """Room for the visited candidates and one counter."""


Pick: TypeAlias = Callable[[LazyGaps, int, Workspace], int]


class Visits(NamedTuple):
    """The number of candidates visited in random order before the whole row is scanned: base + size // divisor."""

    base: int
    divisor: int


class Setup(NamedTuple):
    """What a sampler needs besides the rows."""

    visits: Visits
    units: Units
    error_bound: float
    """A bound on the relative error of a computed probability."""


class ScoreRows(NamedTuple):
    """The rows [first, last) of a table; a gap is (largest score − score) · rate / (largest sensitivity)."""

    first: int
    last: int
    table: Rows
    rate: float


class GapRows(NamedTuple):
    """Some rows and their gaps: those of row ``rows[i]`` are ``gaps[places[i]:places[i + 1]]``."""

    rows: IndexArray
    places: IndexArray
    gaps: FloatArray
    trusted: FlagArray
    """Whether the gaps of a row are as precise as samplers need them."""


@compiled
def visits_of(visits: Visits, size: int) -> int:
    """Return the number of visits in a row of this size."""
    return min(size, visits.base + size // visits.divisor)


def new_workspace(setup: Setup, size: int) -> Workspace:
    """Return a workspace for rows of up to ``size`` candidates. Kernels that allocate take longer to compile."""
    visited = np.empty(min(size, setup.visits.base + size // setup.visits.divisor) + 1, np.int64)
    return Workspace(new_stream(setup.units.key), setup.error_bound, np.zeros(size, np.bool_), visited)


@inlined
def pick_from_scores(pick: Pick, rows: ScoreRows, setup: Setup, space: Workspace, picks: IndexArray) -> None:
    """Pick one candidate for each row, from gaps that are computed when needed.

    A row whose sensitivities are all zero is marked ALL_GAPS_NEEDED, because its gaps are zero or infinite.
    """
    first, last, table, rate = rows
    widest = 0.0
    for row in range(first, last):
        scores = row_of(table.scores, table.bounds, row)
        top, magnitude = row_extent(scores)
        load_next_row(row, last, table.scores, table.bounds)
        if not magnitude <= LARGEST:
            picks[row] = INVALID
            continue
        if row == first or table.sensitivities.starts[row] != table.sensitivities.starts[row - 1]:
            widest = row_extent(row_of(table.sensitivities, table.bounds, row))[0]
        if widest > 0.0:
            seek(space.stream, setup.units.nonces, row)
            gaps = LazyGaps(scores, top, rate / widest, KNOWN, scores, 0.0, 0.0, 0.0)
            picks[row] = pick(gaps, visits_of(setup.visits, scores.size), space)
        else:
            picks[row] = ALL_GAPS_NEEDED


@inlined
def pick_from_gaps(pick: Pick, rows: GapRows, setup: Setup, space: Workspace, picks: IndexArray) -> None:
    """Pick one candidate for each trusted row, from gaps computed before, which are negated in place."""
    numbers, places, gaps, trusted = rows
    for i in range(numbers.size):
        if not trusted[i]:
            picks[numbers[i]] = UNRESOLVED
            continue
        values = gaps[places[i] : places[i + 1]]
        for a in range(values.size):
            values[a] = -values[a]
        seek(space.stream, setup.units.nonces, numbers[i])
        known = LazyGaps(values, 0.0, 1.0, KNOWN, values, 0.0, 0.0, 0.0)
        picks[numbers[i]] = pick(known, visits_of(setup.visits, values.size), space)
