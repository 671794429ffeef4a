"""Privacy guarantees, and how they compose."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final

import dpselect.parameters as check
from dpselect.parameters import store

ANY_SCORES: Final = "any two score vectors"
WITHIN_SENSITIVITIES: Final = "scores within the sensitivities: |q_a − q'_a| ≤ Δ_a for every candidate a"
SAME_DIRECTION: Final = (
    "scores within the sensitivities, all moved in the same direction: 0 ≤ q_a − q'_a ≤ Δ_a for every candidate a, "
    "or the same with q and q' exchanged"
)
SAME_USERS: Final = "fleets of the same public number of users that differ in one user's scores"
ONE_USER_CHANGED: Final = f"{SAME_USERS}, in any way"
NESTED = (ANY_SCORES, WITHIN_SENSITIVITIES, SAME_DIRECTION)
"""Each relation contains the next, so a guarantee for one also holds for those after it."""

TANH_ERROR = 4
"""In units in the last place: twice the error that C libraries state for tanh, because no standard bounds it."""

SMALL = 1e-8
"""Below it, three terms of a series of the exponential function are more precise than any float."""

LARGE = 100.0
"""Above it, e^(−ε) is too small to count."""

FORTY_DIGITS = Context(prec=40, traps=[])
"""Its exponential function rounds correctly, unlike that of floats."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Guarantee:
    """A privacy guarantee, with its theorem.

    It assumes that sensitivities are true and public: for any two neighbouring datasets, the score of candidate a
    differs by at most ``sensitivities[a]``. *Which* datasets are neighbours depends on how you computed them. A
    mechanism sees scores only, so ``neighbours`` is about scores; :meth:`with_neighbours` names a relation between
    datasets.

    Attributes:
        epsilon: The pure-DP loss. 0 if the pick ignores the scores, infinite if there is no guarantee.
        delta: The probability of a larger loss; 0 for every single pick of this library.
        rho: The zero-concentrated DP loss. By default the smallest of $ε·tanh(ε/2)$, which holds for every ε-DP
            mechanism, $r²/8$ for bounded range r, and $ε + e^(−ε) − 1$ if ``laplace_epsilon`` is ε; ``None`` if δ >
            0 or ε is infinite.
        bounded_range: A number r such that, for any two neighbours, all privacy losses $log(Pr[a]/Pr'[a])$ lie in
            one interval of length r. ε for Gumbel noise; ``None`` where no better than 2ε is proven.
        flat_epsilon: The part of ε that is lost as soon as scores differ at all. The rest is proportional to their
            distance in units of the sensitivities. ``None`` if unknown; see :meth:`at_distance`.
        laplace_epsilon: The part of ε that composes like Laplace noise, which is better than pure DP. It is ε if a
            path leads from the law of the pick to any neighbour's and each share s of it costs at most s·ε, and 0,
            which claims nothing, if the law may jump. A number in between is right only for a composition of a
            part at ε − ``laplace_epsilon`` with a part that has such a path. It does *not* follow from
            ``flat_epsilon``: docs/theory/accounting.md.
        neighbours: Which scores count as neighbours.
        theorem: Why the guarantee holds, in one sentence.
        reference: Where to find the proof.

    Example:
        >>> import dpselect as dps
        >>> promise = dps.GEM(epsilon=1.0).guarantee
        >>> promise.epsilon, promise.delta, round(promise.rho, 4), promise.is_private
        (1.0, 0.0, 0.3679, True)
        >>> dps.Guarantee.compose(promise, promise, dps.NoisyMax(epsilon=0.5).guarantee).epsilon
        2.5

    References:
        docs/theory/accounting.md (ρ from ε). M. Bun, T. Steinke, Concentrated differential privacy, 2016,
        proposition 1.9 (groups).
        M. Cesar, R. Rogers, Bounding, concentrating, and truncating, 2021 (ρ from bounded range).
    """

    epsilon: float
    delta: float = 0.0
    rho: float | None = None
    bounded_range: float | None = None
    flat_epsilon: float | None = None
    laplace_epsilon: float = 0.0
    neighbours: str = WITHIN_SENSITIVITIES
    theorem: str
    reference: str

    def __post_init__(self) -> None:
        infinite = isinstance(self.epsilon, float) and self.epsilon == math.inf
        epsilon = self.epsilon if infinite else check.not_negative("epsilon", self.epsilon)
        store(self, epsilon=epsilon, delta=check.between("delta", self.delta, 0, 1))
        for name in ("rho", "bounded_range", "flat_epsilon"):
            value = getattr(self, name)
            if value is None:
                continue
            store(self, **{name: check.not_negative(name, value)})
            if infinite:
                raise ValueError(f"{name} must be absent if there is no guarantee (ε is infinite): leave it out")
            if self.delta > 0 and name != "rho":
                raise ValueError(f"{name} must be absent if δ > 0: it is a property of pure DP, so leave it out")
        store(self, laplace_epsilon=check.not_negative("laplace_epsilon", self.laplace_epsilon))
        if self.laplace_epsilon > 0 and (infinite or self.delta > 0):
            raise ValueError("laplace_epsilon must be 0 if δ > 0 or ε is infinite: it is a property of pure DP")
        for name in ("neighbours", "theorem", "reference"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name} must be text, got {type(getattr(self, name)).__name__}")
        for name in ("flat_epsilon", "laplace_epsilon"):
            if (getattr(self, name) or 0.0) > self.epsilon:
                raise ValueError(f"{name} must be ≤ epsilon, because it is a part of it")
        if self.rho is None:
            store(self, rho=self._implied_rho)

    @property
    def is_private(self) -> bool:
        """Whether there is a guarantee."""
        return math.isfinite(self.epsilon)

    @property
    def _implied_rho(self) -> float | None:
        if not self.is_private or self.delta > 0:
            return None
        bounds = [
            _concentrated(self.epsilon),
            _concentrated(self.jumping_epsilon) + _concentrated_like_laplace(self.laplace_epsilon),
        ]
        if self.bounded_range is not None:
            bounds.append(Fraction(self.bounded_range) ** 2 / 8)
        return rounded_up(min(bounds))

    @property
    def jumping_epsilon(self) -> float:
        """The rest of ε beside ``laplace_epsilon``, rounded up: it composes like randomised response."""
        if not self.is_private:
            return self.epsilon
        return rounded_up(Fraction(self.epsilon) - Fraction(self.laplace_epsilon))

    @staticmethod
    def compose(*guarantees: "Guarantee") -> "Guarantee":
        """Return the guarantee of several picks about the same people together: ε, δ and ρ add up.

        Each pick may depend on earlier ones, as long as these guarantees are fixed beforehand. Sums are rounded up.
        :func:`dpselect.accounting.total_guarantee` finds a smaller ε for many picks, at a small δ.

        All guarantees must be for the same neighbours, or for nested relations: a guarantee for any two score
        vectors also holds for scores within the sensitivities. If one part is not private, the whole is not: ε is
        infinite. If nobody takes part in two picks (one pick for each of many users), no composition is needed.

        Raises:
            ValueError: If there is nothing to compose, or the neighbours differ.

        References:
            C. Dwork, A. Roth, The Algorithmic Foundations of Differential Privacy, 2014, theorem 3.16.
            M. Bun, T. Steinke, Concentrated differential privacy, 2016, lemma 2.3.
        """
        check_guarantees(guarantees)
        return compose_counted(Counter(guarantees))

    def at_distance(self, distance: float) -> "Guarantee":
        """Return the guarantee for scores within ``distance`` times the sensitivities.

        This is the guarantee for a group of people, or for neighbours several steps apart. Replacing a person is
        removing one and adding another: distance 2.

        For d > 0 the loss is $f + (ε − f) d$ with f = ``flat_epsilon`` if that is known, as it is for every private
        mechanism here, and ⌈d⌉ε if not. At d = 0 nothing is lost. docs/theory/accounting.md has the proofs.

        Args:
            distance: The distance in units of the sensitivities, at least 0; it need not be a whole number.

        Raises:
            ValueError: If δ > 0 and the distance is above 1: then ε and δ do not grow in proportion to it.

        Example:
            >>> import dpselect as dps
            >>> replaced = dps.NoisyMax(epsilon=1.0, noise="gumbel").guarantee.at_distance(2)
            >>> replaced.epsilon, replaced.rho
            (2.0, 0.5)
            >>> dps.RandomizedResponse(epsilon=1.0).guarantee.at_distance(2).epsilon
            1.0
        """
        number = check.not_negative("distance", distance)
        everything = self.neighbours == ANY_SCORES and number > 0  # no two score vectors are farther apart
        if number == 1 or everything or not self.is_private:
            return self
        steps = math.ceil(number)
        if self.delta > 0 and steps > 1:
            raise ValueError("distance must be ≤ 1 if δ > 0: ε and δ do not grow in proportion to it")
        epsilon = Fraction(self.epsilon) * steps
        if self.flat_epsilon is not None and number > 0:
            flat = Fraction(self.flat_epsilon)
            epsilon = flat + (Fraction(self.epsilon) - flat) * Fraction(number)
        bounded = self.bounded_range is not None and self.flat_epsilon == 0
        like_laplace = self.laplace_epsilon == self.epsilon
        scaled = Guarantee(
            epsilon=rounded_up(epsilon),
            delta=self.delta if number > 0 else 0.0,
            bounded_range=rounded_up(Fraction(self.bounded_range or 0.0) * Fraction(number)) if bounded else None,
            flat_epsilon=None if self.flat_epsilon is None else min(self.flat_epsilon, rounded_up(epsilon)),
            # Paths join up to a longer one. If there is a flat part, nothing is known at another distance.
            laplace_epsilon=rounded_up(epsilon) if like_laplace and not self.flat_epsilon else 0.0,
            neighbours=self.neighbours if number == 0 else f"{number!r} steps of {self.neighbours}",
            theorem=f"{self.theorem}; at distance {number!r}",
            reference=self.reference,
        )
        if self.rho is None:
            return scaled
        group = rounded_up(Fraction(self.rho) * steps**2)
        return replace(scaled, rho=group if scaled.rho is None else min(group, scaled.rho))

    def with_neighbours(self, neighbours: str) -> "Guarantee":
        """Return the same guarantee for neighbouring datasets that you name, such as ``"one user more or less"``.

        You thereby assert that the scores of any two such datasets are neighbours in the sense of this guarantee.
        The result composes only with guarantees whose neighbours have the same name.

        Args:
            neighbours: The relation between datasets, in your words.

        Example:
            >>> import dpselect as dps
            >>> dps.GEM(epsilon=1.0).guarantee.with_neighbours("one user more or less").neighbours
            'one user more or less'
        """
        if not isinstance(neighbours, str) or not neighbours:
            raise ValueError("neighbours must say which datasets are neighbours, such as 'one user more or less'")
        return replace(self, neighbours=neighbours)


