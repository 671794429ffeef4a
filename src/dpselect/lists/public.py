"""A list for the price of one pick: the candidates are public lists."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import dpselect.parameters as check
from dpselect.guarantees import ANY_SCORES
from dpselect.inputs import Numbers, read_numbers
from dpselect.kernels.arrays import FloatArray, IndexArray
from dpselect.mechanisms import Mechanism
from dpselect.mechanisms.base import require_mechanism
from dpselect.randomness import Randomness
from dpselect.weights import read_rows

BLOCK = 1 << 22
"""Scores of lists that are computed at once: 32 MB."""


def public_lists(public_scores: ArrayLike, count: int = 10) -> IndexArray:
    """Return the best ``count`` candidates of each public row, as candidates for :func:`select_list`.

    Rows with the same candidates give one list. A list is in the order of the mean public score, so its order tells
    nothing about anyone.

    Args:
        public_scores: Rows of scores that you may look at, with the same candidates as the private rows.
        count: The length of a list.

    Example:
        >>> import dpselect as dps
        >>> dps.lists.public_lists([[3, 2, 1, 0], [0, 1, 2, 3], [9, 5, 0, 0]], count=2)
        array([[0, 1],
               [2, 3]])
    """
    scores = read_rows("public_scores", public_scores)
    number = check.count("count", count, most=scores.shape[1])
    order = np.argsort(-scores.mean(axis=0), kind="stable")
    best = np.argsort(-scores[:, order], axis=1, kind="stable")[:, :number]
    found: IndexArray = order[np.unique(np.sort(best, axis=1), axis=0)]
    return found


def select_list(
    scores: ArrayLike,
    lists: ArrayLike,
    mechanism: Mechanism,
    *,
    weights: Numbers | None = None,
    randomness: Randomness | None = None,
) -> IndexArray:
    """Return one of the public lists for each row, drawn privately for the price of one pick.

    A list's score is the sum of the scores of its candidates. Publish the list as it is: do not remove what the
    person has seen, and do not sort it by private scores.

    Args:
        scores: The private scores, an array whose last axis holds the candidates.
        lists: Public lists of candidates, an array (lists, count), for example from :func:`public_lists`.
        mechanism: A mechanism whose guarantee holds for any change of the scores, such as
            :class:`~dpselect.TopShare`.
        weights: A public weight for each list, for mechanisms that take them. They may come from
            :func:`dpselect.advice.fit_top_share` on the scores of the lists for public rows.
        randomness: As for ``select``.

    Example:
        >>> import dpselect as dps
        >>> lists = dps.lists.public_lists([[3, 2, 1, 0], [0, 1, 2, 3]], count=2)
        >>> dps.select_list([0.1, 0.0, 0.8, 0.9], lists, dps.TopShare(40.0))
        array([2, 3])
    """
    require_mechanism(mechanism, single=True)
    if mechanism.guarantee.neighbours != ANY_SCORES:
        raise ValueError("mechanism must be private for any change of the scores, as TopShare is")
    numbers, family = read_numbers("scores", scores), np.asarray(lists)
    if not numbers.ndim or family.ndim != 2 or not family.size or family.dtype.kind not in "iu":
        raise ValueError("scores must have a last axis of candidates, and lists must be positions (lists, count)")
    size = numbers.shape[-1]
    if family.min() < 0 or family.max() >= size:
        raise ValueError(f"lists must hold positions from 0 to {size - 1}")
    rows = numbers.reshape(-1, size)
    stream = Randomness.given(randomness).for_rows(len(rows), slice(None))
    public = {} if weights is None else {"weights": weights}
    picks = np.empty(len(rows), dtype=np.int64)
    step = max(1, BLOCK // len(family))
    for first in range(0, len(rows), step):
        block = slice(first, first + step)
        here = stream.for_rows(len(rows), block)
        picks[block] = mechanism.select(score_lists(rows[block], family), **public, randomness=here)
    return family[picks].reshape(*numbers.shape[:-1], family.shape[1])


def score_lists(scores: FloatArray, lists: NDArray[Any]) -> FloatArray:
    """Return the sum of each row's scores over each list, (rows, lists). **Not private**.

    Args:
        scores: Rows of scores, (rows, candidates). Those of public rows are what
            :func:`dpselect.advice.fit_top_share` needs to find weights for lists.
        lists: Public lists of candidates, (lists, count).
    """
    totals = scores.take(lists[:, 0], axis=1)
    for place in range(1, lists.shape[1]):
        totals += scores.take(lists[:, place], axis=1)
    return totals
