"""Permute-and-flip with the same amount of work for all scores."""

import numpy as np

from dpselect.kernels.arrays import UNRESOLVED, FlagArray, FloatArray, IndexArray, Table, Units
from dpselect.kernels.chacha import next_word
from dpselect.kernels.coins import PASS, UNSURE, bernoulli_exp_interval
from dpselect.kernels.compilation import compiled, compiled_without_refcounts
from dpselect.kernels.lazy_gaps import LazyGaps
from dpselect.kernels.samplers.loops import Visits, Workspace, new_workspace, pick_from_gaps, pick_from_scores


@compiled_without_refcounts
def pick(gaps: LazyGaps, _visits: int, workspace: Workspace) -> int:
    """Pick uniformly among those that pass, with the same work for all gaps: no early exit, no conditional draw.

    Every candidate draws a coin and a priority. Of those that pass, the one with the largest priority is picked.
    """
    values, top, rate = gaps.values, gaps.top, gaps.rate
    stream, width, _, _ = workspace
    picked, unsure = 0, False
    best, rival = np.uint64(0), np.uint64(0)
    for a in range(values.size):
        verdict = bernoulli_exp_interval(
            np.float64(next_word(stream)), 1.0, 2.0**64, (top - values[a]) * rate, width
        )
        priority = next_word(stream)
        unsure |= verdict == UNSURE
        contends = priority if verdict == PASS else np.uint64(0)
        wins = contends > best
        rival = best if wins else max(rival, contends)
        picked = a if wins else picked
        best = contends if wins else best
    return UNRESOLVED if unsure or best == rival else picked


@compiled_without_refcounts
def pick_rows_from_scores(
    first: int,
    last: int,
    table: Table,
    budget: float,
    visits: Visits,
    units: Units,
    workspace: Workspace,
    picks: IndexArray,
) -> None:
    """Run the loop over scores with this sampler."""
    pick_from_scores(pick, first, last, table, budget, visits, units, workspace, picks)


@compiled_without_refcounts
def pick_rows_from_gaps(
    rows: IndexArray,
    places: IndexArray,
    gaps: FloatArray,
    trusted: FlagArray,
    visits: Visits,
    units: Units,
    workspace: Workspace,
    picks: IndexArray,
) -> None:
    """Run the loop over gaps with this sampler."""
    pick_from_gaps(pick, rows, places, gaps, trusted, visits, units, workspace, picks)


@compiled
def select_from_scores(
    first: int,
    last: int,
    table: Table,
    budget: float,
    visits: Visits,
    units: Units,
    width: float,
    picks: IndexArray,
) -> None:
    """Pick one candidate for each row of a block, from gaps over the largest sensitivity."""
    workspace = new_workspace(units.key, width, 0, 0)
    pick_rows_from_scores(first, last, table, budget, visits, units, workspace, picks)


@compiled
def select_from_gaps(
    rows: IndexArray,
    places: IndexArray,
    gaps: FloatArray,
    trusted: FlagArray,
    visits: Visits,
    units: Units,
    width: float,
    picks: IndexArray,
) -> None:
    """Pick one candidate for each of the given rows, from gaps computed before."""
    workspace = new_workspace(units.key, width, 0, 0)
    pick_rows_from_gaps(rows, places, gaps, trusted, visits, units, workspace, picks)
