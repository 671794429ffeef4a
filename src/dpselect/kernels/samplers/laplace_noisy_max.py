"""Noisy max with Laplace noise: an interval around each noisy score, and the largest of them."""

import math

import numpy as np

from dpselect.kernels.arrays import UNRESOLVED, IndexArray
from dpselect.kernels.chacha import next_word
from dpselect.kernels.coins import draw_exponential
from dpselect.kernels.compilation import compiled_without_refcounts
from dpselect.kernels.lazy_gaps import LazyGaps
from dpselect.kernels.samplers.loops import GapRows, ScoreRows, Setup, Workspace, pick_from_gaps, pick_from_scores


@compiled_without_refcounts
def pick(gaps: LazyGaps, _visits: int, workspace: Workspace) -> int:
    """Pick the largest of (Laplace noise − gap). A candidate takes one word: a sign bit, 63 bits of magnitude."""
    values, top, rate = gaps.values, gaps.top, gaps.rate
    stream, error_bound, _, _ = workspace
    best_low, best_high, picked, rival = -math.inf, -math.inf, UNRESOLVED, -math.inf
    for a in range(values.size):
        word = next_word(stream)
        size, error = draw_exponential(word >> np.uint64(1), np.uint64(1))
        gap = (top - values[a]) * rate
        if gap == math.inf:
            continue
        value = (size if word & np.uint64(1) else -size) - gap
        error += error_bound * (1.0 + size + gap)
        if value - error > best_low:
            rival = max(rival, best_high)
            best_low, best_high, picked = value - error, value + error, a
        else:
            rival = max(rival, value + error)
    return picked if best_low > rival else UNRESOLVED


@compiled_without_refcounts
def select_from_scores(rows: ScoreRows, setup: Setup, space: Workspace, picks: IndexArray) -> None:
    """Pick one candidate for each row of a block, from gaps over the largest sensitivity."""
    pick_from_scores(pick, rows, setup, space, picks)


@compiled_without_refcounts
def select_from_gaps(rows: GapRows, setup: Setup, space: Workspace, picks: IndexArray) -> None:
    """Pick one candidate for each of the given rows, from gaps computed before."""
    pick_from_gaps(pick, rows, setup, space, picks)
