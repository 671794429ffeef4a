"""Mechanisms as measurements of OpenDP."""

import hashlib
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

import dpselect.parameters as check
from dpselect.accounting.distributions import check_exportable
from dpselect.candidates import Numbers, read_sensitivities
from dpselect.extras import from_extra
from dpselect.guarantees import SAME_DIRECTION, Guarantee
from dpselect.mechanisms import Mechanism

if TYPE_CHECKING:
    from collections.abc import Callable

    from opendp.mod import Measurement

__all__ = ["to_measurement"]

MeasureKind: TypeAlias = Literal["pure", "zcdp"]


def to_measurement(
    mechanism: Mechanism, sensitivities: Numbers, kind: MeasureKind = "pure", **public: Numbers
) -> "Measurement":
    """Return a private mechanism as a measurement of OpenDP, for its combinators and ``>>``.

    The measurement takes a list of scores, one for each sensitivity, and returns the index of the pick.

    *Distances* are in units of the sensitivities: $d(q, q') = max_a |q_a − q'_a|/Δ_a$, and for monotone noisy max
    $max_a (q_a − q'_a)⁺/Δ_a + max_a (q'_a − q_a)⁺/Δ_a$. The metric (``user_distance``) names the sensitivities, so
    OpenDP refuses to compose measurements with different distances. A transformation from data to scores has
    ``measurement.input_domain`` and ``measurement.input_metric`` as its output space.

    *The privacy map* is ``mechanism.guarantee.at_distance(d)``: its ε for max-divergence, its ρ for
    zero-concentrated divergence.

    OpenDP cannot check any of this and asks you to confirm that you know: ``dp.enable_features("contrib",
    "honest-but-curious")``. Each invocation draws fresh randomness.

    Args:
        mechanism: Any private mechanism.
        sensitivities: One number for each candidate.
        kind: ``"pure"`` for ``max_divergence``, ``"zcdp"`` for ``zero_concentrated_divergence``.
        **public: ``offsets=`` for mechanisms that take them.

    Raises:
        ValueError: If the mechanism is not private, or ``kind`` does not fit its guarantee.

    Example:
        >>> import opendp.prelude as dp, dpselect as dps
        >>> from dpselect import accounting
        >>> dp.enable_features("contrib", "honest-but-curious")
        >>> measurement = accounting.to_measurement(dps.GEM(epsilon=1.0), [1.0, 0.1, 0.3])
        >>> twice = dp.c.make_composition([measurement, measurement])
        >>> len(twice([0.2, 0.9, 0.5])), twice.map(1.0)
        (2, 2.0)

    References:
        docs/theory/accounting.md (the privacy map).
    """
    check.single_pick("mechanism", mechanism, "select", "guarantee")
    guarantee = mechanism.guarantee
    check_exportable(guarantee)
    check.one_of("kind", kind, ("pure", "zcdp"))
    if kind == "pure" and guarantee.delta > 0:
        raise ValueError("kind must be 'zcdp' if δ > 0: max-divergence has no δ")
    if kind == "zcdp" and guarantee.rho is None:
        raise ValueError("kind must be 'pure': this guarantee has no ρ, because δ > 0")
    if "randomness" in public:
        raise ValueError(
            "randomness must not be set: each invocation is a separate release and draws its own, so leave it out"
        )
    pick: Callable[..., Any] = mechanism.select
    widths = read_sensitivities(sensitivities)  # refuses bad sensitivities now, not at the first release
    if widths.ndim != 1:
        raise ValueError("sensitivities must be one number for each candidate")
    with from_extra("opendp"):
        import opendp.prelude as dp

    return dp.m.make_user_measurement(
        input_domain=dp.vector_domain(dp.atom_domain(T=float, nan=False), size=widths.size),
        input_metric=dp.user_distance(_metric_name(guarantee, widths)),
        output_measure=dp.max_divergence() if kind == "pure" else dp.zero_concentrated_divergence(),
        function=lambda scores: int(pick(scores, widths, **public)),
        privacy_map=lambda distance: _loss(guarantee.at_distance(distance), kind),
        TO="usize",
    )


def _loss(guarantee: Guarantee, kind: MeasureKind) -> float:
    """Return the number of the measure, never another in its place."""
    if kind == "pure":
        return guarantee.epsilon
    if guarantee.rho is None:
        raise ValueError("kind must be 'pure' at this distance: there is no ρ for it")
    return guarantee.rho


def _metric_name(guarantee: Guarantee, widths: NDArray[np.float64]) -> str:
    """Return a name that two measurements share only if they have the same distances."""
    digest = hashlib.blake2b(widths.astype("<f8").tobytes(), digest_size=16).hexdigest()
    formula = "max |q_a − q'_a|/Δ_a"
    if guarantee.neighbours == SAME_DIRECTION:
        formula = "max (q_a − q'_a)⁺/Δ_a + max (q'_a − q_a)⁺/Δ_a"
    return f"{formula} over {widths.size} candidates, sensitivities {digest}"
