"""Report noisy max, the exponential mechanism, permute-and-flip, and tilted noisy max."""

from dataclasses import dataclass
from typing import Any, final

import dpselect.parameters as check
from dpselect.candidates import Batch, Numbers, read_batch
from dpselect.guarantees import SAME_DIRECTION, WITHIN_SENSITIVITIES, Guarantee
from dpselect.mechanisms.composition import Composition, tilts
from dpselect.parameters import Noise, store
from dpselect.randomness import Randomness

__all__ = ["NoisyMax"]


@final
@dataclass(frozen=True, kw_only=True)
class NoisyMax:
    r"""Report noisy max: add noise for the largest sensitivity to every score, report the largest.

    Returns argmax_a {q_a + o_a − tΔ_a + (2Δ/ε) Z_a}, with Δ = max_a Δ_a, Z independent noise of scale one,
    o public offsets, and t = tilt · 2 log(k/β)/ε. With ``monotone=True`` the noise's scale is Δ/ε.

    - ``noise="exponential"`` is **permute-and-flip**, and the best of the three:
      Pr[a] = p_a ∫₀¹ ∏_{b≠a} (1 − u p_b) du with p_a = exp(−ε (max y − y_a)/(2Δ)), y = q + o − tΔ.
    - ``noise="gumbel"`` is the **exponential mechanism**: Pr[a] ∝ exp(ε y_a/(2Δ)).
    - ``noise="laplace"`` is the textbook's noisy max.

    ``tilt`` ≠ 0 is **tilted noisy max**: sensitivities are public, so −tΔ_a is free. Positive tilts help if
    good candidates have small sensitivities, negative tilts if they have large ones.

    Privacy:
        ε-DP, assuming that sensitivities, offsets and the list of candidates are public. Adding public
        numbers changes no sensitivity, so the tilt and the offsets are covered by the same proof. With
        Gumbel noise also ε²/8-zCDP. ``monotone=True`` is only right if a person's data moves all scores in
        the same direction, as with counts. If all sensitivities are zero the scores are public, and the
        best candidate is reported (one of them at random, if several tie).

    Cost:
        ``pmf`` and ``select`` take O(k). (Laplace noise: ``pmf`` is a quadrature of up to O(k²), one to twenty
        milliseconds for k = 500, and ``select`` has a larger constant.)

    Args:
        epsilon: The privacy budget of one pick.
        noise: ``"exponential"``, ``"laplace"`` or ``"gumbel"``.
        monotone: Whether neighbours move all scores the same way, which halves the noise.
        tilt: The weight of the sensitivities; any real number.
        beta: The failure probability in the tilt's scale; without effect if ``tilt`` is 0.

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
        Z. Ding et al., The Permute-and-Flip mechanism is identical to Report-Noisy-Max with exponential
        noise, 2021.
    """

    epsilon: float
    noise: Noise = "exponential"
    monotone: bool = False
    tilt: float = 0.0
    beta: float = 0.05

    def __post_init__(self) -> None:
        store(
            self,
            epsilon=check.positive("epsilon", self.epsilon),
            noise=check.noise("noise", self.noise),
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
            neighbours=SAME_DIRECTION if self.monotone else WITHIN_SENSITIVITIES,
            theorem="noisy max over scores of bounded sensitivity plus public numbers is ε-DP",
            reference="Dwork and Roth 2014, section 3.3; Ding et al. 2021; for ρ, Cesar and Rogers 2021",
        )

    def pmf(self, scores: Numbers, sensitivities: Numbers, *, offsets: Numbers | None = None) -> Any:  # noqa: ANN401
        """Return the exact probability of each candidate. Not private: it reveals scores."""
        batch = read_batch(scores, sensitivities, offsets=offsets)
        return batch.restore_candidates(self._composition(batch).pmf(batch))

    def select(
        self,
        scores: Numbers,
        sensitivities: Numbers,
        *,
        offsets: Numbers | None = None,
        randomness: Randomness | None = None,
        fixed_work: bool = False,
    ) -> Any:  # noqa: ANN401
        """Return the index of one candidate for each row, drawn privately.

        ``fixed_work=True`` does the same work whatever the scores, so that the time a pick takes tells less about
        them: every candidate draws its random numbers, and nothing ends early. It is slower (docs/benchmarks.md),
        something remains (SECURITY.md), and it is not for Gumbel noise. A key and a unit give another pick than
        without it, so one release must be computed with one of the two settings throughout.
        """
        if check.flag("fixed_work", fixed_work) and self.noise == "gumbel":
            raise ValueError("fixed_work must be False for noise='gumbel', which is drawn by rejection")
        batch = read_batch(scores, sensitivities, offsets=offsets, finite=False)
        picks = self._composition(batch).select(batch, randomness, fixed_work=fixed_work)
        return batch.restore_rows(picks)

    def _composition(self, batch: Batch) -> Composition:
        return Composition(
            kind="global",
            noise=self.noise,
            budget=self.epsilon if self.monotone else self.epsilon / 2,
            tilts=tilts(batch, self.tilt * 2 / self.epsilon, self.beta),
        )
