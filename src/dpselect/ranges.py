"""Where sensitivities come from: a range for each candidate, to which its scores are clipped.

A score that is clipped to $[low_a, high_a]$ moves by at most $high_a − low_a$, whatever a person does. This width
*is* the sensitivity of candidate a. Without clipping it is not. :class:`Ranges` with public ends cost nothing.
:func:`from_private_scores` finds the ends by quantiles of the private scores, and costs ε.

docs/guide/ranges.md goes from raw scores to picks, and has the proofs.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import nextafter
from typing import Any, NamedTuple

import numpy as np

import dpselect.parameters as check
from dpselect import rules
from dpselect.candidates import Numbers, read_batch, read_numbers
from dpselect.guarantees import (
    ANY_SCORES,
    ONE_USER_CHANGED,
    WITHIN_SENSITIVITIES,
    Guarantee,
    check_guarantees,
    covers,
    rounded_up,
)
from dpselect.kernels.arrays import LARGEST, FloatArray, IndexArray
from dpselect.labels import is_labelled
from dpselect.mechanisms import Mechanism, NoisyMax
from dpselect.mechanisms.base import require_mechanism
from dpselect.parameters import store
from dpselect.randomness import Randomness

__all__ = ["Ranges", "from_private_scores"]

LEVELS = (0.05, 0.95)

PUBLIC = Guarantee(
    epsilon=0.0,
    flat_epsilon=0.0,
    neighbours=ANY_SCORES,
    theorem="the ranges are public numbers, which do not depend on the private scores",
    reference="docs/guide/ranges.md",
)

UNIT = 2**20
"""Levels are whole multiples of 1/UNIT, so that ranks and their sensitivity, UNIT, are exact whole numbers."""

MOST_USERS = 2**32
"""Ranks of this many users, in units of 1/UNIT, are whole numbers that float64 represents."""


@dataclass(frozen=True, eq=False, repr=False)
class Ranges:
    """The range of each candidate's scores, or one range for all. All fields are public.

    Privacy:
        Costs nothing if you know the ends without looking at private data: a rating is between 1 and 5, or the ends
        are quantiles of a public sample. People in the sample are **not protected at all**.

    Args:
        lows: The lower ends: one for each candidate, or a single number for all.
        highs: The upper ends.
        guarantee: What the ranges cost; nothing if they come from public numbers.

    Example:
        >>> import dpselect as dps
        >>> ranges = dps.ranges.Ranges([0.0, 0.0, 1.0], [1.0, 0.25, 5.0])
        >>> ranges.sensitivities
        array([1.  , 0.25, 4.  ])
        >>> ranges.clip([0.5, 0.5, 0.5])
        array([0.5 , 0.25, 1.  ])
    """

    lows: Any
    highs: Any
    guarantee: Guarantee = PUBLIC

    def __post_init__(self) -> None:
        check_guarantees([self.guarantee])
        ends = {name: _read_finite(name, getattr(self, name)) for name in ("lows", "highs")}
        if not all(end.ndim < 2 and end.size for end in ends.values()):
            raise ValueError("lows and highs must be one number for each candidate, or one number for all")
        try:
            lows, highs = np.broadcast_arrays(*ends.values())
        except ValueError:
            raise ValueError("lows and highs must have one number for the same candidates each") from None
        if (lows > highs).any():
            raise ValueError("lows must be ≤ highs for every candidate")
        if (highs - lows > LARGEST).any():
            raise ValueError("highs − lows must be at most 2^300 for every candidate")
        store(self, lows=_frozen(lows), highs=_frozen(highs))

    def __repr__(self) -> str:
        held = f"{self.lows.size} candidates" if self.lows.ndim else "one range for all candidates"
        return f"Ranges({held}, ε = {self.guarantee.epsilon:g})"

    @property
    def sensitivities(self) -> FloatArray:
        """The width of each range, rounded up: by how much a clipped score can move.

        This holds for any two datasets. For sums and means of clipped scores see docs/guide/ranges.md.
        """
        widths = self.highs - self.lows
        rest = widths - self.highs  # the error of the difference, exactly (Knuth's two-sum)
        errors = (self.highs - (widths - rest)) + (-self.lows - rest)
        widths = np.where(errors > 0, np.nextafter(widths, np.inf), widths)
        return _frozen(np.where(widths > 0, np.maximum(widths, 1 / LARGEST), 0.0))

    def clip(self, scores: Numbers) -> Any:
        """Return the scores clipped to their ranges, in the form of the scores. They stay **private**.

        Args:
            scores: The scores, in any form that mechanisms accept except with labels. Fill missing ones first, for
                example with ``lows``.
        """
        batch = read_batch(_without_labels("scores", scores), 0.0)
        values = batch.spread(batch.table.scores)
        width = values.size if batch.shape is None else batch.row_size
        if self.lows.ndim and self.lows.size != width:
            raise ValueError(f"scores must have the {self.lows.size} candidates of the ranges, got {width}")
        flat = np.clip(values.reshape(-1, width) if width else values, self.lows, self.highs).reshape(-1)
        return (flat, batch.table.bounds) if isinstance(scores, tuple) else batch.restore_candidates(flat)

    def guarantee_with(self, mechanism: Mechanism) -> Guarantee:
        """Return the guarantee of publishing the ranges and one pick for each user from the clipped scores.

        A user's loss is that of the ranges plus that of the user's own pick: the picks of other users depend on the
        user's scores through the ranges only. The same holds for a single pick from sums over all users. For public
        ranges it holds for any two score vectors, since clipped scores are always within the sensitivities.

        Args:
            mechanism: The mechanism of the picks.

        Raises:
            ValueError: If the mechanism is private only for scores that move in the same direction
                (``monotone=True``): clipped scores may move in any direction.
        """
        require_mechanism(mechanism, single=True)
        pick = mechanism.guarantee
        if not covers(pick.neighbours, WITHIN_SENSITIVITIES):
            raise ValueError(
                f"mechanism must be private for all {WITHIN_SENSITIVITIES}; it is for {pick.neighbours}"
            )
        whole = Guarantee.compose(self.guarantee, pick.with_neighbours(self.guarantee.neighbours))
        if not whole.is_private:
            return whole
        return replace(whole, theorem="the losses of the ranges and of the user's own pick add up")


def from_private_scores(
    scores: Numbers,
    cuts: Numbers,
    *,
    epsilon: float,
    levels: tuple[float, float] = LEVELS,
    randomness: Randomness | None = None,
) -> Ranges:
    """Return ranges from private quantiles of private scores.

    Each end of each range is a pick among public cuts by the exponential mechanism, which prefers cuts whose rank
    is close to that of the quantile. Of n scores, let b be below a cut, and c at most equal to it. The quality of
    the cut is $−max(0, b − level · n, level · n − c)$. Two ends that are picked in the wrong order are exchanged.

    Privacy:
        ε-DP if one user's whole row is *replaced*. The number of rows, the cuts and the levels are public. One row
        is one user: a user with two rows loses 2ε. A replaced row moves the rank of a cut by at most 1 in each of k
        columns. Each column has two quantiles, so each pick gets ε/(2k). Ranks are whole numbers, so their
        sensitivity is exact.

        A rerun is a new release unless scores, arguments and key are the same: pass
        ``randomness=Randomness.keyed(key, "ranges")`` to make it repeatable.

    Cost:
        O(k (n log n + g)) for n users, k candidates and g cuts.

        With probability 1 − β, no rank is worse than that of the best cut by more than $4k log(2kg/β)/ε$ users:
        many candidates need many users.

    Args:
        scores: A row for each user, a column for each candidate. Every user must have all scores.
        cuts: Public numbers in increasing order, at least two: the ends that a range may have. One list for all
            candidates, or a row for each.
        epsilon: The privacy budget of all ranges together.
        levels: The levels of the two quantiles, rounded to multiples of $2⁻²⁰$.
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
    task = _read(scores, cuts, epsilon, levels)
    source = Randomness.given(randomness).serving("ranges")
    source.units(1)
    ends = np.empty((len(task.cuts), 2))
    for place, (grid, ranks) in enumerate(zip(task.cuts, task.qualities(), strict=True)):
        for end in range(2):
            stream = source.substream(f"{place} {end}")
            ends[place, end] = grid[task.mechanism.select(ranks[end], UNIT, randomness=stream)]
    ends.sort(axis=1)
    return Ranges(ends[:, 0], ends[:, 1], task.guarantee)


