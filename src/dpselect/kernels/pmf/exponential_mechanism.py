"""The pmf of the exponential mechanism: softmax."""

from dpselect.kernels.arrays import FloatArray, IndexArray
from dpselect.kernels.compilation import compiled
from dpselect.kernels.pmf.permute_and_flip import fill_passing


@compiled
def fill(gaps: FloatArray, pmf: FloatArray) -> None:
    """Fill the probabilities of the exponential mechanism (noisy max with Gumbel noise): exp(−x_a) / Σ."""
    total = fill_passing(gaps, pmf)
    for a in range(gaps.size):
        pmf[a] /= total


@compiled
def fill_rows(first: int, last: int, bounds: IndexArray, pmf: FloatArray) -> None:
    """Turn the gaps of each row of a block into probabilities, in place."""
    for row in range(first, last):
        target = pmf[bounds[row] : bounds[row + 1]]
        fill(target, target)
