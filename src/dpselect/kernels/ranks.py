"""Ranks and their correlation, in integer arithmetic."""

import math

import numpy as np

from dpselect.kernels.arrays import FloatArray, IndexArray
from dpselect.kernels.compilation import compiled


@compiled
def centred_ranks(values: FloatArray) -> IndexArray:
    """Return 2·rank − (k + 1), for ranks 1 … k with ties averaged: integers that sum to zero."""
    k = values.size
    order = np.argsort(values)
    ranks = np.empty(k, np.int64)
    i = 0
    while i < k:
        after = i + 1
        while after < k and values[order[after]] == values[order[i]]:
            after += 1
        for j in range(i, after):  # positions i … after−1 have ranks i+1 … after, of mean (i + 1 + after)/2
            ranks[order[j]] = i + after - k
        i = after
    return ranks


@compiled
def rank_covariance(x_ranks: IndexArray, y_ranks: IndexArray) -> tuple[int, int]:
    """Return Σ x y over centred ranks as high·2³² + low, 0 ≤ low < 2³².

    In one word of 64 bits the sum could overflow beyond two million ranks.
    """
    high, low = 0, 0
    for a in range(x_ranks.size):
        product = x_ranks[a] * y_ranks[a]
        high += product >> 32
        low += product & 0xFFFFFFFF
    return high + (low >> 32), low & 0xFFFFFFFF


@compiled
def rank_covariance_sign(x: FloatArray, y: FloatArray) -> int:
    """Return the exact sign of Spearman's correlation; 0 if x or y is constant, where it is undefined."""
    high, low = rank_covariance(centred_ranks(x), centred_ranks(y))
    if high < 0:
        return -1
    return 1 if high > 0 or low > 0 else 0


@compiled
def rank_correlation(x_ranks: IndexArray, y_ranks: IndexArray) -> float:
    """Return Spearman's correlation from centred ranks; NaN if x or y is constant.

    Sums are exact, so only the last four operations round. Since √(v·v) = v, equal ranks give exactly 1.
    """
    high, low = rank_covariance(x_ranks, y_ranks)
    x_high, x_low = rank_covariance(x_ranks, x_ranks)
    y_high, y_low = rank_covariance(y_ranks, y_ranks)
    unit = 2.0**32
    variances = (x_high * unit + x_low) * (y_high * unit + y_low)
    if variances == 0.0:
        return math.nan
    return (high * unit + low) / math.sqrt(variances)
