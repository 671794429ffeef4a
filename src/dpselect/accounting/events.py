"""Guarantees for dp_accounting: as events, and as privacy loss distributions."""

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

import dpselect.parameters as check
from dpselect.extras import from_extra
from dpselect.guarantees import Guarantee, check_guarantees

if TYPE_CHECKING:
    from dp_accounting import DpEvent
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

__all__ = ["check_exportable", "to_event", "to_pld"]

EventKind: TypeAlias = Literal["pure", "zcdp"]
LossKind: TypeAlias = Literal["pure", "bounded-range"]

NO_PURE = (
    "the guarantee must be pure to be exported, not one with δ > 0: there is no event for (ε, δ), and such a pair "
    "says too little for tight composition. Export its parts"
)


def to_event(guarantee: Guarantee, kind: EventKind) -> "DpEvent":
    """Return a guarantee as an event of dp_accounting, to be composed with any others in its accountants.

    - ``"pure"``: ``DiscreteLaplaceDpEvent(ε, sensitivity=1)``, for ``PLDAccountant``. Its privacy loss is ε with
      probability e^ε/(1 + e^ε) and −ε otherwise: that of randomised response on one bit, which dominates *every*
      ε-DP mechanism. No event of dp_accounting says "ε-DP" in so many words. Two that look right are not used:
      ``LaplaceDpEvent(1/ε)`` loses less than ε-DP mechanisms may, and ``RandomizedResponseDpEvent`` means half
      the loss for neighbours of kind ``REPLACE_SPECIAL``, and is counted once by ``PLDAccountant`` however often
      it is composed (dp_accounting 0.6).
    - ``"zcdp"``: ``ZCDpEvent(ρ)``, for ``RdpAccountant``. The better of the two for many picks with Gumbel noise.

    Both mean the same under every ``NeighboringRelation`` that the accountants accept them for; name the one that
    the sensitivities were computed for. A pick that ignores the scores is a ``NoOpDpEvent``.

    Args:
        guarantee: That of a private mechanism, ``mechanism.guarantee``.
        kind: Which of its numbers to export.

    Raises:
        ValueError: If there is no guarantee to export, δ > 0, or ρ is unknown.

    Example:
        >>> import dpselect as dps
        >>> from dpselect import accounting
        >>> from dp_accounting.pld import PLDAccountant
        >>> event = accounting.to_event(dps.GEM(epsilon=0.1).guarantee, "pure")
        >>> round(PLDAccountant().compose(event, 100).get_epsilon(1e-6), 2)
        4.77

    References:
        P. Kairouz, S. Oh, P. Viswanath, The composition theorem for differential privacy, 2015, theorem 3.2.
    """
    check_exportable(guarantee)
    check.one_of("kind", kind, ("pure", "zcdp"))
    with from_extra("accounting"):
        from dp_accounting import dp_event

    if guarantee.epsilon == 0:
        return dp_event.NoOpDpEvent()
    if kind == "pure":
        if guarantee.delta > 0:
            raise ValueError(NO_PURE)
        return dp_event.DiscreteLaplaceDpEvent(noise_parameter=guarantee.epsilon, sensitivity=1)
    if guarantee.rho is None:
        raise ValueError("kind must be 'pure': no ρ is proven, and none follows from ε where δ > 0")
    return dp_event.ZCDpEvent(rho=guarantee.rho)


