"""The mean error of top share over public rows, as a function of its smallest probabilities c, and smoothed."""

import math

import numpy as np

from dpselect.kernels.arrays import FloatArray, IndexArray
from dpselect.kernels.compilation import compiled

NEGLIGIBLE = 40.0
"""e^−40 of the largest term does not count."""


@compiled
def smooth_error(
    order: IndexArray, losses: FloatArray, least: FloatArray, epsilon: float, width: float, slopes: FloatArray
) -> tuple[float, float, float]:
    """Return a smooth upper bound of the error, the error, and the constant of a linear lower bound of it.

    With losses L sorted from best to worst, a row's error is the largest over j of
    $L_j + Σ_a c_a φ(L_a − L_j)$, φ(x) = x for x ≥ 0 and e^ε x below. The smooth bound replaces the maximum by
    ``width`` · log Σ exp(·/``width``). Its slopes are added to ``slopes``. The mean of the terms, with the weights
    that the exponentials give them, is the lower bound: the constant plus Σ_a c_a · slope_a.
    """
    rows, size = losses.shape
    growth, ratio = math.expm1(epsilon), math.exp(epsilon)
    terms, total = np.empty(size), least.sum()
    smooth, error, constant = 0.0, 0.0, 0.0
    for row in range(rows):
        mass, lost, largest = 0.0, 0.0, -math.inf
        for j in range(size):
            weight = least[order[row, j]]
            mass += weight
            lost += weight * losses[row, j]
            terms[j] = losses[row, j] * (1.0 - total - growth * mass) + growth * lost
            largest = max(largest, terms[j])
        norm, mean = 0.0, 0.0
        for j in range(size):
            behind = (largest - terms[j]) / width
            terms[j] = math.exp(-behind) if behind < NEGLIGIBLE else 0.0
            norm += terms[j]
            mean += terms[j] * losses[row, j]
        mean /= norm
        error += largest + lost
        smooth += width * math.log(norm)
        constant += mean
        before, before_mean = 0.0, 0.0
        for j in range(size):
            before += terms[j] / norm
            before_mean += terms[j] / norm * losses[row, j]
            slope = losses[row, j] * (before + ratio * (1.0 - before))
            slopes[order[row, j]] += slope - before_mean - ratio * (mean - before_mean)
    return (error + smooth) / rows, error / rows, constant / rows
