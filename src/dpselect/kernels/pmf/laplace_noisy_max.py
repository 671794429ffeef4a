"""The pmf of noisy max with Laplace noise: the largest noisy score, with all scales equal to one."""

import numpy as np

from dpselect.kernels.arrays import FloatArray, IndexArray
from dpselect.kernels.compilation import compiled
from dpselect.kernels.pmf.integrands import LAPLACE, NoiseLaw
from dpselect.kernels.pmf.noisy_argmax import fill_by_cells

ONCE = np.zeros(1, np.bool_)[0]  # not a literal, or kernels are compiled again for it


@compiled
def fill(gaps: FloatArray, pmf: FloatArray) -> None:
    """Fill the probabilities of noisy max with Laplace noise; ``pmf`` and ``gaps`` may be the same array."""
    scores = -np.minimum(gaps, 1e6)  # beyond 1e6 scales the tail of Laplace noise underflows to 0
    fill_by_cells(NoiseLaw(LAPLACE, ONCE, 1.0, 1.0, 1.0), scores, np.ones(scores.size), pmf)


@compiled
def fill_rows(first: int, last: int, bounds: IndexArray, pmf: FloatArray) -> None:
    """Turn the gaps of each row of a block into probabilities, in place."""
    for row in range(first, last):
        target = pmf[bounds[row] : bounds[row + 1]]
        fill(target, target)
