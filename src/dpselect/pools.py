"""Which mechanisms compete where one is chosen: by advice from public knowledge, or by tuning on a fleet."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from dpselect import parameters as check
from dpselect.candidates import Numbers, read_batch
from dpselect.guarantees import ANY_SCORES, WITHIN_SENSITIVITIES, Guarantee
from dpselect.kernels.arrays import FloatArray
from dpselect.mechanisms import (
    GEM,
    CombinedGEM,
    Mechanism,
    ModifiedGEM,
    NoisyMax,
    RandomizedResponse,
    RandomStopping,
    StandardizedNoisyMax,
    Uniform,
)
from dpselect.mechanisms.protocol import stream_of
from dpselect.parameters import store
from dpselect.randomness import Randomness

__all__ = [
    "ANCHOR_WEIGHTS",
    "SHARES",
    "TILTS",
    "Anchored",
    "default_pool",
    "describe",
    "needs_anchors",
    "public_numbers",
    "read_members",
    "read_pool",
    "takes_anchors",
]

TILTS = (-8.0, -4.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
"""The paper's −1, 0 and 1 among them. The best tilt is often far outside."""

ANCHOR_WEIGHTS = (0.5, 1.0, 2.0, 4.0, 8.0)
SHARES = (0.2, 0.4, 0.6, 0.8)
"""How much of its budget combined GEM spends on its question."""

GAMMAS = (0.05, 0.008)
"""The paper's, for synthetic and for real data: 20 and 125 draws on average."""


@final
@dataclass(frozen=True, kw_only=True)
class Anchored:
    r"""Noisy max or GEM with public anchors: guesses of the scores, added at a weight that noise understands.

    Runs ``mechanism`` with the offsets

        o_a = weight · log(k/β) · (2 max Δ/ε) · c_a / max|c|

    so that weight 1 sets the best guess as far from 0 as the noise reaches. Offsets grow with 1/ε: anchors decide
    where the budget is too small for the scores to.

    Privacy:
        That of ``mechanism``: the offsets are public, and public numbers change no sensitivity.

    Cost:
        That of ``mechanism``.

    Args:
        mechanism: A :class:`~dpselect.NoisyMax` or :class:`~dpselect.GEM`.
        weight: The weight of the anchors; any real number.

    Example:
        >>> import dpselect as dps
        >>> guessed = dps.pools.Anchored(mechanism=dps.NoisyMax(epsilon=0.1), weight=1.0)
        >>> guessed.pmf([0.0, 0.5], 1.0, anchors=[0.0, 1.0]).round(3)
        array([0.012, 0.988])

    References:
        Public offsets are covered by the proof for noisy max; see docs/theory/tuning.md.
    """

    mechanism: NoisyMax | GEM
    weight: float

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, NoisyMax | GEM):
            raise ValueError("mechanism must be a NoisyMax or a GEM: only those take offsets")
        store(self, weight=check.real("weight", self.weight))

    @property
    def guarantee(self) -> Guarantee:
        """That of the mechanism."""
        return self.mechanism.guarantee

    def pmf(self, scores: Numbers, sensitivities: Numbers, *, anchors: Numbers | None = None) -> Any:  # noqa: ANN401
        """Return the exact probability of each candidate. Not private: it reveals scores."""
        offsets = self._offsets(scores, sensitivities, anchors)
        return self.mechanism.pmf(scores, sensitivities, offsets=offsets)

    def select(
        self,
        scores: Numbers,
        sensitivities: Numbers,
        *,
        anchors: Numbers | None = None,
        randomness: Randomness | None = None,
    ) -> Any:  # noqa: ANN401
        """Return the index of one candidate for each row, drawn privately."""
        offsets = self._offsets(scores, sensitivities, anchors)
        batch = read_batch(scores, sensitivities, offsets=offsets, finite=False)
        picks = self.mechanism._composition(batch).select(batch, stream_of(self, randomness))  # noqa: SLF001
        return batch.restore_rows(picks)

    def _offsets(self, scores: Numbers, sensitivities: Numbers, anchors: Numbers | None) -> FloatArray:
        """Return the offsets in a layout that goes with the scores. They depend on public numbers alone."""
        if anchors is None:
            raise ValueError("anchors must be given: an anchored mechanism needs them")
        batch = read_batch(scores, sensitivities, finite=False, anchors=anchors)
        guesses = batch.spread(batch.table.public)
        largest = np.repeat(batch.largest(np.abs(guesses)), batch.sizes)
        widths = np.repeat(batch.largest(batch.spread(batch.table.sensitivities)), batch.sizes)
        reach = self.weight * np.log(np.repeat(batch.sizes, batch.sizes) / self.mechanism.beta)
        units = 2 * widths / self.mechanism.epsilon
        flat = reach * units * np.divide(guesses, largest, out=np.zeros(guesses.size), where=largest > 0)
        return np.asarray(flat if batch.shape is None else flat.reshape(*batch.shape, batch.width))