class _Task(NamedTuple):
    """The checked arguments of the private choice."""

    scores: FloatArray
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
            ordered = np.sort(column)
            below, within = (UNIT * np.searchsorted(ordered, cuts, side=side) for side in ("left", "right"))
            wanted = self.levels[:, np.newaxis] * ordered.size
            yield -np.maximum(0, np.maximum(below - wanted, wanted - within))


def _read(scores: Numbers, cuts: Numbers, epsilon: float, levels: tuple[float, float]) -> _Task:
    rows = _read_finite("scores", scores)
    if rows.ndim != 2 or not rows.size:
        raise ValueError("scores must have two axes: a row for each user, a column for each candidate")
    users, size = rows.shape
    if users > MOST_USERS:
        raise ValueError("scores must have at most 2^32 users")
    budget, picks = check.positive("epsilon", epsilon), 2 * size
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
        scores=rows,
        cuts=_read_cuts(cuts, size),
        levels=np.rint(np.array(check.interval("levels", levels)) * UNIT).astype(np.int64),
        mechanism=mechanism,
        guarantee=replace(guarantee, rho=min(rho, guarantee.rho or 0.0)),
    )


def _read_cuts(cuts: Numbers, size: int) -> FloatArray:
    grid = _read_finite("cuts", cuts)
    if grid.ndim not in {1, 2} or grid.shape[-1] < 2 or (grid.ndim == 2 and len(grid) != size):
        raise ValueError(
            f"cuts must be a list of at least two numbers, or such a row for each of {size} candidates"
        )
    if not (np.diff(grid, axis=-1) > 0).all():
        raise ValueError("cuts must increase strictly")
    if (grid[..., -1] - grid[..., 0] > LARGEST).any():
        raise ValueError("cuts must span at most 2^300")
    return np.broadcast_to(grid, (size, grid.shape[-1]))


def _read_finite(name: str, numbers: Numbers) -> FloatArray:
    """Return numbers of any shape; raise unless they are finite."""
    array = read_numbers(name, _without_labels(name, numbers))
    if rules.FINITE.is_broken(array).any():
        raise ValueError(f"{name} {rules.FINITE.words}")
    return array


def _without_labels(name: str, numbers: Numbers) -> Numbers:
    """Refuse labels, which would not be compared: a candidate with another's range would void the guarantee."""
    if is_labelled(numbers):
        raise ValueError(f"{name} must be an array without labels: pass {name}.to_numpy()")
    return numbers


def _share(epsilon: float, picks: int) -> float:
    """Return ε/picks, rounded so that the exact sum over all picks does not exceed ε."""
    part = epsilon / picks
    return nextafter(part, 0.0) if Fraction(part) * picks > Fraction(epsilon) else part


def _frozen(numbers: FloatArray) -> FloatArray:
    array = np.array(numbers)
    array.setflags(write=False)
    return array
