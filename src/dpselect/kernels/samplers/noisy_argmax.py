"""The largest noisy score, with noise of each candidate's own scale.

The sampler works in floats only: nothing that uses it is private.
"""

import math

import numpy as np

from dpselect.kernels.arrays import INVALID, LARGEST, UNRESOLVED, FloatArray, IndexArray, Rows, Units
from dpselect.kernels.blocks import row_extent, row_of
from dpselect.kernels.chacha import StreamState, next_word, seek
from dpselect.kernels.coins import draw_exponential, keep_larger
from dpselect.kernels.compilation import compiled_without_refcounts
from dpselect.kernels.pmf.integrands import EXPONENTIAL


@compiled_without_refcounts
def pick(
    noise: int, scores: FloatArray, top: float, sensitivities: FloatArray, scale: float, stream: StreamState
) -> int:
    """Draw noise of scale ``scale`` · Δ_a once for every candidate, and pick the largest noisy score."""
    best, picked, ties = -math.inf, UNRESOLVED, 0
    for a in range(scores.size):
        value = scores[a] - top
        if sensitivities[a] > 0.0:
            word = next_word(stream)
            size = draw_exponential(word >> np.uint64(1), np.uint64(1))[0]
            if noise != EXPONENTIAL and not word & np.uint64(1):
                size = -size
            value += scale * sensitivities[a] * size
        best, picked, ties = keep_larger(value, a, best, picked, ties, stream)
    return picked


@compiled_without_refcounts
def select_rows(
    first: int,
    last: int,
    table: Rows,
    noise: int,
    scale: float,
    units: Units,
    stream: StreamState,
    picks: IndexArray,
) -> None:
    """Pick the largest noisy score of each row of a block; candidate a's noise has scale ``scale`` · Δ_a."""
    for row in range(first, last):
        seek(stream, units.nonces, row)
        scores = row_of(table.scores, table.bounds, row)
        sensitivities = row_of(table.sensitivities, table.bounds, row)
        top, magnitude = row_extent(scores)
        picks[row] = INVALID if not magnitude <= LARGEST else pick(noise, scores, top, sensitivities, scale, stream)
