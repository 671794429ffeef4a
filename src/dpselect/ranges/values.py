"""Ranges as values, what they clip, and ranges from public numbers."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import dpselect.parameters as check
from dpselect import rules
from dpselect.candidates import Numbers, read_batch, read_numbers
from dpselect.guarantees import ANY_SCORES, WITHIN_SENSITIVITIES, Guarantee, check_guarantees, covers
from dpselect.kernels.arrays import LARGEST, FloatArray
from dpselect.mechanisms import Mechanism
from dpselect.mechanisms.base import require_mechanism
from dpselect.parameters import store

LEVELS = (0.05, 0.95)

PUBLIC = Guarantee(
    epsilon=0.0,
    flat_epsilon=0.0,
    neighbours=ANY_SCORES,
    theorem="the ranges are public numbers, which do not depend on the private scores",
    reference="docs/guide/ranges.md",
)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Ranges:
    """The range of each candidate's scores, or one range for all. All fields are public.

    Make it with :func:`from_bounds`, :func:`from_public_sample` or :func:`from_private_scores`.

    Attributes:
        lows: The lower ends: one for each candidate, or a single number for all.
        highs: The upper ends.
        guarantee: What the ranges cost; ε = 0 if they come from public numbers.
        labels: The names of the candidates, if the ranges were made from a pandas object.
    """

    lows: FloatArray
    highs: FloatArray
    guarantee: Guarantee = PUBLIC
    labels: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        check_guarantees([self.guarantee])
        ends = {name: read_public(name, getattr(self, name)) for name in ("lows", "highs")}
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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ranges) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[object, ...]:
        ends = (tuple(end.ravel().tolist()) for end in (self.lows, self.highs))
        return (*ends, self.lows.ndim, self.guarantee, self.labels)

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

    def clip(self, scores: Numbers) -> "Clipped":
        """Return the scores clipped to their ranges, with the sensitivities that this makes true.

        Args:
            scores: The scores, in any form that mechanisms accept. Fill missing ones first, for example with
                ``lows``.
        """
        labels = labels_of(scores)
        if None not in {labels, self.labels} and labels != self.labels:
            raise ValueError(
                "scores must have the candidates of the ranges in the same order; reindex scores first"
            )
        # Labels say that the columns of a frame are candidates.
        named = labels is not None and self.labels is not None
        batch = read_batch(scores, dict.fromkeys(self.labels or (), 0.0) if named else 0.0)
        values = batch.spread(batch.table.scores)
        width = values.size if batch.shape is None else batch.row_size
        if self.lows.ndim and self.lows.size != width:
            raise ValueError(f"scores must have the {self.lows.size} candidates of the ranges, got {width}")
        rows = values.reshape(-1, width) if width else values
        flat = np.clip(rows, self.lows, self.highs).reshape(-1)
        return Clipped(
            scores=(flat, batch.table.bounds) if isinstance(scores, tuple) else batch.restore_candidates(flat),
            ranges=self,
            below=int((rows < self.lows).sum()),
            above=int((rows > self.highs).sum()),
        )

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


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Clipped:
    """Clipped scores, and a record of the clipping. ``repr`` and ``str`` show only public numbers.

    Attributes:
        scores: **Private.** The clipped scores, in the form of the scores.
        ranges: The ranges; public.
        below: **Private.** The number of scores that were raised to the lower end: look at it if you may see the
            scores, and do not publish it.
        above: **Private.** The number of scores that were lowered to the upper end.
    """

    scores: Any
    ranges: Ranges
    below: int
    above: int

    def __repr__(self) -> str:
        return f"Clipped(private scores, {self.ranges!r})"

    @property
    def sensitivities(self) -> Any:
        """The sensitivities of the clipped scores; public. They have labels if the scores and the ranges do."""
        widths = self.ranges.sensitivities
        if self.ranges.labels is None or labels_of(self.scores) is None:
            return widths
        return dict(zip(self.ranges.labels, widths.tolist(), strict=True))


def from_bounds(lows: Numbers, highs: Numbers) -> Ranges:
    """Return ranges with public ends: one for each candidate, or one number for all.

    Privacy:
        Costs nothing, if you know the bounds without looking at private data: a rating is between 1 and 5.

    Args:
        lows: The lowest possible scores.
        highs: The highest possible scores.

    Example:
        >>> import dpselect as dps
        >>> ranges = dps.ranges.from_bounds([0.0, 0.0, 1.0], [1.0, 0.25, 5.0])
        >>> ranges.sensitivities
        array([1.  , 0.25, 4.  ])
        >>> ranges.clip([0.5, 0.5, 0.5]).scores
        array([0.5 , 0.25, 1.  ])
    """
    known = {labels for labels in (labels_of(lows), labels_of(highs)) if labels is not None}
    if len(known) > 1:
        raise ValueError("highs must have the labels of lows in the same order; reindex highs first")
    labels = next(iter(known), None)
    return Ranges(lows=read_public("lows", lows), highs=read_public("highs", highs), labels=labels)


def from_public_sample(sample: Numbers, *, levels: tuple[float, float] = LEVELS) -> Ranges:
    """Return ranges from quantiles of a public sample.

    Privacy:
        Costs nothing for people outside the sample. People in the sample are **not protected at all**.

    Args:
        sample: Public scores: a row for each person, a column for each candidate.
        levels: The levels of the two quantiles; (0, 1) is the range of the whole sample.

    Example:
        >>> import numpy as np, dpselect as dps
        >>> dps.ranges.from_public_sample(np.array([[0.0, 5.0], [1.0, 7.0]]), levels=(0, 1)).highs
        array([1., 7.])
    """
    rows = read_public("sample", sample)
    if rows.ndim != 2 or not rows.size:
        raise ValueError("sample must have two axes: a row for each person, a column for each candidate")
    lows, highs = np.sort(np.quantile(rows, check.interval("levels", levels), axis=0), axis=0)
    return Ranges(lows=lows, highs=highs, labels=labels_of(sample))


def read_public(name: str, numbers: Numbers) -> FloatArray:
    """Return public numbers of any shape; raise unless they are finite."""
    array = read_numbers(name, numbers)
    if rules.FINITE.is_broken(array).any():
        raise ValueError(f"{name} {rules.FINITE.words}")
    return array


def _frozen(numbers: FloatArray) -> FloatArray:
    array = np.array(numbers)
    array.setflags(write=False)
    return array


def labels_of(numbers: Any) -> tuple[Any, ...] | None:
    """Return the names of the candidates of a pandas object."""
    is_labelled = type(numbers).__module__.partition(".")[0] == "pandas"
    return tuple(numbers.axes[-1]) if is_labelled else None
