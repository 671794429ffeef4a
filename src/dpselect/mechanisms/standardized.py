"""Standardized noisy max: private, with noise in proportion to each candidate's own sensitivity."""

from dataclasses import KW_ONLY, dataclass
from typing import final

import dpselect.parameters as check
from dpselect.guarantees import Guarantee
from dpselect.kernels.arrays import IndexArray
from dpselect.laws.composition import Composition, tilts
from dpselect.mechanisms.base import Mechanism, tilt_label
from dpselect.parameters import Noise, store

__all__ = ["StandardizedNoisyMax"]


@final
@dataclass(frozen=True)
class StandardizedNoisyMax(Mechanism):
    r"""Noisy max over scores measured from public anchors, in units of their own sensitivities.

    Reports $argmax_a {(ε/2)(q_a − c_a)/Δ_a + b_a + Z_a}$ with Z noise of scale one, public anchors c (passed as
    ``anchors=``, default 0), and public offsets

    $$b_a = log(k/β) · (w c_a / max |c| − tilt · Δ_a / max Δ)$$

    with w the ``anchor_weight``.

    Every candidate's noise is in proportion to its own sensitivity, as in the naive heterogeneous noisy max, which
    is not private. Standardized noisy max is private because it rescales the whole score, not only the noise. It
    answers "which candidate is furthest above its anchor, in units of its sensitivity?", so anchors matter.
    Midpoints of public clipping bounds are a natural choice.

    Privacy:
        ε-DP, assuming public sensitivities, anchors and candidates: $(ε/2)(q_a − c_a)/Δ_a$ moves by at most ε/2
        between neighbours, for every a, and the rest is public. With Gumbel noise also $ε²/8$-zCDP. A sensitivity
        of zero is the limit of a small one: then $q_a − c_a$ is public, and only the largest of these levels (0 for
        all candidates of positive sensitivity) can be picked.

    Cost:
        O(k). (Laplace noise: ``pmf`` is a quadrature of up to O(k²), and ``select`` has a larger constant.)

    Args:
        epsilon: The privacy budget of one pick.
        noise: ``"exponential"``, ``"laplace"`` or ``"gumbel"``.
        tilt: The weight of the sensitivities in b.
        anchor_weight: The weight of the anchors in b; needs ``anchors=`` if it is not 0.
        beta: The failure probability in the scale of both weights.

    Example:
        >>> import dpselect as dps
        >>> mechanism = dps.StandardizedNoisyMax(epsilon=2.0)
        >>> mechanism.pmf([5.0, 51.0], [1.0, 10.0], anchors=[4.0, 50.0]).round(3)
        array([0.797, 0.203])

    References:
        The proof is the one for noisy max; see docs/theory/standardized-noisy-max.md.
    """

    takes = ("anchors",)

    epsilon: float
    _: KW_ONLY
    noise: Noise = "exponential"
    tilt: float = 0.0
    anchor_weight: float = 0.0
    beta: float = 0.05

    def __post_init__(self) -> None:
        store(
            self,
            epsilon=check.positive("epsilon", self.epsilon),
            noise=check.noise("noise", self.noise),
            tilt=check.real("tilt", self.tilt),
            anchor_weight=check.real("anchor_weight", self.anchor_weight),
            beta=check.inside_unit_interval("beta", self.beta),
        )

    @property
    def guarantee(self) -> Guarantee:
        """ε-DP; with Gumbel noise the sharper zCDP bound of bounded range."""
        return Guarantee(
            epsilon=self.epsilon,
            bounded_range=self.epsilon if self.noise == "gumbel" else None,
            flat_epsilon=0.0,
            laplace_epsilon=self.epsilon,
            theorem="each standardized score moves by at most ε/2 between neighbours; noisy max is then ε-DP",
            reference="docs/theory/standardized-noisy-max.md; for ρ, docs/theory/accounting.md",
        )

    @property
    def label(self) -> str:
        """Standardized noisy max, with its tilt and the weight of its anchors."""
        weight = f", anchor weight {self.anchor_weight:g}" if self.anchor_weight else ""
        return f"standardized noisy max{tilt_label(self.tilt)}{weight}"

    @property
    def needs(self) -> tuple[str, ...]:
        """Anchors, if their weight is not 0."""
        return ("anchors",) if self.anchor_weight != 0 else ()

    def law(self, sizes: IndexArray) -> Composition:
        """Individual normalisation: each score in units of its own sensitivity."""
        return Composition(
            kind="individual",
            noise=self.noise,
            budget=self.epsilon / 2,
            tilts=tilts(sizes, self.tilt, self.beta),
            anchor_weights=tilts(sizes, self.anchor_weight, self.beta),
        )