def default_pool(
    epsilon: float, *, anchors: bool = False, gammas: Sequence[float] = GAMMAS, beta: float = 0.05
) -> tuple[Mechanism, ...]:
    """Return mechanisms of one privacy budget that between them suit every situation known to us.

    Noisy max, standardized noisy max and GEM, each at the tilts :data:`TILTS`; random stopping with η = 1 and 0 at
    several γ; combined GEM at several :data:`SHARES`; randomised response; and a candidate at random, which is the
    best that can be done where the budget is too small for all others.

    Args:
        epsilon: The privacy budget of one pick; all members have the same.
        anchors: Whether public anchors will be at hand: then the three normalisations enter with them as well, at
            the weights :data:`ANCHOR_WEIGHTS`.
        gammas: The stopping probabilities of random stopping, whose laws are by far the slowest to compute.
        beta: The failure probability in the scale of tilts and weights.

    Privacy:
        Every member is ε-DP. Choosing one by looking at private scores is a release of its own: see
        :func:`~dpselect.tuning.tune`.

    Cost:
        None to speak of; a list of small values.

    Example:
        >>> import dpselect as dps
        >>> pool = dps.pools.default_pool(1.0)
        >>> len(pool), dps.GEM(epsilon=1.0) in pool, dps.Uniform() in pool
        (43, True, True)
        >>> len(dps.pools.default_pool(1.0, anchors=True))
        58

    References:
        docs/theory/tuning.md.
    """
    check.flag("anchors", anchors)
    members: list[Mechanism] = [
        family(epsilon=epsilon, tilt=tilt, beta=beta)
        for family in (NoisyMax, StandardizedNoisyMax, GEM)
        for tilt in TILTS
    ]
    chances = check.several("gammas", gammas)
    members += [RandomStopping(epsilon=epsilon, gamma=gamma, eta=eta) for eta in (1.0, 0.0) for gamma in chances]
    members += [CombinedGEM(epsilon=epsilon, correlation_share=share, beta=beta) for share in SHARES]
    members += [RandomizedResponse(epsilon=epsilon), Uniform()]
    if anchors:
        for weight in ANCHOR_WEIGHTS:
            members += [
                Anchored(mechanism=NoisyMax(epsilon=epsilon, beta=beta), weight=weight),
                StandardizedNoisyMax(epsilon=epsilon, anchor_weight=weight, beta=beta),
                Anchored(mechanism=GEM(epsilon=epsilon, tilt=0.0, beta=beta), weight=weight),
            ]
    return tuple(members)


