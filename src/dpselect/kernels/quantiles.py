"""Quantiles of a discrete distribution."""

from dpselect.kernels.arrays import FloatArray, IndexArray
from dpselect.kernels.compilation import compiled


@compiled
def tail_quantiles(
    first: int,
    last: int,
    bounds: IndexArray,
    values: FloatArray,
    order: IndexArray,
    pmf: FloatArray,
    excess: float,
    quantiles: FloatArray,
) -> None:
    """Fill in, for every row, the smallest of its values that is exceeded with probability at most ``excess``.

    ``order`` has the places of the block's values: row by row, rising within a row.
    """
    for row in range(first, last):
        tail, least = 0.0, bounds[row] - bounds[first]
        place = (
            least + bounds[row + 1] - bounds[row] - 1
        )  # the tail is the probability of all values after this place
        while place > least:
            below = place
            while below >= least and values[order[below]] == values[order[place]]:
                tail += pmf[order[below]]
                below -= 1
            if tail > excess or below < least:
                break
            place = below
        quantiles[row] = values[order[place]]
