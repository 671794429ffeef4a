"""The guarantee of many picks, and the budget of each pick."""

import math
from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np

import dpselect.parameters as check
from dpselect.accounting.distributions import check_pure, to_pld
from dpselect.extras import from_extra
from dpselect.guarantees import Guarantee, check_guarantees, compose_counted
from dpselect.mechanisms import Mechanism
from dpselect.mechanisms.base import require_mechanism

SMALLEST_DELTA = 1e-11
"""Loss distributions are not used for a smaller δ, which is close to the rounding of their Fourier transforms."""

ROUNDING_OF_A_PART = 2.0**-46
"""Taken off δ for each part. The n-th power of a Fourier transform multiplies its relative error, a few 2^−53, by
n. The largest error found against exact sums is 0.6 · 2^−53 for each part."""

MOST_PARTS = 1 << 20
"""More parts are not composed as loss distributions, whose size grows with them; Rényi DP is nearly tight there."""

LARGEST_GRID = 1 << 20
"""The largest number of losses of one pick on each side; more would take long and gain little."""

WORTH_A_DELTA = 1e-3
"""A total has a δ only if that saves at least this share of ε."""

ROUNDING = 1e-12
"""Added to an ε from Rényi DP, in proportion to 1 + ε. The conversion adds a few floats of magnitude
ε + 12 at most, and its error is about 10⁻¹⁵ of that."""

HALVINGS = 11
"""Steps of the search for a budget. The last multiplies it by 2^(1/1024)."""


def total_guarantee(guarantees: Iterable[Guarantee], *, delta: float, fixed_beforehand: bool = True) -> Guarantee:
    """Return the guarantee of many picks about the same people together, at a small δ.

    Its ε is the smallest of three valid bounds:

    - the sum of all ε, which needs no δ and is used unless another bound saves a thousandth of it;
    - privacy loss distributions, composed numerically: those of bounded range, of Laplace noise or of randomised
      response, whichever is proven and best;
    - Rényi DP from the sum of all ρ, the best for more than about twenty picks with Gumbel noise.

    Picks may depend on earlier ones. If their *guarantees* do too (the next ε, or whether there is a next pick),
    say ``fixed_beforehand=False``. Then loss distributions are not used, and keeping the result within a cap at
    every step is a privacy filter; see docs/theory/accounting.md. The field ``theorem`` names the bound.

    Args:
        guarantees: One for each pick, such as ``[mechanism.guarantee] * 100``; all for the same neighbours, or for
            nested relations.
        delta: The probability that the loss exceeds ε, usually far below 1/(number of people); 0 asks for the sum.
        fixed_beforehand: Whether all guarantees were fixed before the first pick.

    Cost:
        Milliseconds to seconds: a Fourier transform for each different guarantee.

    Raises:
        ValueError: If one of them is not private, has δ > 0, or is for other neighbours.

    Example:
        >>> import dpselect as dps
        >>> from dpselect import accounting
        >>> pick = dps.GEM(epsilon=0.1, noise="gumbel").guarantee
        >>> total = accounting.total_guarantee([pick] * 1000, delta=1e-6)
        >>> round(total.epsilon, 1), total.delta, round(total.rho, 2)
        (8.8, 1e-06, 1.25)

    References:
        As :func:`~dpselect.accounting.to_pld`; M. Bun, T. Steinke, Concentrated differential privacy, 2016;
        V. Feldman, T. Zrnic, Individual privacy accounting via a Rényi filter, 2021 (guarantees chosen on the way).
    """
    parts = check.as_tuple("guarantees", guarantees)
    check_guarantees(parts)
    for guarantee in set(parts):
        check_pure(guarantee)
    return _total(Counter(parts), _read_delta(delta), fixed=check.flag("fixed_beforehand", fixed_beforehand))


def epsilon_per_pick(
    mechanism: Callable[[float], Mechanism], total_epsilon: float, *, delta: float, picks: int
) -> float:
    """Return the largest budget ε of one pick with which many picks stay within (total_epsilon, delta).

    Bisection from below finds a budget within 0.1 % of the largest. With δ = 0 it is total_epsilon / picks.

    Args:
        mechanism: What makes the mechanism of a pick from its ε, such as ``dps.GEM`` or ``dps.MECHANISMS["em"]``.
        total_epsilon: The ε of all picks together.
        delta: The δ of all picks together.
        picks: The number of picks.

    Cost:
        About twenty times that of :func:`total_guarantee`.

    Example:
        >>> import dpselect as dps
        >>> for name in ("rnm", "em"):
        ...     epsilon = dps.accounting.epsilon_per_pick(dps.MECHANISMS[name], 1.0, delta=1e-6, picks=100)
        ...     print(round(epsilon, 3))
        0.024
        0.044

    References:
        As :func:`total_guarantee`.
    """
    target = check.positive("total_epsilon", total_epsilon)
    number = check.count("picks", picks)
    share = _read_delta(delta)
    largest = target / number
    first = _make(mechanism, largest)
    if first.guarantee.epsilon == 0:  # a random pick costs nothing, whatever the budget
        return largest
    if not math.isclose(first.guarantee.epsilon, largest):
        raise ValueError(f"mechanism must make a mechanism that costs the ε it is given; {first.label} does not")

    def fits(epsilon: float) -> bool:
        parts = Counter({mechanism(epsilon).guarantee: number})
        return _total(parts, share, fixed=True).epsilon <= target

    while not fits(largest):  # the sum, rounded up, may just exceed the target
        largest = math.nextafter(largest, 0.0)
    for halving in range(HALVINGS if share > 0 else 0):
        factor = 2**0.5**halving
        while fits(largest * factor):
            largest *= factor
    return largest


