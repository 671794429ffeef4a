"""Private top-k: the best candidates of each row, in order."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, final

import numpy as np

from dpselect import parameters as check
from dpselect.accounting.totals import epsilon_per_pick, total_guarantee
from dpselect.guarantees import Guarantee, compose_counted
from dpselect.inputs import Numbers
from dpselect.kernels.arrays import IndexArray
from dpselect.lists.peeling import ListLaw, keeps_offsets
from dpselect.mechanisms import HeterogeneousNoisyMax, Mechanism
from dpselect.mechanisms.base import require_mechanism
from dpselect.parameters import store

MOST_PICKS = 2**32
"""The largest number of picks of one call, 32 GB."""

ShortRows: TypeAlias = Literal["refuse", "pad"]


@final
@dataclass(frozen=True)
class TopK(Mechanism):
    r"""Private top-k: the mechanism picks one, removes it, and picks again from the rest, ``count`` times.

    The largest sensitivity and tilt of a pick are those of the candidates that are left, so noise shrinks as
    sensitive candidates leave. That is public, because the earlier picks are. Neutral offsets stay those of the
    whole row. The probability of a list is the product of the probabilities of its picks.

    Privacy:
        The adaptive composition of ``count`` picks: ``count`` · ε, or ``count`` · ρ-zCDP. :meth:`total` gives the
        smaller ε at a small δ, and :meth:`within` the ε of a pick for a given total. The guarantee is for the whole
        list and its order.

    Cost:
        ``count`` times that of one pick, and copies of some rows at a time.

    Args:
        mechanism: The mechanism of one pick; any private one.
        count: The length of the list.
        short_rows: What to do with rows of fewer than ``count`` candidates: ``"refuse"`` them, or ``"pad"`` their
            lists. In arrays the padding is −1, in lists of labels ``None``; tables leave it out. How many
            candidates a row has is public.

    Example:
        >>> import dpselect as dps
        >>> drinks = {"tea": 0.9, "rum": 0.2, "milk": 0.8, "gin": 0.1}
        >>> top = dps.TopK(dps.HeterogeneousNoisyMax(40.0), count=2)
        >>> top.select(drinks, 0.1)
        ['tea', 'milk']
        >>> top.guarantee.epsilon
        80.0

    References:
        docs/guide/top-k.md; docs/theory/noisy-max.md (Gumbel noise once is a pick after another).
        D. Durfee, R. Rogers, Practical differentially private top-k selection with pay-what-you-get composition,
        2019 (peeling).
    """

    mechanism: Mechanism
    count: int = 10
    _: KW_ONLY
    short_rows: ShortRows = "refuse"

    def __post_init__(self) -> None:
        require_mechanism(self.mechanism, single=True)
        store(self, count=check.count("count", self.count))
        check.one_of("short_rows", self.short_rows, ("refuse", "pad"))

    @classmethod
    def within(
        cls,
        total_epsilon: float,
        *,
        delta: float = 0.0,
        mechanism: Callable[[float], Mechanism] = HeterogeneousNoisyMax,
        count: int = 10,
        short_rows: ShortRows = "refuse",
    ) -> "TopK":
        """Return the list whose whole costs at most (total_epsilon, delta).

        The ε of one pick is the largest that fits, to 0.1 %. With δ = 0 it is total_epsilon / count. A ledger
        composes releases by their ρ, so a list that just fits a δ here may cost a little more there.

        Args:
            total_epsilon: The ε of the whole list.
            delta: The probability of a larger loss. If it is above 0, the extra ``accounting`` is needed.
            mechanism: What makes a mechanism from ε, such as a class or ``dps.MECHANISMS["em"]``.
            count: The length of the list.
            short_rows: As for :class:`TopK`.

        Example:
            >>> import dpselect as dps
            >>> dps.TopK.within(2.0, mechanism=dps.GEM, count=4).mechanism.epsilon
            0.5
            >>> gumbel = dps.MECHANISMS["em"]
            >>> round(dps.TopK.within(2.0, delta=1e-6, mechanism=gumbel, count=10).mechanism.epsilon, 2)
            0.27
        """
        number = check.count("count", count)
        epsilon = epsilon_per_pick(mechanism, total_epsilon, delta=delta, picks=number)
        return cls(mechanism(epsilon), number, short_rows=short_rows)

    @cached_property
    def guarantee(self) -> Guarantee:
        """The guarantee of the whole list: ε, and ρ where there is one, add up over its picks."""
        return compose_counted({self.mechanism.guarantee: self.count})

    def total(self, delta: float) -> Guarantee:
        """Return the guarantee of the whole list at a small δ, by :func:`dpselect.accounting.total_guarantee`.

        It needs the extra ``accounting``.
        """
        return total_guarantee([self.mechanism.guarantee] * self.count, delta=delta)

    @property
    def least_size(self) -> int:
        """The smallest number of candidates that a row may have."""
        return self.count if self.short_rows == "refuse" else 1

    @property
    def label(self) -> str:
        """A short name, without the budget."""
        return f"top {self.count} by {self.mechanism.label}"

    @property
    def uses_sensitivities(self) -> bool:
        """Whether a call must pass sensitivities."""
        return self.mechanism.uses_sensitivities

    @property
    def takes(self) -> tuple[str, ...]:
        """The public numbers that a call may pass."""
        return self.mechanism.takes

    @cached_property
    def law_name(self) -> str:
        """The name of the law, on which streams depend. Rows of fewer candidates have the streams of the others."""
        kept = ", kept offsets" if keeps_offsets(self.mechanism.law(np.ones(1, dtype=np.int64))) else ""
        return f"TopK({self.mechanism.law_name}, count={self.count}{kept})"

    def law(self, sizes: IndexArray) -> ListLaw:
        """Return the law of the lists, given the number of candidates in each row."""
        short = sizes < self.least_size
        if short.any():
            row = int(np.argmax(short))
            where = "" if sizes.min() == sizes.max() else f" in row {row}"
            raise ValueError(
                f"count must be at most the number of candidates, {sizes[row]}{where}, got {self.count}; "
                'pass short_rows="pad" to get shorter lists'
            )
        if sizes.size * self.count > MOST_PICKS:
            raise ValueError(f"count is too large for {sizes.size} rows: at most 2^32 picks can be made at once")
        return ListLaw(self.mechanism.law, self.count, self.mechanism.law(sizes).refusal)

    def probability(
        self,
        lists: Any,
        scores: Numbers,
        sensitivities: Numbers | None = None,
        *,
        offsets: Numbers | None = None,
        weights: Numbers | None = None,
    ) -> Any:
        """Return the exact probability of a given list of positions for each row.

        **Not private**: probabilities reveal scores. It is 0 for a list that repeats a candidate. Rows of the same
        length only.

        Args:
            lists: Positions, an array (rows, count).
            scores: The scores.
            sensitivities: The sensitivities.
            offsets: Public offsets, for mechanisms that take them.
            weights: Public weights, for mechanisms that take them.

        Example:
            >>> import dpselect as dps
            >>> top = dps.TopK(dps.Uniform(), count=2)
            >>> float(top.probability([2, 0], [0.0, 1.0, 2.0], 1.0))  # one of six
            0.16666666666666666
        """
        batch = self.read(scores, sensitivities, offsets, weights)
        batch.check_scores()
        return self.law(batch.sizes).probability(batch, lists)
