"""Quantiles of a discrete distribution."""

from dpselect.kernels.arrays import FloatArray, IndexArray
from dpselect.kernels.compilation import compiled
from dpselect.kernels.ranks import rising


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
        keys, order = rising(numbers)
        tail, place = 0.0, numbers.size - 1  # the tail is the probability of all values after this place
        while place > 0:
            below = place
            while below >= 0 and keys[below] == keys[place]:
                tail += chances[order[below]]
                below -= 1
            if tail > excess or below < 0:
                break
            place = below
        quantiles[row] = numbers[order[place]]
