"""The exponential mechanism (noisy max with Gumbel noise), by rejection sampling: one pick, or a list."""

import math

from dpselect.kernels.arrays import DRAWN, INVALID, LARGEST, UNLIKE, UNRESOLVED, FloatArray, IndexArray
from dpselect.kernels.blocks import are_equal, row_extent, row_of, widest_row
from dpselect.kernels.chacha import next_word, seek
from dpselect.kernels.coins import FAIL, PASS, UNSURE, bernoulli_exp, split
from dpselect.kernels.compilation import compiled, compiled_without_refcounts
from dpselect.kernels.lazy_gaps import KNOWN, LazyGaps
from dpselect.kernels.samplers.loops import (
    GapRows,
    Left,
    ScoreRows,
    Setup,
    Workspace,
    new_workspace,
    peel_from_scores,
    pick_from_gaps,
    pick_from_scores,
)

MOST_PROPOSALS = 2**27
"""The largest count · size of a row that is drawn in one pass: 1/64 of the words of its stream."""


@compiled_without_refcounts
def pick(gaps: LazyGaps, _visits: int, workspace: Workspace) -> int:
    """Propose candidates uniformly and accept with probability exp(−gap): Pr[a] ∝ exp(−gap)."""
    values, top, rate = gaps.values, gaps.top, gaps.rate
    stream, width, _, _ = workspace
    while True:
        a, coin = split(next_word(stream), values.size)
        verdict = UNSURE if a == UNSURE else bernoulli_exp(coin, values.size, (top - values[a]) * rate, width)
        if verdict != FAIL:
            return a if verdict == PASS else UNRESOLVED


@compiled_without_refcounts
def pick_scores(rows: ScoreRows, setup: Setup, space: Workspace, picks: IndexArray) -> None:
    """Run the loop over scores with this sampler."""
    pick_from_scores(pick, rows, setup, space, picks)


@compiled_without_refcounts
def pick_gaps(rows: GapRows, setup: Setup, space: Workspace, picks: IndexArray) -> None:
    """Run the loop over gaps with this sampler."""
    pick_from_gaps(pick, rows, setup, space, picks)


@compiled_without_refcounts
def peel_scores(
    rows: ScoreRows, setup: Setup, space: Workspace, left: Left, lists: IndexArray, states: IndexArray
) -> None:
    """Run the loop over scores and rounds with this sampler."""
    peel_from_scores(pick, rows, setup, space, left, lists, states)


@compiled
def peel_rows(rows: ScoreRows, setup: Setup, left: Left, lists: IndexArray, states: IndexArray) -> None:
    """Draw a list for each row of a block, from gaps over the largest sensitivity that is left."""
    peel_scores(rows, setup, new_workspace(setup, left.scores.size), left, lists, states)


@compiled
def select_from_scores(rows: ScoreRows, setup: Setup, picks: IndexArray) -> None:
    """Pick one candidate for each row of a block, from gaps over the largest sensitivity."""
    pick_scores(rows, setup, new_workspace(setup, widest_row(rows.first, rows.last, rows.table.bounds)), picks)


@compiled
def select_from_gaps(rows: GapRows, setup: Setup, picks: IndexArray) -> None:
    """Pick one candidate for each of the given rows, from gaps computed before."""
    pick_gaps(rows, setup, new_workspace(setup, widest_row(0, rows.rows.size, rows.places)), picks)


@compiled_without_refcounts
def pick_list(values: FloatArray, top: float, rate: float, workspace: Workspace, picks: IndexArray) -> int:
    """Pick one candidate after another, each with probability ∝ exp(rate · value) among those that are left.

    A pick leaves by a value of −∞: its gap is then infinite, and no coin passes. Returns DRAWN or UNRESOLVED.
    """
    for rank in range(picks.size):
        a = pick(LazyGaps(values, top, rate, KNOWN, values, 0.0, 0.0, 0.0), 0, workspace)
        if a == UNRESOLVED:
            return UNRESOLVED
        picks[rank] = a
        led = values[a] == top
        values[a] = -math.inf
        if led:
            top = row_extent(values)[0]
    return DRAWN


@compiled_without_refcounts
def pick_lists(
    rows: ScoreRows, setup: Setup, space: Workspace, room: FloatArray, lists: IndexArray, states: IndexArray
) -> None:
    """Draw the lists of rows whose candidates have equal, positive sensitivities and equal public numbers.

    Other rows are marked UNLIKE. That depends on the row and the length of the list alone.
    """
    first, last, table, budget = rows
    alike, known = False, 0
    for row in range(first, last):
        size = table.bounds[row + 1] - table.bounds[row]
        sensitivities = row_of(table.sensitivities, table.bounds, row)
        if (
            size != known
            or table.sensitivities.starts[row] != table.sensitivities.starts[row - 1]
            or table.public.starts[row] != table.public.starts[row - 1]
        ):
            alike = sensitivities[0] > 0.0 and are_equal(sensitivities)
            alike = alike and are_equal(row_of(table.public, table.bounds, row))
            known = size
        if not alike or size * lists.shape[1] > MOST_PROPOSALS:
            states[row] = UNLIKE
            continue
        scores = row_of(table.scores, table.bounds, row)
        top, magnitude = row_extent(scores)
        if not magnitude <= LARGEST:
            states[row] = INVALID
            continue
        values = room[:size]
        for a in range(size):
            values[a] = scores[a]
        seek(space.stream, setup.units.nonces, row)
        picks = lists[row, : min(size, lists.shape[1])]
        states[row] = pick_list(values, top, budget / sensitivities[0], space, picks)


@compiled
def select_lists(rows: ScoreRows, setup: Setup, room: FloatArray, lists: IndexArray, states: IndexArray) -> None:
    """Draw a list for each row of a block where one pass is right; ``room`` holds one row."""
    pick_lists(rows, setup, new_workspace(setup, 0), room, lists, states)
