"""Signs of rank correlations, in integers."""

import numpy as np

from dpselect.kernels.arrays import FloatArray, IndexArray
from dpselect.kernels.compilation import compiled


@compiled
def centred_ranks(values: FloatArray) -> IndexArray:
    """Return 2·rank − (k + 1), ranks 1 … k with ties averaged: integers that add up to zero."""
    k = values.size
    order = np.argsort(values)
    ranks = np.empty(k, np.int64)
    i = 0
    while i < k:
        after = i
        while after < k and values[order[after]] == values[order[i]]:
            after += 1
        for j in range(i, after):  # positions i … after−1 have ranks i+1 … after, of mean (i + 1 + after)/2
            ranks[order[j]] = i + after - k
        i = after
    return ranks


@compiled
def rank_covariance_sign(x: FloatArray, y: FloatArray) -> int:
    """Return the sign of Spearman's correlation, exactly; 0 where it is undefined because one is constant.

    The sum is kept as high·2³² + low, since products of centred ranks can outgrow 64 bits beyond two
    million candidates.
    """
    x_ranks = centred_ranks(x)
    y_ranks = centred_ranks(y)
    high, low = 0, 0
    for a in range(x.size):
        product = x_ranks[a] * y_ranks[a]
        high += product >> 32
        low += product & 0xFFFFFFFF
    high += low >> 32
    low &= 0xFFFFFFFF
    if high < 0:
        return -1
    return 1 if high > 0 or low > 0 else 0
