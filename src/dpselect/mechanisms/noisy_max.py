"""Report noisy max, the exponential mechanism, permute-and-flip, and tilted noisy max."""

from dataclasses import KW_ONLY, dataclass
from typing import final

import dpselect.parameters as check
from dpselect.guarantees import SAME_DIRECTION, WITHIN_SENSITIVITIES, Guarantee
from dpselect.kernels.arrays import IndexArray
from dpselect.laws.noisy_max import NoisyMaxLaw, tilts
from dpselect.mechanisms.base import Mechanism, tilt_label
from dpselect.parameters import NOISES, Noise, store


@final
@dataclass(frozen=True)
class NoisyMax(Mechanism):
    r"""Report noisy max: add noise for the largest sensitivity to every score, report the largest.

    Returns $argmax_a {q_a + o_a − tΔ_a + (2Δ/ε) Z_a}$, with $Δ = max_a Δ_a$, Z independent noise of scale one, o
    public offsets, and $t = tilt · 2 log(k/β)/ε$. With ``monotone=True`` the noise has scale Δ/ε.

    - ``noise="exponential"`` is **permute-and-flip**, the most accurate of the three:
      $Pr[a] = p_a ∫₀¹ ∏_{b≠a} (1 − u p_b) du$ with $p_a = exp(−ε (max y − y_a)/(2Δ))$, $y = q + o − tΔ$.
    - ``noise="gumbel"`` is the **exponential mechanism**: $Pr[a] ∝ exp(ε y_a/(2Δ))$.
    - ``noise="laplace"`` is the textbook version of noisy max.

    A tilt other than 0 is **tilted noisy max**: sensitivities are public, so $−tΔ_a$ costs no budget. Positive
    tilts help if good candidates have small sensitivities, negative tilts if they have large ones.

    Privacy:
        ε-DP, assuming that sensitivities, offsets and the list of candidates are public. Adding public numbers
        changes no sensitivity, so the same proof covers the tilt and the offsets. With Gumbel noise also
        $ε²/8$-zCDP. Use ``monotone=True`` only if a person's data moves all scores in the same direction, as with
        counts. If all sensitivities are zero, the scores are public and the best candidate is reported; ties are
        broken uniformly.

    Cost:
        ``pmf`` and ``select`` take O(k). (Laplace noise: ``pmf`` is a quadrature of up to O(k²), one to twenty
        milliseconds for k = 500, and ``select`` has a larger constant.)

    Args:
        epsilon: The privacy budget of one pick.
        noise: ``"exponential"``, ``"laplace"`` or ``"gumbel"``.
        monotone: Whether neighbours move all scores in the same direction, which halves the noise.
        tilt: The weight of the sensitivities; any real number.
        beta: The failure probability in the tilt's scale; no effect if ``tilt`` is 0.

    Example:
        >>> import dpselect as dps
        >>> mechanism = dps.NoisyMax(epsilon=2.0)
        >>> mechanism.pmf([0.0, 1.0], 1.0).round(4)  # the lower candidate: exp(−1)/2
        array([0.1839, 0.8161])
        >>> mechanism.select([0.0, 1.0], 1.0, randomness=dps.Randomness.seeded(1)) in (0, 1)
        True

    References:
        C. Dwork, A. Roth, The Algorithmic Foundations of Differential Privacy, 2014.
        R. McKenna, D. Sheldon, Permute-and-Flip: A new mechanism for differentially private selection, 2020.
        Z. Ding et al., The Permute-and-Flip mechanism is identical to Report-Noisy-Max with exponential noise,
        2021.
    """

    takes = ("offsets",)

    epsilon: float
    _: KW_ONLY
    noise: Noise = "exponential"
    monotone: bool = False
    tilt: float = 0.0
    beta: float = 0.05

    def __post_init__(self) -> None:
        store(
            self,
            epsilon=check.positive("epsilon", self.epsilon),
            noise=check.one_of("noise", self.noise, NOISES),
            monotone=check.flag("monotone", self.monotone),
            tilt=check.real("tilt", self.tilt),
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
            neighbours=SAME_DIRECTION if self.monotone else WITHIN_SENSITIVITIES,
            theorem="noisy max over scores of bounded sensitivity plus public numbers is ε-DP",
            reference="Dwork and Roth 2014, section 3.3; Ding et al. 2021; for ρ, docs/theory/accounting.md",
        )

    @property
    def label(self) -> str:
        """Noisy max, by the customary name for its noise."""
        names = {"exponential": "noisy max", "gumbel": "exponential mechanism", "laplace": "Laplace noisy max"}
        return names.get(self.noise, f"noisy max with {self.noise} noise") + tilt_label(self.tilt)

    def law(self, sizes: IndexArray) -> NoisyMaxLaw:
        """Global normalisation: the noise is scaled to the largest sensitivity."""
        return NoisyMaxLaw(
            kind="global",
            noise=self.noise,
            rate=self.epsilon if self.monotone else self.epsilon / 2,
            tilts=tilts(sizes, self.tilt * 2 / self.epsilon, self.beta),
        )
