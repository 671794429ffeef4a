"""How scores and sensitivities correlate: the sign says which mechanisms win, the size by how much.

Where good candidates have large sensitivities (positive correlation), modified GEM and random stopping beat noisy
max; where they have small ones (negative), GEM does. All functions take rows in every form that mechanisms take.

**Not private.** A correlation of private scores tells about them and has paid for nothing: it is a diagnostic,
for public or synthetic data and for whoever may see the scores anyway. Choosing a mechanism by it is a release;
:class:`~dpselect.CombinedGEM` pays for one bit of it.
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


def spearman(scores: Numbers, sensitivities: Numbers) -> Any:  # noqa: ANN401 - a float, or an array with one for each row
    """Return Spearman's correlation of scores and sensitivities, one for each row.

    Pearson's correlation of their ranks, ties sharing the mean of their ranks. Ranks are added up in integers, so
    the sign is exact, and ranks that agree (or are reversed) give exactly 1 (or −1). NaN where it is undefined:
    all scores of a row, or all its sensitivities, are equal.

    Privacy:
        **Not private**: a diagnostic, for scores that may be seen. It reveals how they are ordered.

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


def pearson(scores: Numbers, sensitivities: Numbers) -> Any:  # noqa: ANN401 - a float, or an array with one for each row
    """Return Pearson's correlation of scores and sensitivities, one for each row.

        Σ (q_a − q̄)(Δ_a − Δ̄) / √(Σ (q_a − q̄)² · Σ (Δ_a − Δ̄)²)

    NaN where it is undefined: all scores of a row, or all its sensitivities, are equal. Numbers far from zero, very
    large or very small ones cost no precision.

    Privacy:
        **Not private**: a diagnostic, for scores that may be seen.

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


def weighted(scores: Numbers, sensitivities: Numbers, *, buckets: int = 5) -> Any:  # noqa: ANN401 - a float, or an array with one for each row
    """Return the bucketed weighted correlation of scores and sensitivities, one for each row.

    Among candidates of similar score, the most sensitive one decides where the largest noise falls. So the
    range of the scores is cut into B equal buckets, half-open but for the last, and a candidate weighs

        w_a = Δ_a / (the largest Δ in a's bucket);

    then, with weighted means q̄ and Δ̄,

        Σ w_a (q_a − q̄)(Δ_a − Δ̄) / √(Σ w_a (q_a − q̄)² · Σ w_a (Δ_a − Δ̄)²).

    Edge cases, which the definition leaves open: a bucket whose sensitivities are all zero would weigh 0/0 and
    weighs 1, the limit of small equal ones; a candidate of sensitivity zero in any other bucket weighs nothing.
    Candidate a is in bucket ⌊B (q_a − min q)/(max q − min q)⌋, computed in floats, so that a score within
    rounding of a border may fall on either side of it. NaN where the correlation is undefined: all scores, or
    all sensitivities, of positive weight are equal.

    Privacy:
        **Not private**: a diagnostic, for scores that may be seen.

    Cost:
        O(k).

    Args:
        scores: An array (last axis candidates), ragged rows ``(values, offsets)``, or an Arrow list array.
        sensitivities: The sensitivities, which broadcast against scores.
        buckets: How many parts the range of the scores is cut into, B.

    Example:
        >>> import dpselect as dps
        >>> scores, sensitivities = [1.0, 1.0, 1.0, 0.0], [0.1, 0.1, 2.0, 1.0]
        >>> float(dps.correlation.pearson(scores, sensitivities).round(3))
        -0.147
        >>> float(dps.correlation.weighted(scores, sensitivities).round(3))  # the third speaks for the first two
        0.723

    References:
        D. Antonova et al., Private selection with heterogeneous sensitivities, 2025, appendix.
    """
    parts = check.count("buckets", buckets, most=2**20)
    batch = read_batch(scores, sensitivities)
    return _for_each_row(
        batch, lambda first, last, found: kernels.correlations.weighted_rows(first, last, batch.table, parts, found)
    )


def _for_each_row(batch: Batch, fill: Callable[[int, int, FloatArray], None]) -> Any:  # noqa: ANN401
    found = np.empty(batch.rows)
    if batch.rows:
        over_rows(batch.table.bounds, lambda first, last: fill(first, last, found), seconds=1e-8)
    return batch.restore_rows(found)
