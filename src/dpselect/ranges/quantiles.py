"""Ranges from private scores: quantiles, each of them a private pick among public cuts."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import nextafter
from typing import NamedTuple

import numpy as np

import dpselect.parameters as check
from dpselect import rules
from dpselect.candidates import Numbers, read_numbers
from dpselect.guarantees import ONE_USER_CHANGED, Guarantee, rounded_up
from dpselect.kernels.arrays import LARGEST, FlagArray, FloatArray, IndexArray
from dpselect.mechanisms import NoisyMax
from dpselect.randomness import Randomness
from dpselect.ranges.values import LEVELS, Ranges, labels_of, read_public

UNIT = 2**20
"""Levels are whole multiples of 1/UNIT, so that ranks and their sensitivity, UNIT, are exact whole numbers."""

MOST_USERS = 2**32
"""Ranks of this many users, in units of 1/UNIT, are whole numbers that float64 represents."""

ORDER_SEED = 18
"""A public constant. Guarantees hold for every order that does not depend on scores."""


def from_private_scores(
    scores: Numbers,
    cuts: Numbers,
    *,
    epsilon: float,
    levels: tuple[float, float] = LEVELS,
    contributions: int | None = None,
    randomness: Randomness | None = None,
) -> Ranges:
    """Return ranges from private quantiles of private scores.

    Each end of each range is a pick among public cuts by the exponential mechanism, which prefers cuts whose rank
    is close to that of the quantile. Of n scores, let b be below a cut, and c at most equal to it. The quality of
    the cut is $−max(0, b − level · n, level · n − c)$. Two ends that are picked in the wrong order are exchanged.

    Privacy:
        ε-DP if one user's whole row is *replaced*. The number of rows, the cuts and the levels are public. One row
        is one user: a user with two rows loses 2ε.

        A replaced row moves the rank of a cut by at most 1 in each column that the old or the new row contributes
        to: in all k columns, or in up to 2m if each user contributes at most m scores. ε is divided evenly by
        $2 · min(2m, k)$, since a column has two quantiles. Ranks are whole numbers, so their sensitivity is exact.

        A rerun is a new release unless scores, arguments and key are the same: pass
        ``randomness=Randomness.keyed(key, "ranges")`` to make it repeatable.

    Cost:
        O(k (n log n + g)) for n users, k candidates and g cuts.

        With probability 1 − β, no rank is worse than that of the best cut by more than $2 log(2kg/β)/ε_q$ users,
        where $ε_q = ε/(2 min(2m, k))$: many candidates need many users.

    Args:
        scores: A row for each user, a column for each candidate.
        cuts: Public numbers in increasing order, at least two: the ends that a range may have. One list for all
            candidates, or a row for each.
        epsilon: The privacy budget of all ranges together.
        levels: The levels of the two quantiles, rounded to multiples of $2⁻²⁰$.
        contributions: The largest number of scores that each user contributes; of further ones, some are left out
            in an order that does not depend on scores. NaN stands for a missing score. Without it, every user must
            have a score for every candidate.
        randomness: The randomness of the choice, with one unit; a fresh secret key if absent.

    Example:
        >>> import numpy as np, dpselect as dps
        >>> raw = np.random.default_rng(1).uniform(size=(10_000, 2)) * [1.0, 5.0]
        >>> ranges = dps.ranges.from_private_scores(raw, np.linspace(0, 10, 201), epsilon=2.0)
        >>> bool((np.abs(ranges.sensitivities - [0.9, 4.5]) < 0.2).all())
        True

    References:
        A. Smith, Privacy-preserving statistical estimation with optimal convergence rates, 2011.
        docs/guide/ranges.md (the proof).
    """
    task = _read(scores, cuts, epsilon, levels, contributions)
    source = Randomness.given(randomness).serving("ranges")
    source.units(1)
    ends = np.empty((len(task.cuts), 2))
    for place, (grid, ranks) in enumerate(zip(task.cuts, task.qualities(), strict=True)):
        for end in range(2):
            stream = source.substream(f"{place} {end}")
            ends[place, end] = grid[task.mechanism.select(ranks[end], UNIT, randomness=stream)]
    ends.sort(axis=1)
    return Ranges(lows=ends[:, 0], highs=ends[:, 1], guarantee=task.guarantee, labels=labels_of(scores))


class _Task(NamedTuple):
    """The checked arguments of the private choice."""

    scores: FloatArray
    """NaN where a user contributes nothing."""
    cuts: FloatArray
    levels: IndexArray
    """In units of 1/UNIT."""
    mechanism: NoisyMax
    guarantee: Guarantee

    def __repr__(self) -> str:
        return f"_Task({len(self.cuts)} candidates)"  # the scores are private

    def qualities(self) -> Iterator[IndexArray]:
        """Yield, for each candidate, the quality of all cuts for both levels, in units of 1/UNIT."""
        for column, cuts in zip(self.scores.T, self.cuts, strict=True):
            ordered = np.sort(column[~np.isnan(column)])
            below, within = (UNIT * np.searchsorted(ordered, cuts, side=side) for side in ("left", "right"))
            wanted = self.levels[:, np.newaxis] * ordered.size
            yield -np.maximum(0, np.maximum(below - wanted, wanted - within))


def _read(
    scores: Numbers, cuts: Numbers, epsilon: float, levels: tuple[float, float], contributions: int | None
) -> _Task:
    rows = read_numbers("scores", scores)
    if rows.ndim != 2 or not rows.size:
        raise ValueError("scores must have two axes: a row for each user, a column for each candidate")
    users, size = rows.shape
    if users > MOST_USERS:
        raise ValueError("scores must have at most 2^32 users")
    most = size if contributions is None else check.count("contributions", contributions, most=size)
    absent = np.isnan(rows)
    if contributions is None and absent.any():
        raise ValueError(
            "scores must not have NaN; for users who do not score every candidate, pass contributions="
        )
    if rules.FINITE.is_broken(np.where(absent, 0.0, rows)).any():
        raise ValueError(f"scores {rules.FINITE.words}")
    budget = check.positive("epsilon", epsilon)
    # Without missing scores, everybody contributes to all columns, and no other column can change.
    picks = 2 * min(2 * most, size)
    mechanism = NoisyMax(epsilon=_share(budget, picks), noise="gumbel")
    guarantee = Guarantee(
        epsilon=budget,
        laplace_epsilon=budget,  # the ranks of all cuts move in a straight line, though scores may not
        neighbours=ONE_USER_CHANGED,
        theorem=f"a user moves ranks by at most 1 in {picks} of the picks of cuts, and the losses of these add up",
        reference="docs/guide/ranges.md; Dwork and Roth 2014, theorem 3.16",
    )
    rho = rounded_up(Fraction(mechanism.guarantee.rho or 0.0) * picks)
    return _Task(
        scores=_bounded(rows, absent, most),
        cuts=_read_cuts(cuts, size),
        levels=np.rint(np.array(check.interval("levels", levels)) * UNIT).astype(np.int64),
        mechanism=mechanism,
        guarantee=replace(guarantee, rho=min(rho, guarantee.rho or 0.0)),
    )


def _bounded(rows: FloatArray, absent: FlagArray, most: int) -> FloatArray:
    """Return the scores with at most that many in each row.

    The order is drawn for all rows and columns alike, so what remains of a row depends on no other row.
    """
    if most == rows.shape[1]:
        return rows
    order = np.random.default_rng(ORDER_SEED).random(rows.shape)
    order[absent] = 1.0  # after all others, which are below 1
    ranks = order.argsort(axis=1).argsort(axis=1)
    return np.where(ranks < most, rows, np.nan)


def _read_cuts(cuts: Numbers, size: int) -> FloatArray:
    grid = read_public("cuts", cuts)
    if grid.ndim not in {1, 2} or grid.shape[-1] < 2 or (grid.ndim == 2 and len(grid) != size):
        raise ValueError(
            f"cuts must be a list of at least two numbers, or such a row for each of {size} candidates"
        )
    if not (np.diff(grid, axis=-1) > 0).all():
        raise ValueError("cuts must increase strictly")
    if (grid[..., -1] - grid[..., 0] > LARGEST).any():
        raise ValueError("cuts must span at most 2^300")
    return np.broadcast_to(grid, (size, grid.shape[-1]))


def _share(epsilon: float, picks: int) -> float:
    """Return ε/picks, rounded so that the exact sum over all picks does not exceed ε."""
    part = epsilon / picks
    return nextafter(part, 0.0) if Fraction(part) * picks > Fraction(epsilon) else part
