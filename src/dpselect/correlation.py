"""The correlation of scores and sensitivities: the sign says which mechanisms win, the size by how much.

If candidates with high scores have large sensitivities (positive correlation), modified GEM and random stopping
beat noisy max. If they have small sensitivities (negative correlation), GEM does.

**Not private.** A correlation of private scores reveals information about them without paying for it. It is a
diagnostic for public or synthetic data, and for anyone who may see the scores. Choosing a mechanism by it is a
release; :class:`~dpselect.CombinedGEM` pays for one bit of it.
"""

from typing import Any

import numpy as np

from dpselect.candidates import read_batch
from dpselect.inputs import Numbers
from dpselect.kernels.arrays import FloatArray, IndexArray
from dpselect.ranks import over_ranks, rank_covariances

__all__ = ["spearman"]


def spearman(scores: Numbers, sensitivities: Numbers) -> Any:
    """Return Spearman's correlation of scores and sensitivities, one for each row.

    This is Pearson's correlation of their ranks, where ties share the mean of their ranks. Sums of ranks are
    integers, so the sign is exact, and equal (or reversed) orders give exactly 1 (or −1). The result is NaN if all
    scores of a row, or all its sensitivities, are equal.

    Privacy:
        **Not private**: a diagnostic for scores that you may see. It reveals information about their order.

    Cost:
        O(k log k): sorting. Sensitivities that all rows share are ranked once.

    Args:
        scores: An array (last axis candidates), ragged rows ``(values, offsets)``, or an Arrow list array.
        sensitivities: The sensitivities, which broadcast against scores.

    Example:
        >>> import dpselect as dps
        >>> float(dps.correlation.spearman([0.1, 0.2, 9.0], [1.0, 2.0, 2.5]))
        1.0
        >>> dps.correlation.spearman([[1.0, 2.0, 3.0], [3.0, 1.0, 1.0]], [1.0, 2.0, 2.0]).round(3)
        array([ 0.866, -1.   ])

    References:
        C. Spearman, The proof and measurement of association between two things, 1904.
        D. Antonova et al., Private selection with heterogeneous sensitivities, 2025, algorithm 2.
    """
    batch = read_batch(scores, sensitivities)
    return batch.restore_rows(over_ranks(batch, _correlations))


def _correlations(x: IndexArray, y: IndexArray, starts: IndexArray) -> FloatArray:
    """Return the correlation of each row from centred ranks. Since √(v·v) = v, equal ranks give exactly 1."""
    variances = rank_covariances(x, x, starts) * rank_covariances(y, y, starts)
    with np.errstate(invalid="ignore"):  # constant rows
        return np.asarray(rank_covariances(x, y, starts) / np.sqrt(variances))
