"""Quantiles of a discrete distribution."""

import numpy as np

from dpselect.kernels.arrays import FloatArray, IndexArray
from dpselect.kernels.compilation import compiled


@compiled
def tail_quantiles(
    first: int,
    last: int,
    bounds: IndexArray,
    values: FloatArray,
    pmf: FloatArray,
    excess: float,
    quantiles: FloatArray,
) -> None:
    """Fill in, for every row, the smallest of its values that is exceeded with probability at most ``excess``."""
    for row in range(first, last):
        numbers, chances = values[bounds[row] : bounds[row + 1]], pmf[bounds[row] : bounds[row + 1]]
        order = np.argsort(numbers)
        tail, place = 0.0, numbers.size - 1  # the tail is the probability of all values after this place
        while place > 0:
            below = place
            while below >= 0 and numbers[order[below]] == numbers[order[place]]:
                tail += chances[order[below]]
                below -= 1
            if tail > excess or below < 0:
                break
            place = below
        quantiles[row] = numbers[order[place]]
