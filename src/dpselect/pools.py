"""The mechanisms to choose from: by advice from public knowledge, or by tuning on many users."""

from collections.abc import Sequence

from dpselect import parameters as check
from dpselect.guarantees import ANY_SCORES, WITHIN_SENSITIVITIES
from dpselect.mechanisms import (
    GEM,
    CombinedGEM,
    HeterogeneousNoisyMax,
    Mechanism,
    NoisyMax,
    RandomizedResponse,
    RandomStopping,
    Uniform,
)
from dpselect.mechanisms.base import require_mechanism

__all__ = ["GAMMAS", "KEEPS", "SHARES", "TILTS", "default_pool", "read_pool"]

TILTS = (-8.0, -4.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
"""They include the paper's −1, 0 and 1. The best tilt is often far outside that range."""

KEEPS = tuple(ends for part in (0.05, 0.1, 0.25, 0.5, 0.75, 0.9) for ends in ((0.0, part), (1.0 - part, 1.0)))
"""Which sensitivities may compete: a part of the candidates, from the least or from the most sensitive on."""

SHARES = (0.2, 0.4, 0.6, 0.8)
"""The share of its budget that combined GEM spends on the sign of the correlation."""

GAMMAS = (0.05, 0.008, 0.001)
"""The paper's values for synthetic and for real data, and one below: 20, 125 and 1000 draws on average."""


def default_pool(epsilon: float, *, gammas: Sequence[float] = GAMMAS) -> tuple[Mechanism, ...]:
    """Return mechanisms of one privacy budget that together suit every situation we know.

    A random pick is one of them: it is best if the budget is too small for all others. Random stopping with
    exponential noise has η = 1 only: where it is best, so is that.

    Args:
        epsilon: The privacy budget of one pick, the same for all members.
        gammas: The stopping probabilities of random stopping, whose laws are by far the slowest to compute.

    Privacy:
        Every member is ε-DP. Choosing one by looking at private scores is a release of its own: see
        :func:`~dpselect.tuning.tune`.

    Cost:
        Negligible.

    Example:
        >>> import dpselect as dps
        >>> pool = dps.pools.default_pool(1.0)
        >>> len(pool), dps.GEM(epsilon=1.0) in pool, dps.Uniform() in pool
        (60, True, True)

    References:
        docs/theory/tuning.md.
    """
    stops = check.as_tuple("gammas", gammas)
    return (
        *(HeterogeneousNoisyMax(epsilon=epsilon, tilt=tilt) for tilt in TILTS),
        *(HeterogeneousNoisyMax(epsilon=epsilon, keep=keep) for keep in KEEPS),
        *(NoisyMax(epsilon=epsilon, tilt=tilt) for tilt in TILTS),
        *(GEM(epsilon=epsilon, tilt=tilt) for tilt in TILTS),
        *(RandomStopping(epsilon=epsilon, gamma=gamma) for gamma in stops),
        *(RandomStopping(epsilon=epsilon, gamma=gamma, eta=0.0) for gamma in stops),
        *(RandomStopping(epsilon=epsilon, gamma=gamma, noise="exponential") for gamma in stops),
        *(CombinedGEM(epsilon=epsilon, correlation_share=share) for share in SHARES),
        RandomizedResponse(epsilon=epsilon),
        Uniform(),
    )


def read_pool(pool: Sequence[Mechanism] | None, epsilon: float) -> tuple[Mechanism, ...]:
    """Return the mechanisms of a pool, or the default ones, after checking them.

    Each must be ε-DP for *all* scores within the sensitivities, so ``NoisyMax(monotone=True)`` is refused.

    Args:
        pool: Mechanisms, or ``None`` for the default pool.
        epsilon: The budget that every member must keep.

    Raises:
        ValueError: If a member breaks a rule. The message names both.

    Example:
        >>> import dpselect as dps
        >>> dps.pools.read_pool([dps.NoisyMax(epsilon=2.0)], 1.0)
        Traceback (most recent call last):
        ValueError: pool must hold mechanisms that are ε-DP at epsilon = 1: noisy max is not
    """
    if pool is None:
        return default_pool(epsilon)
    members = read_members(pool)
    for member in members:
        promise = member.guarantee
        if not promise.epsilon <= epsilon or promise.delta > 0:
            raise ValueError(
                f"pool must hold mechanisms that are ε-DP at epsilon = {epsilon:g}: {member.label} is not"
            )
        if promise.neighbours not in {WITHIN_SENSITIVITIES, ANY_SCORES}:
            raise ValueError(
                "pool must hold mechanisms that are private for all scores within the sensitivities: "
                f"{member.label} is for {promise.neighbours}"
            )
    return members


def read_members(pool: Sequence[Mechanism]) -> tuple[Mechanism, ...]:
    """Return the mechanisms of a pool, private or not."""
    members = check.as_tuple("pool", pool)
    if not members:
        raise ValueError("pool must hold at least one mechanism")
    for member in members:
        require_mechanism(member, "each member of pool", single=True)
    return members