def _concentrated(epsilon: float) -> Fraction:
    """Return ε·tanh(ε/2), rounded up: the smallest ρ that holds for every ε-DP mechanism."""
    tanh = math.tanh(epsilon / 2)
    for _ in range(TANH_ERROR):
        tanh = math.nextafter(tanh, math.inf)
    return Fraction(epsilon) * min(Fraction(tanh), Fraction(epsilon) / 2, Fraction(1))  # tanh(x) ≤ x, and ≤ 1


def _concentrated_like_laplace(epsilon: float) -> Fraction:
    """Return ε + e^(−ε) − 1, rounded up: the smallest ρ that holds for Laplace noise."""
    exact = Fraction(epsilon)
    if epsilon < SMALL:
        return exact**2 / 2 - exact**3 / 6 + exact**4 / 24  # an alternating series that ends with an added term
    power = FORTY_DIGITS.exp(Decimal(-min(epsilon, LARGE)))
    return exact - 1 + Fraction(FORTY_DIGITS.next_plus(power))


def rounded_up(number: Fraction) -> float:
    """Return the smallest float ≥ a number: a loss may be overstated, never understated."""
    nearest = float(number)
    return math.nextafter(nearest, math.inf) if Fraction(nearest) < number else nearest


def remainder(epsilon: float, spent: float) -> float:
    """Return what is left of a budget, rounded so that the exact sum of both parts does not exceed it."""
    rest = epsilon - spent
    return math.nextafter(rest, 0.0) if Fraction(rest) + Fraction(spent) > Fraction(epsilon) else rest