def read_pool(pool: Sequence[Mechanism] | None, epsilon: float, anchors: Numbers | None) -> tuple[Mechanism, ...]:
    """Return a pool's mechanisms, or the default ones, checked: private within the budget, and with all they need.

    Each must be ε-DP for *all* scores within the sensitivities, since that is what is promised of whichever is
    chosen. :class:`~dpselect.NoisyMax` with ``monotone=True`` is so only for scores that move in the same
    direction, and is refused.

    Raises:
        ValueError: If a member breaks a rule; the message names both.

    Example:
        >>> import dpselect as dps
        >>> dps.pools.read_pool([dps.NoisyMax(epsilon=2.0)], 1.0, None)
        Traceback (most recent call last):
        ValueError: pool must hold mechanisms that are ε-DP at epsilon = 1: noisy max is not
    """
    if pool is None:
        return default_pool(epsilon, anchors=anchors is not None)
    members = read_members(pool)
    for member in members:
        promise = member.guarantee
        if not promise.epsilon <= epsilon or promise.delta > 0:
            raise ValueError(
                f"pool must hold mechanisms that are ε-DP at epsilon = {epsilon:g}: {describe(member)} is not"
            )
        if promise.neighbours not in {WITHIN_SENSITIVITIES, ANY_SCORES}:
            raise ValueError(
                "pool must hold mechanisms that are private for all scores within the sensitivities: "
                f"{describe(member)} is for {promise.neighbours}"
            )
        if needs_anchors(member) and anchors is None:
            raise ValueError(f"anchors must be given: {describe(member)} needs them")
    return members


def read_members(pool: Sequence[Mechanism]) -> tuple[Mechanism, ...]:
    """Return a pool's mechanisms, whatever they promise."""
    members = check.several("pool", pool)
    if not members:
        raise ValueError("pool must hold at least one mechanism")
    for member in members:
        if isinstance(member, type) or not isinstance(member, Mechanism):  # a class has a mechanism's parts as well
            raise ValueError(f"pool must hold mechanisms, not {type(member).__name__}")
    return members


def takes_anchors(mechanism: Mechanism) -> bool:
    """Return whether a mechanism takes ``anchors=`` with a call."""
    return isinstance(mechanism, StandardizedNoisyMax | Anchored)


def needs_anchors(mechanism: Mechanism) -> bool:
    """Return whether a mechanism cannot do without ``anchors=``."""
    return isinstance(mechanism, Anchored) or (
        isinstance(mechanism, StandardizedNoisyMax) and mechanism.anchor_weight != 0
    )


def public_numbers(mechanism: Mechanism, anchors: Numbers | None) -> dict[str, Numbers]:
    """Return what a mechanism takes with a call, besides scores and sensitivities."""
    return {"anchors": anchors} if anchors is not None and takes_anchors(mechanism) else {}


def describe(mechanism: Mechanism) -> str:
    """Return a mechanism's name in a few words, without its budget.

    Example:
        >>> import dpselect as dps
        >>> dps.pools.describe(dps.GEM(epsilon=1.0, tilt=-4.0))
        'GEM, tilt −4'
    """
    match mechanism:
        case NoisyMax():
            plain = {"exponential": "noisy max", "gumbel": "exponential mechanism", "laplace": "Laplace noisy max"}
            return plain[mechanism.noise] + _tilt(mechanism.tilt)
        case StandardizedNoisyMax():
            weight = f", anchor weight {mechanism.anchor_weight:g}" if mechanism.anchor_weight else ""
            return f"standardized noisy max{_tilt(mechanism.tilt)}{weight}"
        case GEM(tilt=1.0):
            return "GEM"
        case GEM(tilt=-1.0) | ModifiedGEM():
            return "modified GEM"
        case GEM():
            return f"GEM{_tilt(mechanism.tilt) or ', tilt 0'}"
        case Anchored():
            return f"{describe(mechanism.mechanism)}, anchor weight {mechanism.weight:g}"
        case RandomStopping():
            return f"random stopping, γ = {mechanism.gamma:.2g}, η = {mechanism.eta:g}"
        case CombinedGEM():
            return f"combined GEM, {mechanism.correlation_share:.0%} for the question"
        case RandomizedResponse():
            return "randomised response"
        case Uniform():
            return "a candidate at random"
        case _:
            return repr(mechanism)


def _tilt(tilt: float) -> str:
    return f", tilt {tilt:g}".replace("-", "−") if tilt else ""
