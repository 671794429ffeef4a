"""Permute-and-flip with the same amount of work for all scores."""

import numpy as np

from dpselect.kernels.arrays import UNRESOLVED, IndexArray
from dpselect.kernels.blocks import widest_row
from dpselect.kernels.chacha import next_word
from dpselect.kernels.coins import PASS, UNSURE, bernoulli_exp_interval
from dpselect.kernels.compilation import compiled, compiled_without_refcounts
from dpselect.kernels.lazy_gaps import LazyGaps
from dpselect.kernels.samplers.loops import (
    GapRows,
    ScoreRows,
    Setup,
    Workspace,
    new_workspace,
    pick_from_gaps,
    pick_from_scores,
)


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
def pick_scores(rows: ScoreRows, setup: Setup, space: Workspace, picks: IndexArray) -> None:
    """Run the loop over scores with this sampler."""
    pick_from_scores(pick, rows, setup, space, picks)


@compiled_without_refcounts
def pick_gaps(rows: GapRows, setup: Setup, space: Workspace, picks: IndexArray) -> None:
    """Run the loop over gaps with this sampler."""
    pick_from_gaps(pick, rows, setup, space, picks)


@compiled
def select_from_scores(rows: ScoreRows, setup: Setup, picks: IndexArray) -> None:
    """Pick one candidate for each row of a block, from gaps over the largest sensitivity."""
    pick_scores(rows, setup, new_workspace(setup, widest_row(rows.first, rows.last, rows.table.bounds)), picks)


@compiled
def select_from_gaps(rows: GapRows, setup: Setup, picks: IndexArray) -> None:
    """Pick one candidate for each of the given rows, from gaps computed before."""
    pick_gaps(rows, setup, new_workspace(setup, widest_row(0, rows.rows.size, rows.places)), picks)
