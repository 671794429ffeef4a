"""Which mechanisms compete where one is chosen: by advice from public knowledge, or by tuning on a fleet."""

from collections.abc import Sequence

from dpselect import parameters as check
from dpselect.candidates import Numbers
from dpselect.guarantees import ANY_SCORES, WITHIN_SENSITIVITIES
from dpselect.mechanisms import Mechanism
from dpselect.registry import MECHANISMS, Grid

__all__ = [
    "ANCHOR_WEIGHTS",
    "GAMMAS",
    "SHARES",
    "TILTS",
    "default_pool",
    "public_numbers",
    "read_members",
    "read_pool",
]

TILTS = (-8.0, -4.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
"""The paper's −1, 0 and 1 among them. The best tilt is often far outside."""

ANCHOR_WEIGHTS = (0.5, 1.0, 2.0, 4.0, 8.0)
SHARES = (0.2, 0.4, 0.6, 0.8)
"""How much of its budget combined GEM spends on its question."""

GAMMAS = (0.05, 0.008)
"""The paper's, for synthetic and for real data: 20 and 125 draws on average."""


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
    grid = Grid(epsilon=epsilon, beta=beta, tilts=TILTS, gammas=check.as_tuple("gammas", gammas), shares=SHARES)
    records = MECHANISMS.values()
    members = [member for record in records for member in record.members(grid)]
    if anchors:
        members += [m for weight in ANCHOR_WEIGHTS for record in records for m in record.anchored(grid, weight)]
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
                f"pool must hold mechanisms that are ε-DP at epsilon = {epsilon:g}: {member.label} is not"
            )
        if promise.neighbours not in {WITHIN_SENSITIVITIES, ANY_SCORES}:
            raise ValueError(
                "pool must hold mechanisms that are private for all scores within the sensitivities: "
                f"{member.label} is for {promise.neighbours}"
            )
        if "anchors" in member.needs and anchors is None:
            raise ValueError(f"anchors must be given: {member.label} needs them")
    return members


def read_members(pool: Sequence[Mechanism]) -> tuple[Mechanism, ...]:
    """Return a pool's mechanisms, whatever they promise."""
    members = check.as_tuple("pool", pool)
    if not members:
        raise ValueError("pool must hold at least one mechanism")
    for member in members:
        if not isinstance(member, Mechanism):
            raise ValueError(f"pool must hold mechanisms, not {type(member).__name__}")
    return members


def public_numbers(mechanism: Mechanism, anchors: Numbers | None) -> dict[str, Numbers]:
    """Return what a mechanism takes with a call, besides scores and sensitivities."""
    return {"anchors": anchors} if anchors is not None and "anchors" in mechanism.takes else {}
