"""A search for the neighbours on which a mechanism's laws differ most."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

import dpselect.parameters as check
from dpselect.auditing.losses import ACCURACY, FLOOR, FloatArray, certain_losses, claimed_epsilon, precision
from dpselect.candidates import read_sensitivities
from dpselect.guarantees import ANY_SCORES, SAME_DIRECTION
from dpselect.mechanisms.base import Mechanism, require_mechanism

EXHAUSTIVE = 8
"""With at most this number of candidates, the search tries all corners of the box of neighbours."""

OUT_OF_THE_RACE = -64.0
"""The score of a candidate that should hardly matter, in units of the largest sensitivity."""

FAR = 16.0
"""How far scores move where any two rows are neighbours, in units of the largest sensitivity."""

DEEPEST = 2.0**14
"""The distance at which floats may underflow, in units of the largest sensitivity over ε."""

LAST_DIGITS = 1e-321
"""Floats below have two digits, so that a ratio of them is off by per cents."""

SLACK = 1e-9
"""The relative excess of a loss over the claim that counts: more than rounding, less than a real violation."""


def shown(numbers: FloatArray) -> str:
    """Return numbers as a report shows them."""
    return np.array2string(numbers + 0.0, precision=6, threshold=12)  # + 0.0: no −0


@dataclass(frozen=True, kw_only=True, eq=False)
class Audit:
    """The worst pair of neighbours that a search has found, and its verdict on the claim.

    Its scores come from the search, not from anyone's data.
    """

    mechanism: Any
    claimed: float
    """The ε that the loss is compared with."""
    loss: float
    """The loss of the witness; infinite if the candidate is impossible on one side."""
    certain: float
    """A lower bound of the loss: if each probability is off by 1e-12, or at the stated error rate of draws. The
    verdict depends on this number."""
    candidate: int
    """The candidate whose probabilities differ most."""
    scores: FloatArray
    neighbour: FloatArray
    sensitivities: FloatArray
    probabilities: tuple[float, float]
    """The candidate's probability on the scores and on the neighbour."""
    pairs: int
    """The number of pairs tried."""

    @property
    def verdict(self) -> Literal["violated", "no violation found"]:
        """``"violated"`` is a proof. ``"no violation found"`` does not prove the claim."""
        return "violated" if self.certain > self.claimed * (1 + SLACK) + SLACK else "no violation found"

    @property
    def tightness(self) -> float:
        """The loss found as a share of the claimed ε."""
        return self.loss / self.claimed if self.claimed else math.inf if self.loss else 0.0

    def __str__(self) -> str:
        return (
            f"{self.mechanism}: {self.verdict}\n"
            f"  largest loss {self.loss:.6g}, claimed {self.claimed:g}, {self.pairs:,} pairs tried\n{self.witness}"
        )

    @property
    def witness(self) -> str:
        """The pair, in words."""
        here, there = self.probabilities
        return (
            f"  candidate {self.candidate} has probability {here:.6g} on the first, {there:.6g} on the second of\n"
            f"  scores        {shown(self.scores)}\n"
            f"  neighbour     {shown(self.neighbour)}\n"
            f"  sensitivities {shown(self.sensitivities)}"
        )


def audit(
    mechanism: Mechanism,
    sensitivities: ArrayLike,
    *,
    restarts: int = 32,
    sweeps: int = 12,
    seed: int = 0,
    **public: ArrayLike,
) -> Audit:
    r"""Search all pairs of neighbouring scores for the largest exact privacy loss.

    Maximises $max_a |log Pr[a | q] − log Pr[a | q']|$ over scores q and neighbours q' with $|q_a − q'_a| ≤ Δ_a$.
    The search tries corners of the box first, from structured and random scores, then coordinate ascent from the
    best pairs. A loss above the claim proves that the mechanism is not ε-DP, and the pair found is the witness. If
    no violation is found, that is evidence only if the loss found is close to the claim.

    *The claim* is the ε of ``mechanism.guarantee`` or, if there is none, of the field ``epsilon``. *Neighbours* are
    scores within the sensitivities, all moved in the same direction if the guarantee says so. If it is for any two
    score vectors (randomised response, top share), scores move as far as it takes to change their order.

    Args:
        mechanism: Any mechanism of single picks.
        sensitivities: One for each candidate; the number of candidates is the length.
        restarts: The number of ascents, which run side by side.
        sweeps: The largest number of passes of each ascent over all candidates.
        seed: The seed of the search; the same seed finds the same pair.
        **public: ``offsets=`` for mechanisms that take them.

    Cost:
        At most about 20 · restarts · sweeps · k pairs, two ``pmf`` each: a second for noisy max and GEM with ten
        candidates, minutes for random stopping with fifty.

    Example:
        >>> import dpselect as dps
        >>> found = dps.auditing.audit(dps.NoisyMax(epsilon=1.0), [1.0, 1.0, 1.0], restarts=8, sweeps=4)
        >>> found.verdict, round(found.tightness, 2)
        ('no violation found', 1.0)
        >>> naive = dps.unsafe.NaiveHeterogeneousNoisyMax(epsilon=1.0)
        >>> found = dps.auditing.audit(naive, [0.0, 1.0], restarts=8, sweeps=4)
        >>> found.verdict, found.loss
        ('violated', inf)

    References:
        Z. Ding et al., Detecting violations of differential privacy, 2018 (by sampling; here exactly).
    """
    require_mechanism(mechanism, single=True)
    widths = read_sensitivities(sensitivities)
    if widths.size < 2:
        raise ValueError("sensitivities must be one number for each of at least two candidates")
    claimed = claimed_epsilon(mechanism)
    if claimed is None:
        raise ValueError("mechanism must claim an ε: it has neither a guarantee nor a field epsilon")
    floor, accuracy = precision(mechanism)
    search = Search(
        mechanism=mechanism,
        law=lambda scores: mechanism.pmf(scores, widths, **public),
        claimed=claimed,
        widths=widths,
        random=np.random.default_rng(check.count("seed", seed, least=0)),
        neighbours=mechanism.guarantee.neighbours,
        floor=floor,
        accuracy=accuracy,
    )
    return search.run(check.count("restarts", restarts), check.count("sweeps", sweeps))


