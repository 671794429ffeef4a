"""Correlations of scores and sensitivities: the sign says which mechanisms win, the size by how much.

If candidates with high scores have large sensitivities (positive correlation), modified GEM and random stopping
beat noisy max. If they have small sensitivities (negative correlation), GEM does. All functions take rows in every
form that mechanisms take.

**Not private.** A correlation of private scores reveals information about them without paying for it. It is a
diagnostic for public or synthetic data, and for anyone who may see the scores. Choosing a mechanism by it is a
release; :class:`~dpselect.CombinedGEM` pays for one bit of it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from dpselect import kernels
from dpselect import parameters as check
from dpselect.candidates import Batch, Numbers, read_batch
from dpselect.kernels.arrays import FloatArray
from dpselect.parallel import over_rows

__all__ = ["pearson", "spearman", "weighted"]


def spearman(scores: Numbers, sensitivities: Numbers) -> Any:
    """Return Spearman's correlation of scores and sensitivities, one for each row.

    This is Pearson's correlation of their ranks, where ties share the mean of their ranks. Sums of ranks are
    integers, so the sign is exact, and equal (or reversed) orders give exactly 1 (or −1). The result is NaN if all
    scores of a row, or all its sensitivities, are equal.

    Privacy:
        **Not private**: a diagnostic for scores that you may see. It reveals information about their order.

    Cost:
        O(k log k), in practice a few passes over the row. Sensitivities shared by consecutive rows are ranked once.

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
    return _for_each_row(
        batch, lambda first, last, found: kernels.correlations.spearman_rows(first, last, batch.table, found)
    )


def pearson(scores: Numbers, sensitivities: Numbers) -> Any:
    """Return Pearson's correlation of scores and sensitivities, one for each row.

    $$Σ (q_a − q̄)(Δ_a − Δ̄) / √(Σ (q_a − q̄)² · Σ (Δ_a − Δ̄)²)$$

    The result is NaN if all scores of a row, or all its sensitivities, are equal. It is precise also for numbers
    far from zero, very large numbers and very small ones.

    Privacy:
        **Not private**: a diagnostic for scores that you may see.

    Cost:
        O(k).

    Args:
        scores: An array (last axis candidates), ragged rows ``(values, offsets)``, or an Arrow list array.
        sensitivities: The sensitivities, which broadcast against scores.

    Example:
        >>> import dpselect as dps
        >>> float(dps.correlation.pearson([0.0, 1.0, 2.0], [1.0, 1.0, 4.0]).round(3))
        0.866

    References:
        K. Pearson, Notes on regression and inheritance in the case of two parents, 1895.
    """
    batch = read_batch(scores, sensitivities)
    return _for_each_row(
        batch, lambda first, last, found: kernels.correlations.pearson_rows(first, last, batch.table, found)
    )


def weighted(scores: Numbers, sensitivities: Numbers, *, buckets: int = 5) -> Any:
    """Return the bucketed weighted correlation of scores and sensitivities, one for each row.

    Among candidates with similar scores, the most sensitive one gets the largest noise. So the range of the scores
    is cut into B equal buckets, half-open except for the last, and candidate a has the weight

    $$w_a = Δ_a / M_a$$

    where $M_a$ is the largest Δ in a's bucket.

    Then, with weighted means $q̄$ and $Δ̄$, the correlation is

    $$Σ w_a (q_a − q̄)(Δ_a − Δ̄) / √(Σ w_a (q_a − q̄)² · Σ w_a (Δ_a − Δ̄)²).$$

    The definition leaves some cases open. In a bucket whose sensitivities are all zero the weight would be 0/0;
    here it is 1, the limit of small equal sensitivities. In any other bucket a candidate of sensitivity zero has
    weight 0. Candidate a is in bucket $⌊B (q_a − min q)/(max q − min q)⌋$, computed in floats, so a score within
    rounding of a border may fall on either side of it. The result is NaN if all scores, or all sensitivities, of
    positive weight are equal.

    Privacy:
        **Not private**: a diagnostic for scores that you may see.

    Cost:
        O(k).

    Args:
        scores: An array (last axis candidates), ragged rows ``(values, offsets)``, or an Arrow list array.
        sensitivities: The sensitivities, which broadcast against scores.
        buckets: The number of buckets, B.

    Example:
        >>> import dpselect as dps
        >>> scores, sensitivities = [1.0, 1.0, 1.0, 0.0], [0.1, 0.1, 2.0, 1.0]
        >>> float(dps.correlation.pearson(scores, sensitivities).round(3))
        -0.147
        >>> float(dps.correlation.weighted(scores, sensitivities).round(3))  # the third outweighs the first two
        0.723

    References:
        D. Antonova et al., Private selection with heterogeneous sensitivities, 2025, appendix.
    """
    parts = check.count("buckets", buckets, most=2**20)
    batch = read_batch(scores, sensitivities)
    return _for_each_row(
        batch, lambda first, last, found: kernels.correlations.weighted_rows(first, last, batch.table, parts, found)
    )


def _for_each_row(batch: Batch, fill: Callable[[int, int, FloatArray], None]) -> Any:
    found = np.empty(batch.rows)
    if batch.rows:
        over_rows(batch.table.bounds, lambda first, last: fill(first, last, found), seconds=1e-8)
    return batch.restore_rows(found)
