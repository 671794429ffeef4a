"""A set of candidates for the price of one pick, without public rows."""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import final

import numpy as np

import dpselect.parameters as check
from dpselect.candidates import Batch
from dpselect.exact import ExactStream
from dpselect.exact.samplers.top_share import below, coin
from dpselect.guarantees import Guarantee
from dpselect.kernels.arrays import FloatArray, IndexArray
from dpselect.laws import Law
from dpselect.mechanisms import Mechanism, TopShare
from dpselect.parameters import store
from dpselect.randomness import Randomness


@final
@dataclass(frozen=True)
class TopSet(Mechanism):
    """A random set of ``count`` candidates, for the price of one pick.

    With probability s it is any set, whatever the scores. Otherwise it is any set that has at least t of the
    ``count`` best candidates, for the t with which a set has most of the best on average. Let h be the share of
    such sets among all, which is public. Then this is top share over sets, with $s = 1/(1 + h(e^ε − 1))$. It pays
    where the candidates are a public shortlist of 20 to 100.

    Privacy:
        ε-DP for any change of the scores. Ties go to the candidate that comes first, so the best are always
        ``count``. The set is in the order of the candidates. Publish it as it is: do not remove what the person has
        seen, and do not sort it by private scores.

    Cost:
        About 0.1 ms a row.

    Args:
        epsilon: The privacy budget of the whole set.
        count: The size of the set.

    Example:
        >>> import dpselect as dps
        >>> dps.lists.TopSet(30.0, count=2).select([0.1, 0.9, 0.0, 0.7, 0.3])
        array([1, 3])

    References:
        docs/theory/top-share.md.
    """

    uses_sensitivities = False

    epsilon: float
    count: int = field(default=10, kw_only=True)

    def __post_init__(self) -> None:
        store(self, epsilon=check.positive("epsilon", self.epsilon), count=check.count("count", self.count))

    @property
    def guarantee(self) -> Guarantee:
        """ε-DP for any change of the scores: the probability of every set lies between $c$ and $e^ε c$."""
        return TopShare(self.epsilon).guarantee

    @property
    def label(self) -> str:
        """A short name, without the budget."""
        return f"a set of {self.count} by top share"

    @property
    def least_size(self) -> int:
        """The smallest number of candidates that a row may have."""
        return self.count

    def law(self, sizes: IndexArray) -> "TopSetLaw":
        """Return the law of the sets, given the number of candidates in each row."""
        smallest = sizes.min(initial=2**62)
        if self.count > smallest:
            raise ValueError(f"count must be at most the number of candidates, {smallest}, got {self.count}")
        return TopSetLaw(self)


@dataclass(frozen=True, slots=True)
class TopSetLaw(Law):
    """The law of :class:`TopSet`, drawn in whole numbers."""

    mechanism: TopSet

    def pmf(self, batch: Batch) -> FloatArray:  # noqa: ARG002
        """Refuse: a set is not one candidate."""
        raise ValueError("a set has no probability for each candidate")

    def select(self, batch: Batch, randomness: Randomness) -> IndexArray:
        """Return a set for each row, in the order of the candidates."""
        units, sets = randomness.units(batch.rows), np.empty((batch.rows, self.mechanism.count), dtype=np.int64)
        for row in range(batch.rows):
            order = np.argsort(-batch.row(row)[0], kind="stable").tolist()
            least, share = terms(self.mechanism, len(order))
            stream = ExactStream(units, row)
            ignores_scores = coin(stream.uniform(), self.mechanism.epsilon, share)
            drawn = [_draw(order, minimum, self.mechanism.count, stream) for minimum in (0, least)]  # in any case
            sets[row] = sorted(drawn[0] if ignores_scores else drawn[1])
        return sets


@cache
def terms(mechanism: TopSet, size: int) -> tuple[int, Fraction]:
    """Return t, and the share of sets that have at least t of the best candidates."""
    count, ratio = mechanism.count, math.expm1(min(mechanism.epsilon, 700.0))

    def found(least: int) -> tuple[float, int, Fraction]:
        """Return how many of the best a set has on average, t and the share."""
        ways = _ways(size, count, least)
        share = Fraction(sum(ways.values()), math.comb(size, count))
        ignored = 1 / (1 + float(share) * ratio)
        inside = float(Fraction(sum(i * way for i, way in ways.items()), sum(ways.values())))
        return ignored * count * count / size + (1 - ignored) * inside, least, share

    return max(map(found, range(1, count + 1)))[1:]


def _ways(size: int, count: int, least: int) -> dict[int, int]:
    """Return the number of sets that have exactly i of the best, for each possible i from ``least`` on."""
    possible = range(max(least, 2 * count - size), count + 1)
    return {i: math.comb(count, i) * math.comb(size - count, count - i) for i in possible}


def _draw(order: list[int], least: int, count: int, stream: ExactStream) -> list[int]:
    """Return a uniformly random set of those that have at least ``least`` of the best."""
    ways = _ways(len(order), count, least)
    place, inside = below(stream, sum(ways.values())), min(ways)
    while place >= ways[inside]:
        place -= ways[inside]
        inside += 1
    return _choose(order[:count], inside, stream) + _choose(order[count:], count - inside, stream)


def _choose(items: list[int], count: int, stream: ExactStream) -> list[int]:
    for place in range(count):
        other = place + stream.below(len(items) - place)
        items[place], items[other] = items[other], items[place]
    return items[:count]