def check_guarantees(guarantees: Sequence[object]) -> None:
    """Refuse an empty collection, and members that are not guarantees."""
    if not guarantees:
        raise ValueError("guarantees must hold at least one guarantee, such as mechanism.guarantee")
    for guarantee in guarantees:
        if not isinstance(guarantee, Guarantee):
            raise ValueError(
                f"guarantees must be Guarantee objects, such as mechanism.guarantee; got {type(guarantee).__name__}"
            )


def compose_counted(counts: Mapping[Guarantee, int]) -> Guarantee:
    """Return the composition of guarantees, each repeated; see :meth:`Guarantee.compose`."""
    neighbours = _common_neighbours(counts)
    parts = sum(counts.values())
    if parts == 1:
        return next(iter(counts))
    epsilon, laplace = _sum_of_parts(counts)
    return Guarantee(
        epsilon=epsilon,
        delta=min(1.0, _sum("delta", counts) or 0.0),
        rho=_sum("rho", counts),
        flat_epsilon=_sum("flat_epsilon", counts),
        laplace_epsilon=laplace,
        neighbours=neighbours,
        theorem=_theorem_of(counts, parts),
        reference="Dwork and Roth 2014, theorem 3.16; for ρ, Bun and Steinke 2016, lemma 2.3",
    )


