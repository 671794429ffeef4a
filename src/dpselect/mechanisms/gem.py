"""The generalised exponential mechanism, its tilted family, and modified GEM."""

from dataclasses import KW_ONLY, dataclass
from typing import final

import dpselect.parameters as check
from dpselect.guarantees import Guarantee
from dpselect.kernels.arrays import FloatArray, IndexArray
from dpselect.laws.noisy_max import NoisyMaxLaw, tilts
from dpselect.mechanisms.base import Mechanism, tilt_label
from dpselect.parameters import NOISES, Noise, store


@final
@dataclass(frozen=True)
class GEM(Mechanism):
    r"""Generalised exponential mechanism: noisy max over scores that compare candidates two by two.

    Reports $argmax_a {q'_a + (2/ε) Z_a}$ with Z noise of scale one and the GEM score

    $$q'_a = min_b ((q_a + o_a − tΔ_a) − (q_b + o_b − tΔ_b)) / (Δ_a + Δ_b)$$

    with $t = tilt · 2 log(k/β)/ε$.

    Tilt +1 is GEM as published. It favours candidates of small sensitivity and does well where good candidates
    have small ones. Tilt −1 is :class:`ModifiedGEM`, and tilt 0 is a compromise. Every real tilt is equally
    private. Where scores and sensitivities correlate the wrong way, GEM does worse than a uniform random choice.

    Privacy:
        ε-DP for every tilt, assuming public sensitivities, offsets and candidates: $q'_a$ has sensitivity at most
        1, since each quotient's numerator moves by at most $Δ_a + Δ_b$ between neighbours. With Gumbel noise also
        $ε²/8$-zCDP. Candidates of sensitivity zero have public scores: among them only the best can be picked.

    Cost:
        O(k log k): the minimum over b is a steepest slope from an outside point to the points $(Δ_b, q_b)$, found
        on their upper convex hull. The pmf costs the same as noisy max's.

    Args:
        epsilon: The privacy budget of one pick.
        beta: The failure probability in the utility bound that sets t.
        tilt: Scales t; any real number.
        noise: ``"exponential"``, ``"laplace"`` or ``"gumbel"``.

    Example:
        >>> import dpselect as dps
        >>> scores, sensitivities = [1.0, 0.9, 0.0], [5.0, 0.1, 0.1]
        >>> dps.GEM(epsilon=1.0).pmf(scores, sensitivities).round(3)  # the second has a small sensitivity
        array([0.01 , 0.938, 0.052])

    References:
        S. Raskhodnikova, A. Smith, Efficient Lipschitz extensions for high-dimensional graph statistics and node
        private degree distributions, 2015.
        D. Antonova et al., Private selection with heterogeneous sensitivities, 2025 (modified GEM).
    """

    takes = ("offsets",)

    epsilon: float
    _: KW_ONLY
    beta: float = 0.05
    tilt: float = 1.0
    noise: Noise = "exponential"

    def __post_init__(self) -> None:
        store(
            self,
            epsilon=check.positive("epsilon", self.epsilon),
            beta=check.inside_unit_interval("beta", self.beta),
            tilt=check.real("tilt", self.tilt),
            noise=check.one_of("noise", self.noise, NOISES),
        )

    @property
    def guarantee(self) -> Guarantee:
        """ε-DP for every tilt."""
        return Guarantee(
            epsilon=self.epsilon,
            bounded_range=self.epsilon if self.noise == "gumbel" else None,
            flat_epsilon=0.0,
            laplace_epsilon=self.epsilon,
            theorem="the GEM score has sensitivity at most 1 for every t, and noisy max over it is ε-DP",
            reference="Raskhodnikova and Smith 2015; for ρ, docs/theory/accounting.md",
        )

    @property
    def label(self) -> str:
        """GEM, modified GEM, or GEM with its tilt."""
        return {1.0: "GEM", -1.0: "modified GEM", 0.0: "GEM, tilt 0"}.get(self.tilt, "GEM" + tilt_label(self.tilt))

    def law(self, sizes: IndexArray) -> NoisyMaxLaw:
        """Pairwise normalisation: the GEM score."""
        return gem_law(sizes, self.epsilon, self.beta, self.tilt, self.noise)


def ModifiedGEM(epsilon: float, *, beta: float = 0.05, noise: Noise = "exponential") -> GEM:  # noqa: N802 - a mechanism's name
    r"""Modified GEM: :class:`GEM` with tilt −1, which favours candidates of large sensitivity.

    It does well where good candidates have large sensitivities, as popular items do. Where they have small ones, it
    does worse than a uniform random choice.

    Privacy:
        ε-DP, as for GEM.

    Cost:
        The same as GEM.

    Args:
        epsilon: The privacy budget of one pick.
        beta: The failure probability in $t = −2 log(k/β)/ε$.
        noise: ``"exponential"``, ``"laplace"`` or ``"gumbel"``.

    Example:
        >>> import dpselect as dps
        >>> scores, sensitivities = [1.0, 0.0, 0.0], [1.8, 1.0, 1.0]
        >>> dps.ModifiedGEM(epsilon=1.0).pmf(scores, sensitivities).round(3)
        array([0.763, 0.119, 0.119])

    References:
        D. Antonova et al., Private selection with heterogeneous sensitivities, 2025.
    """
    return GEM(epsilon=epsilon, beta=beta, tilt=-1.0, noise=noise)


def gem_law(
    sizes: IndexArray, epsilon: float, beta: float, tilt: float | FloatArray, noise: Noise = "exponential"
) -> NoisyMaxLaw:
    """Return GEM's law; ``tilt`` may differ between rows."""
    return NoisyMaxLaw(kind="pairwise", noise=noise, rate=epsilon / 2, tilts=tilts(sizes, tilt * 2 / epsilon, beta))
