"""Guarantees for dp_accounting, as privacy loss distributions."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

import dpselect.parameters as check
from dpselect.extras import from_extra
from dpselect.guarantees import Guarantee, check_guarantees

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

Curve: TypeAlias = Callable[[float, NDArray[np.float64]], NDArray[np.float64]]
"""δ as a function of the largest loss and of the losses at which to evaluate it, none of which is larger."""


def to_pld(guarantee: Guarantee, *, interval: float = 1e-4) -> "PrivacyLossDistribution":
    """Return a privacy loss distribution of dp_accounting that dominates a guarantee.

    Compositions with it (``compose``, ``self_compose``), also with the distributions of other mechanisms and
    adaptive or not, have a valid δ(ε). For ``RdpAccountant``, write ``ZCDpEvent(guarantee.rho)``. The distribution
    has the smallest curve that is proven for the guarantee:

    - $δ(x) = (e^(r/2) − e^(x/2))²/(e^r − 1)$ for bounded range r ≤ ε, that is, for Gumbel noise;
    - $δ(x) = 1 − e^((x−ε)/2)$, the curve of Laplace noise, if ``laplace_epsilon`` is ε. If that is a part of ε, the
      distribution is composed of both kinds;
    - $δ(x) = (e^ε − e^x)/(e^ε + 1)$, the curve of randomised response on one bit, for any ε-DP mechanism.

    Args:
        guarantee: The guarantee of a private mechanism, ``mechanism.guarantee``.
        interval: The distance between the losses of the distribution, the same for all distributions to compose.
            Discretisation connects the dots: a larger interval overstates the loss, and none understates it.

    Raises:
        ValueError: If there is no guarantee, or δ > 0.

    Example:
        >>> import dpselect as dps
        >>> promise = dps.NoisyMax(epsilon=1.0, noise="gumbel").guarantee
        >>> ten = dps.accounting.to_pld(promise).self_compose(10)
        >>> round(ten.get_epsilon_for_delta(1e-6), 2)
        8.12

    References:
        Y. Zhu, J. Dong, Y.-X. Wang, Optimal accounting of differential privacy via characteristic function, 2022
        (dominating pairs); D. Durfee, R. Rogers, Practical differentially private top-k selection with
        pay-what-you-get composition, 2019 (bounded range); docs/theory/accounting.md (the other two curves).
        V. Doroshenko et al., Connect the dots, 2022 (discretisation).
    """
    check_pure(guarantee)
    width = check.positive("interval", interval)
    if guarantee.bounded_range is not None and guarantee.bounded_range <= guarantee.epsilon:
        return _distribution(_bounded_range_curve, guarantee.bounded_range, width)
    if guarantee.laplace_epsilon == 0:
        return _distribution(_pure_curve, guarantee.epsilon, width)
    distribution, jumps = _distribution(_laplace_curve, guarantee.laplace_epsilon, width), guarantee.jumping_epsilon
    return distribution if jumps == 0 else distribution.compose(_distribution(_pure_curve, jumps, width))


def _distribution(curve: Curve, loss: float, width: float) -> "PrivacyLossDistribution":
    """Return the distribution with a curve of losses up to ``loss``, by connecting the dots."""
    with from_extra("accounting"):
        from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    if loss == 0:
        return privacy_loss_distribution.identity(value_discretization_interval=width)
    last = math.ceil(loss / width)
    grid = np.arange(-last, last + 1)
    if curve is _pure_curve:
        grid = np.unique([-last, 1 - last, last - 1, last])  # it is linear in e^x between these
    losses = grid.astype(np.float64) * width
    inside = curve(loss, np.clip(losses, -loss, loss))  # 0 at the largest loss, and above it
    deltas = np.where(losses < -loss, -np.expm1(np.minimum(losses, 0)), inside)  # 1 − e^x below the smallest
    with np.errstate(over="ignore"):  # e^x for large x, a divisor
        pmf = pld_pmf.create_pmf_pessimistic_connect_dots(width, grid, deltas)
    return privacy_loss_distribution.PrivacyLossDistribution(pmf)


def check_pure(guarantee: Guarantee) -> None:
    """Refuse a guarantee that is not private, whose numbers other libraries would trust, or has a δ."""
    check_guarantees([guarantee])
    if not guarantee.is_private:
        raise ValueError(
            f"the guarantee must be a private one to be exported, but there is none: {guarantee.theorem}"
        )
    if guarantee.delta > 0:
        raise ValueError(
            "the guarantee must be pure to be exported, but it has δ > 0: (ε, δ) says too little for tight "
            "composition. Export its parts"
        )


def _pure_curve(epsilon: float, losses: NDArray[np.float64]) -> NDArray[np.float64]:
    return -np.expm1(losses - epsilon) / (1 + math.exp(-epsilon))


def _laplace_curve(epsilon: float, losses: NDArray[np.float64]) -> NDArray[np.float64]:
    return -np.expm1((losses - epsilon) / 2)


def _bounded_range_curve(width: float, losses: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.expm1((losses - width) / 2) ** 2 / -math.expm1(-width)