def to_pld(guarantee: Guarantee, kind: LossKind, *, interval: float = 1e-4) -> "PrivacyLossDistribution":
    """Return a privacy loss distribution of dp_accounting that dominates a guarantee.

    Whatever is composed with it (``compose``, ``self_compose``), adaptively or not, then has a valid δ(ε).

    - ``"pure"``: δ(x) = (e^ε − e^x)/(e^ε + 1), the curve of randomised response on one bit, for any ε-DP mechanism.
    - ``"bounded-range"``: δ(x) = (e^(r/2) − e^(x/2))²/(e^r − 1), for mechanisms of bounded range r, that is,
      with Gumbel noise. Where x = 0, about half of the other.

    Args:
        guarantee: That of a private mechanism, ``mechanism.guarantee``.
        kind: Which of its numbers to use.
        interval: The distance between the losses of the distribution, the same for all that are to be composed.
            Discretised by connecting the dots: larger ones overstate the loss, none understates it.

    Raises:
        ValueError: If there is no guarantee, δ > 0, or no bounded range is proven.

    Example:
        >>> import dpselect as dps
        >>> from dpselect import accounting
        >>> promise = dps.NoisyMax(epsilon=1.0, noise="gumbel").guarantee
        >>> ten = accounting.to_pld(promise, "bounded-range").self_compose(10)
        >>> round(ten.get_epsilon_for_delta(1e-6), 2)
        8.12

    References:
        Y. Zhu, J. Dong, Y.-X. Wang, Optimal accounting of differential privacy via characteristic function, 2022
        (dominating pairs); D. Durfee, R. Rogers, Practical differentially private top-k selection with
        pay-what-you-get composition, 2019 (bounded range); docs/theory/accounting.md (the second curve).
        V. Doroshenko et al., Connect the dots, 2022 (discretisation).
    """
    check_exportable(guarantee)
    width = check.positive("interval", interval)
    check.one_of("kind", kind, ("pure", "bounded-range"))
    if guarantee.delta > 0:
        raise ValueError(NO_PURE)
    if kind == "bounded-range" and guarantee.bounded_range is None:
        raise ValueError(
            "kind must be 'pure': no bounded range is proven for this guarantee. Gumbel noise has one; with "
            "exponential or Laplace noise losses may spread further than ε, and ranges of parts do not add up"
        )
    with from_extra("accounting"):
        from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    loss = guarantee.epsilon if kind == "pure" else guarantee.bounded_range or 0.0
    if loss == 0:
        return privacy_loss_distribution.identity(value_discretization_interval=width)
    last = math.ceil(loss / width)
    if kind == "pure":
        grid = np.unique([-last, 1 - last, last - 1, last])  # the curve is straight in e^x: nothing to add between
        deltas = _pure_curve(loss, grid.astype(np.float64) * width)
    else:
        grid = np.arange(-last, last + 1)
        deltas = _bounded_range_curve(loss, grid.astype(np.float64) * width)
    with np.errstate(over="ignore"):  # of e^x for large x, which is then divided by
        pmf = pld_pmf.create_pmf_pessimistic_connect_dots(width, grid, deltas)
    return privacy_loss_distribution.PrivacyLossDistribution(pmf)


def check_exportable(guarantee: Guarantee) -> None:
    """Refuse to export what is not private: other libraries would take its numbers for a promise."""
    check_guarantees([guarantee])
    if not guarantee.is_private:
        raise ValueError(
            f"the guarantee must be a private one to be exported, and this is none: {guarantee.theorem}"
        )


def _pure_curve(epsilon: float, losses: NDArray[np.float64]) -> NDArray[np.float64]:
    inside = np.clip(losses, -epsilon, epsilon)
    curve = -np.expm1(inside - epsilon) / (1 + math.exp(-epsilon))
    return _with_tails(curve, epsilon, losses)


def _bounded_range_curve(width: float, losses: NDArray[np.float64]) -> NDArray[np.float64]:
    inside = np.clip(losses, -width, width)
    curve = np.expm1((inside - width) / 2) ** 2 / -math.expm1(-width)
    return _with_tails(curve, width, losses)


def _with_tails(curve: NDArray[np.float64], largest: float, losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return δ(x) = 1 − e^x below the smallest loss, and the curve elsewhere; it is 0 from the largest on."""
    return np.where(losses < -largest, -np.expm1(np.minimum(losses, 0)), curve)