def _sum_of_parts(counts: Mapping[Guarantee, int]) -> tuple[float, float]:
    """Return the sum of all ε and the part of it that composes like Laplace noise; neither part is rounded down."""
    total = _sum("epsilon", counts) or 0.0
    if math.isinf(total) or any(guarantee.delta > 0 for guarantee in counts):
        return total, 0.0
    laplace = _sum("laplace_epsilon", counts) or 0.0
    jumps = sum(
        (Fraction(guarantee.epsilon) - Fraction(guarantee.laplace_epsilon)) * count
        for guarantee, count in counts.items()
    )
    return rounded_up(jumps + Fraction(laplace)), laplace


def _sum(name: str, counts: Mapping[Guarantee, int]) -> float | None:
    """Return the sum of one of their losses, rounded up; ``None`` if one of them is unknown."""
    total = Fraction(0)
    for guarantee, count in counts.items():
        loss: float | None = getattr(guarantee, name)
        if loss is None or loss == math.inf:
            return loss
        total += Fraction(loss) * count
    return rounded_up(total)


def _common_neighbours(guarantees: Iterable[Guarantee]) -> str:
    relations = {guarantee.neighbours for guarantee in guarantees}
    if len(relations) == 1:
        return relations.pop()
    if relations <= set(NESTED):
        return max(relations, key=NESTED.index)
    listed = "; ".join(f"{relation!r}" for relation in sorted(relations))
    raise ValueError(
        f"guarantees must be for the same neighbours to be composed, got {listed}. Name the same neighbouring "
        "datasets for all, with guarantee.with_neighbours(...)"
    )


def covers(stronger: str, weaker: str) -> bool:
    """Return whether a guarantee for one relation of neighbours holds for another."""
    if stronger in NESTED and weaker in NESTED:
        return NESTED.index(stronger) <= NESTED.index(weaker)
    return stronger == weaker


def _theorem_of(guarantees: Iterable[Guarantee], parts: int) -> str:
    for guarantee in guarantees:
        if not guarantee.is_private:
            return f"no guarantee, because one of {parts} parts has none: {guarantee.theorem}"
    return f"the losses of {parts} parts add up"