def _make(mechanism: Callable[[float], Mechanism], epsilon: float) -> Mechanism:
    if not callable(mechanism):
        kind = type(mechanism).__name__
        raise ValueError(f"mechanism must make a mechanism from ε, as the class GEM does; got {kind}")
    try:
        made = mechanism(epsilon)
    except TypeError:
        raise ValueError("mechanism must make a mechanism from ε alone, as the class GEM does") from None
    require_mechanism(made, "mechanism(ε)", single=True)
    return made


def _read_delta(delta: float) -> float:
    share = check.between("delta", delta, 0, 1)
    if share == 1:
        raise ValueError("delta must be < 1: δ = 1 guarantees nothing")
    return share


def _total(counts: Counter[Guarantee], delta: float, *, fixed: bool) -> Guarantee:
    simple = compose_counted(counts)
    lossy = Counter({guarantee: count for guarantee, count in counts.items() if guarantee.epsilon > 0})
    if delta == 0 or not lossy:
        return simple
    bounds = {"Rényi DP": math.inf if simple.rho is None else _epsilon_by_concentration(simple.rho, delta)}
    if fixed and delta >= SMALLEST_DELTA and lossy.total() <= MOST_PARTS:
        bounds["privacy loss distributions"] = _epsilon_by_distributions(lossy, delta)
    way, epsilon = min(bounds.items(), key=lambda bound: bound[1])
    if not epsilon < simple.epsilon * (1 - WORTH_A_DELTA):
        return simple
    return Guarantee(
        epsilon=epsilon,
        delta=delta,
        rho=simple.rho,
        neighbours=simple.neighbours,
        theorem=f"{counts.total()} parts, composed by dp_accounting through {way}",
        reference="Zhu, Dong and Wang 2022; Bun and Steinke 2016; docs/theory/accounting.md",
    )


def _epsilon_by_concentration(rho: float, delta: float) -> float:
    """Return the ε of a sum of ρ that is already rounded up; an accountant would lose small parts."""
    with from_extra("accounting"):
        from dp_accounting import dp_event
        from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant(orders=1 + np.geomspace(0.01, 1e6, 500))
    epsilon = float(accountant.compose(dp_event.ZCDpEvent(rho=rho)).get_epsilon(delta))
    return epsilon + ROUNDING * (1 + epsilon)


def _epsilon_by_distributions(counts: Counter[Guarantee], delta: float) -> float:
    """Return the ε of loss distributions at δ less what rounding may hide; infinity if nothing is left of δ."""
    left = delta - (1 + counts.total()) * ROUNDING_OF_A_PART
    if left <= 0:
        return math.inf
    interval = _interval(counts)
    first, *others = (
        to_pld(guarantee, interval=interval).self_compose(count) for guarantee, count in counts.items()
    )
    for other in others:
        first = first.compose(other)
    return float(first.get_epsilon_for_delta(left))


def _interval(counts: Counter[Guarantee]) -> float:
    """Return the distance between losses.

    Discretisation overstates the variance ε² of a loss by at most about ε · interval, and by nothing if ε is a
    multiple of the interval, as the ε that matters most is made. A hundredth of Σε²/Σε is precise enough for any
    mixture. Many picks allow a larger interval, in proportion to the standard deviation of the total.
    """
    total = sum(guarantee.epsilon * count for guarantee, count in counts.items())
    variance = sum(guarantee.epsilon**2 * count for guarantee, count in counts.items())
    typical = variance / total
    finest = max(guarantee.epsilon for guarantee in counts) / LARGEST_GRID
    interval = max(typical / 100, min(math.sqrt(variance) / 3000, typical / 10), finest)
    main = max(counts, key=lambda guarantee: guarantee.epsilon**2 * counts[guarantee]).epsilon
    return main / math.ceil(main / interval)
