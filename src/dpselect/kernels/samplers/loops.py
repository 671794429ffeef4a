"""Loops over rows, for samplers that look at nothing but gaps.

Each loop is a template: the sampler is an argument, and the file of each sampler compiles the loops with its own.
So a call compiles the sampler that it uses, and no other.
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
    Table,
    Units,
    WordArray,
)
from dpselect.kernels.blocks import row_extent, row_of
from dpselect.kernels.chacha import StreamState, new_stream, seek
from dpselect.kernels.compilation import compiled, inlined
from dpselect.kernels.lazy_gaps import KNOWN, LazyGaps


class Workspace(NamedTuple):
    """Random bits, the precision of floats, and room for notes."""

    stream: StreamState
    width: float
    """A bound on the relative error of a computed probability."""
    seen: FlagArray
    """False for every candidate when a sampler starts, and again when it ends."""
    visited: IndexArray
    """Room for the visits, and for one number more."""


Pick: TypeAlias = Callable[[LazyGaps, int, Workspace], int]


class Visits(NamedTuple):
    """How many candidates are visited in random order before the whole row is scanned: base + size // divisor."""

    base: int
    divisor: int


@compiled
def visits_of(visits: Visits, size: int) -> int:
    """Return the number of visits in a row of this size."""
    return min(size, visits.base + size // visits.divisor)


@compiled
def new_workspace(key: WordArray, width: float, size: int, visits: int) -> Workspace:
    """Return a workspace for rows of up to ``size`` candidates."""
    return Workspace(new_stream(key), width, np.zeros(size, np.bool_), np.empty(visits + 1, np.int64))


@inlined
def pick_from_scores(
    pick: Pick,
    first: int,
    last: int,
    table: Table,
    budget: float,
    visits: Visits,
    units: Units,
    workspace: Workspace,
    picks: IndexArray,
) -> None:
    """Pick one candidate of each row [first, last) by gaps over the largest sensitivity, formed when looked at.

    A row whose sensitivities are all zero is marked ALL_GAPS_NEEDED: its gaps are zero or infinite.
    """
    widest = 0.0
    for row in range(first, last):
        scores = row_of(table.scores, table.bounds, row)
        top, magnitude = row_extent(scores)
        if not magnitude <= LARGEST:
            picks[row] = INVALID
            continue
        if row == first or table.sensitivities.starts[row] != table.sensitivities.starts[row - 1]:
            widest = row_extent(row_of(table.sensitivities, table.bounds, row))[0]
        if widest > 0.0:
            seek(workspace.stream, units.nonces, row)
            gaps = LazyGaps(scores, top, budget / widest, KNOWN, scores, 0.0, 0.0, 0.0)
            picks[row] = pick(gaps, visits_of(visits, scores.size), workspace)
        else:
            picks[row] = ALL_GAPS_NEEDED


@inlined
def pick_from_gaps(
    pick: Pick,
    rows: IndexArray,
    places: IndexArray,
    gaps: FloatArray,
    trusted: FlagArray,
    visits: Visits,
    units: Units,
    workspace: Workspace,
    picks: IndexArray,
) -> None:
    """Pick one candidate of each of some rows, whose gaps have been computed; those not trusted stay UNRESOLVED.

    The gaps of row ``rows[i]`` are ``gaps[places[i]:places[i + 1]]``. They are negated on the way.
    """
    for i in range(rows.size):
        if not trusted[i]:
            picks[rows[i]] = UNRESOLVED
            continue
        values = gaps[places[i] : places[i + 1]]
        for a in range(values.size):
            values[a] = -values[a]
        seek(workspace.stream, units.nonces, rows[i])
        known = LazyGaps(values, 0.0, 1.0, KNOWN, values, 0.0, 0.0, 0.0)
        picks[rows[i]] = pick(known, visits_of(visits, values.size), workspace)
