"""Standardized noisy max: noise in proportion to each candidate's own sensitivity, and private."""

from dataclasses import dataclass
from typing import Any, final

import dpselect.parameters as check
from dpselect.candidates import Batch, Numbers, read_batch
from dpselect.guarantees import Guarantee
from dpselect.mechanisms.composition import Composition, tilts
from dpselect.parameters import Noise, store
from dpselect.randomness import Randomness

__all__ = ["StandardizedNoisyMax"]


@final
@dataclass(frozen=True, kw_only=True)
class StandardizedNoisyMax:
    r"""Noisy max over scores measured from public anchors, in units of their own sensitivities.

    Reports argmax_a {(ε/2)(q_a − c_a)/Δ_a + b_a + Z_a} with Z noise of scale one, public anchors c (given as
    ``anchors=`` with the call, 0 if absent), and public offsets

        b_a = −tilt · log(k/β) · Δ_a / max Δ + anchor_weight · log(k/β) · c_a / max|c|.

    Every candidate's noise is in proportion to its own sensitivity, as in the naive heterogeneous noisy max,
    which is not private. What makes this one private is that whole comparisons are rescaled, not just the
    noise. It answers "which candidate is furthest above its anchor, in units of its sensitivity?", so
    anchors matter: midpoints of public clipping bounds are a natural choice.

    Privacy:
        ε-DP, assuming public sensitivities, anchors and candidates: (ε/2)(q_a − c_a)/Δ_a moves by at most
        ε/2 between neighbours, whatever a, and the rest is public. With Gumbel noise also ε²/8-zCDP. A
        sensitivity of zero is read as the limit of a small one: then q_a − c_a is public, and only
        the largest of these levels (0 for all candidates of positive sensitivity) can be picked.

    Cost:
        O(k). (Laplace noise: ``pmf`` is a quadrature of up to O(k²), and ``select`` has a larger constant.)

    Args:
        epsilon: The privacy budget of one pick.
        noise: ``"exponential"``, ``"laplace"`` or ``"gumbel"``.
        tilt: The weight of the sensitivities in b.
        anchor_weight: The weight of the anchors in b; needs ``anchors=`` if it is not 0.
        beta: The failure probability in the scale of both.

    Example:
        >>> import dpselect as dps
        >>> mechanism = dps.StandardizedNoisyMax(epsilon=2.0)
        >>> mechanism.pmf([5.0, 51.0], [1.0, 10.0], anchors=[4.0, 50.0]).round(3)
        array([0.797, 0.203])

    References:
        The proof is the one for noisy max; see docs/theory/standardized-noisy-max.md.
    """

    epsilon: float
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
            theorem="each standardized score moves by at most ε/2 between neighbours; noisy max is then ε-DP",
            reference="docs/theory/standardized-noisy-max.md; for ρ, Cesar and Rogers 2021",
        )

    def pmf(self, scores: Numbers, sensitivities: Numbers, *, anchors: Numbers | None = None) -> Any:  # noqa: ANN401
        """Return the exact probability of each candidate. Not private: it reveals scores."""
        batch = self._read(scores, sensitivities, anchors)
        return batch.restore_candidates(self._composition(batch).pmf(batch))

    def select(
        self,
        scores: Numbers,
        sensitivities: Numbers,
        *,
        anchors: Numbers | None = None,
        randomness: Randomness | None = None,
    ) -> Any:  # noqa: ANN401
        """Return the index of one candidate for each row, drawn privately."""
        batch = self._read(scores, sensitivities, anchors, finite=False)
        return batch.restore_rows(self._composition(batch).select(batch, randomness))

    def _read(
        self, scores: Numbers, sensitivities: Numbers, anchors: Numbers | None, *, finite: bool = True
    ) -> Batch:
        if anchors is None and self.anchor_weight != 0:
            raise ValueError("anchors must be given where anchor_weight is not 0")
        return read_batch(scores, sensitivities, finite=finite, anchors=anchors)

    def _composition(self, batch: Batch) -> Composition:
        return Composition(
            kind="individual",
            noise=self.noise,
            budget=self.epsilon / 2,
            tilts=tilts(batch, self.tilt, self.beta),
            anchor_weights=tilts(batch, self.anchor_weight, self.beta),
        )