@dataclass(kw_only=True)
class Search:
    """Ascents side by side: each holds scores q and moves s in [−1, 1], and stands for the pair (q, q + sΔ)."""

    mechanism: Any
    law: Callable[[FloatArray], Any]
    """The probabilities of rows of scores."""
    claimed: float
    widths: FloatArray
    random: np.random.Generator
    neighbours: str
    floor: float = FLOOR
    accuracy: float = ACCURACY
    pairs: int = 0

    def __post_init__(self) -> None:
        self.unit = float(self.widths.max()) or 1.0
        self.one_way = self.neighbours == SAME_DIRECTION
        self.reach = np.full(self.widths.size, FAR * self.unit) if self.neighbours == ANY_SCORES else self.widths

    def run(self, restarts: int, sweeps: int) -> Audit:
        """Search until three sweeps in a row find nothing better."""
        self.start(restarts)
        quiet = 0
        for _ in range(sweeps):
            quiet = 0 if self.sweep() else quiet + 1
            if quiet == 3:
                break
        return self.witness()

    def start(self, restarts: int) -> None:
        """Begin with the best structured pairs and the same number of random pairs."""
        scores, moves = self.structured()
        if self.floor == 0:
            scores, moves = (np.concatenate(parts) for parts in zip((scores, moves), self._edges(), strict=True))
        drawn = max(4 * restarts, 64)
        spread = self.unit * 2.0 ** self.random.uniform(-4, 6, (drawn, 1))
        wild = self.random.standard_normal((drawn, self.widths.size)) * spread
        signs = self.random.choice([-1.0, 1.0], (drawn, self.widths.size))
        structured = self._best(scores, moves, (restarts + 1) // 2)
        random = self._best(wild, self._allowed(signs), restarts - (restarts + 1) // 2)
        self.scores, self.moves, self.values = (
            np.concatenate(parts) for parts in zip(structured, random, strict=True)
        )
        if self.widths.size <= EXHAUSTIVE:
            ends = [0.0, 1.0] if self.one_way else [-1.0, 1.0]
            corners = np.array(list(product(ends, repeat=self.widths.size)))
            self._improve(self.scores[:, np.newaxis], corners)

    def structured(self) -> tuple[FloatArray, FloatArray]:
        """Return pairs that single out one or two candidates, moved with or against the rest."""
        k = self.widths.size
        chosen = range(k) if k <= 16 else np.unique(np.argsort(self.widths)[[0, 1, k // 2, -2, -1]])
        pairs: list[tuple[FloatArray, FloatArray]] = []
        for a in chosen:
            single = np.eye(k)[a]
            starts = [single * height * self.unit for height in (0.0, -0.5, 0.5, -2.0, 2.0, -4.0)]
            for b in set(chosen) - {a}:
                duel = np.full(k, OUT_OF_THE_RACE * self.unit)
                duel[a], duel[b] = -2.0 * self.unit, 0.0
                starts.append(duel)
            ways = (2 * single - 1, 1 - 2 * single, np.ones(k), -np.ones(k), single - 1, 1 - single)
            pairs.extend(product(starts, ways))
        scores, moves = (np.array(part) for part in zip(*pairs, strict=True))
        return scores, self._allowed(moves)

    def _edges(self) -> tuple[FloatArray, FloatArray]:
        """Return pairs where a candidate is so far behind that floats lose its last digits, or all of it."""
        k = self.widths.size
        singles, least = np.tile(np.eye(k), (2, 1)), np.repeat([[0.0], [LAST_DIGITS]], k, axis=0)
        low = 0 * least
        high = low + (DEEPEST * self.unit * max(1.0, 1 / self.claimed) if self.claimed else 0.0)
        for _ in range(52):
            middle = (low + high) / 2
            possible = self.law(-middle * singles)[singles == 1][:, None] > least
            low, high = np.where(possible, middle, low), np.where(possible, high, middle)
        ends = -low * singles
        return np.concatenate([ends, ends]), self._allowed(np.concatenate([1 - 2 * singles, 1 - singles]))

    def sweep(self) -> bool:
        """Go over all candidates once and return whether any ascent improved."""
        before = self.values.copy()
        for candidate in self.random.permutation(self.widths.size):
            self._improve(*self._variants(self.scores, self.moves, candidate))
        return bool((self.values > before + 1e-6).any())

    def _variants(self, scores: FloatArray, moves: FloatArray, j: int) -> tuple[FloatArray, FloatArray]:
        """Return each pair with one candidate's score, move, or both changed."""
        ascents, k = scores.shape
        rungs = self.unit * 2.0 ** self.random.uniform(-6, 4, (ascents, 4)) * np.array([-1.0, 1.0, -1.0, 1.0])
        partner = self.random.integers(k, size=(ascents, 3))
        level = np.take_along_axis(scores, partner, axis=1)
        reach = self.widths[partner] + self.widths[j]
        values = np.concatenate(
            [
                scores[:, [j]] + rungs,
                level + reach * np.array([0.0, 1.0, -1.0]),  # ties, before or after the move
                scores[:, [j]] + OUT_OF_THE_RACE * self.unit,
            ],
            axis=1,
        )
        count = values.shape[1]
        new_scores, new_moves = (np.repeat(part[:, None], 2 * count + 3, axis=1) for part in (scores, moves))
        new_scores[:, : 2 * count, j] = np.tile(values, 2)
        new_moves[:, count : 2 * count, j] *= -1
        new_moves[:, 2 * count :, j] = [-1.0, 0.0, 1.0]
        return new_scores, self._allowed(new_moves)

    def _improve(self, proposed_scores: FloatArray, proposed_moves: FloatArray) -> None:
        """Replace each ascent's pair by its best proposal, if that is better."""
        scores, moves = np.broadcast_arrays(proposed_scores, proposed_moves)
        ascents, count, k = scores.shape
        values = self._values(scores.reshape(-1, k), moves.reshape(-1, k)).reshape(ascents, count)
        best, rows = values.argmax(axis=1), np.arange(ascents)
        better = values[rows, best] > self.values
        for kept, proposed in ((self.scores, scores), (self.moves, moves), (self.values, values)):
            kept[better] = proposed[rows, best][better]

    def _best(self, scores: FloatArray, moves: FloatArray, count: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        values = self._values(scores, moves)
        order = np.argsort(-values, kind="stable")[:count]
        return scores[order].copy(), moves[order].copy(), values[order].copy()

    def _values(self, scores: FloatArray, moves: FloatArray) -> FloatArray:
        """Return the certain loss of each pair."""
        self.pairs += len(scores)
        there = self.law(self.neighbour(scores, moves))
        losses = certain_losses(self.law(scores), there, self.accuracy, floor=self.floor)
        largest: FloatArray = np.concatenate(losses, axis=1).max(axis=1)
        return largest

    def neighbour(self, scores: FloatArray, moves: FloatArray) -> FloatArray:
        """Return q + sΔ, kept inside the box despite rounding."""
        moved = scores + moves * self.reach
        return np.where(np.abs(moved - scores) > self.reach, np.nextafter(moved, scores), moved)

    def _allowed(self, moves: FloatArray) -> FloatArray:
        return np.abs(moves) if self.one_way else moves

    def witness(self) -> Audit:
        """Return the best pair."""
        ascent = int(self.values.argmax())
        pair = np.array([self.scores[ascent], self.neighbour(self.scores[ascent], self.moves[ascent])])
        here, there = self.law(pair)
        certain = np.maximum(*certain_losses(here, there, self.accuracy, floor=self.floor))
        candidate = int(certain.argmax())
        return Audit(
            mechanism=self.mechanism,
            claimed=self.claimed,
            loss=float(np.maximum(*certain_losses(here, there, 0.0, self.claimed, self.floor))[candidate]),
            certain=float(certain[candidate]),
            candidate=candidate,
            scores=pair[0],
            neighbour=pair[1],
            sensitivities=self.widths,
            probabilities=(float(here[candidate]), float(there[candidate])),
            pairs=self.pairs,
        )
