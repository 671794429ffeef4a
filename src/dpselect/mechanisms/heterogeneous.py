"""Heterogeneous noisy max: noise that fits each candidate."""

from dataclasses import KW_ONLY, dataclass
from typing import final

import dpselect.parameters as check
from dpselect.guarantees import WITHIN_SENSITIVITIES, Guarantee
from dpselect.kernels.arrays import IndexArray
from dpselect.laws import Law
from dpselect.laws.heterogeneous import HeterogeneousLaw, KeptLaw
from dpselect.laws.noisy_max import tilts
from dpselect.mechanisms.base import Mechanism, tilt_label
from dpselect.parameters import store


@final
@dataclass(frozen=True)
class HeterogeneousNoisyMax(Mechanism):
    r"""The mechanism to use without prior knowledge: noisy max with noise that fits each candidate.

    Returns $argmax_a {q_a + o_a − tΔ_a + n_a + m_a Z_a}$ with

    - $m_a = (Δ_a + max_{b≠a} Δ_b)/ε$: a candidate's own sensitivity and that of its most sensitive rival;
    - $Z_a$ independent exponential noise of mean one;
    - $n_a$ *neutral offsets*: with equal scores, every candidate is picked with probability 1/k;
    - $o_a$ public offsets that you may pass, and $t = tilt · 2 log(k/β)/ε$.

    $Pr[a] = ∫₀^∞ p_a e^(−s/m_a)/m_a ∏_{b≠a} (1 − p_b e^(−s/m_b)) ds$,
    $p_a = exp(−(max y − y_a)/m_a)$, where $y_a$ is everything but the noise.

    If all sensitivities are equal, it is :class:`NoisyMax`. Otherwise it has less noise. In every scenario of the
    paper its mean squared error is below that of noisy max, at every ε; docs/theory/heterogeneous-noisy-max.md says
    where it loses.

    ``keep=(low, high)`` lets only those candidates compete whose sensitivity lies between these two quantiles of
    the row's sensitivities, ends included. The others are never picked and do not count for the noise.

    Privacy:
        ε-DP, assuming that sensitivities, offsets and the list of candidates are public. Fix the noise of all
        others. Candidate a wins if $m_a Z_a$ exceeds a threshold. Between neighbours the threshold moves by at most
        $Δ_a + max_{b≠a} Δ_b = ε m_a$, and the survival function of $m_a Z_a$ changes by at most a factor $e^ε$.
        Neutral offsets, tilt and ``keep`` depend on sensitivities alone, so they cost nothing. If all sensitivities
        are zero, the scores are public and the best candidate is reported; ties are broken uniformly.

    Cost:
        ``select`` takes O(k), two to three times as long as noisy max. Rows with sensitivities of their own solve
        for their neutral offsets, some microseconds each. ``pmf`` takes O(k).

    Args:
        epsilon: The privacy budget of one pick.
        keep: The lowest and highest quantile of the sensitivities that may compete. At least one candidate is kept.
        tilt: The weight of the sensitivities; any real number.
        beta: The failure probability in the tilt's scale; no effect if ``tilt`` is 0.
        neutral: Whether to add neutral offsets. Without them, sensitive candidates are picked more often.

    Example:
        >>> import dpselect as dps
        >>> mechanism = dps.HeterogeneousNoisyMax(epsilon=1.0)
        >>> mechanism.pmf([0.0, 0.0, 0.0], [0.1, 0.5, 1.0]).round(6)  # neutral
        array([0.333333, 0.333333, 0.333333])
        >>> scores, sensitivities = [8.0, 5.0, 2.0], [0.1, 0.5, 1.0]
        >>> mechanism.pmf(scores, sensitivities).round(3)
        array([0.929, 0.063, 0.008])
        >>> dps.NoisyMax(epsilon=1.0).pmf(scores, sensitivities).round(3)
        array([0.867, 0.11 , 0.023])

    References:
        docs/theory/heterogeneous-noisy-max.md.
    """

    takes = ("offsets",)

    epsilon: float
    _: KW_ONLY
    keep: tuple[float, float] = (0.0, 1.0)
    tilt: float = 0.0
    beta: float = 0.05
    neutral: bool = True

    def __post_init__(self) -> None:
        store(
            self,
            epsilon=check.positive("epsilon", self.epsilon),
            keep=check.interval("keep", self.keep),
            tilt=check.real("tilt", self.tilt),
            beta=check.inside_unit_interval("beta", self.beta),
            neutral=check.flag("neutral", self.neutral),
        )

    @property
    def guarantee(self) -> Guarantee:
        """ε-DP, in proportion to the distance of the scores."""
        return Guarantee(
            epsilon=self.epsilon,
            flat_epsilon=0.0,
            laplace_epsilon=self.epsilon,
            neighbours=WITHIN_SENSITIVITIES,
            theorem="noisy max with noise of scale (Δ_a + max_{b≠a} Δ_b)/ε plus public numbers is ε-DP",
            reference="docs/theory/heterogeneous-noisy-max.md",
        )

    @property
    def label(self) -> str:
        """Heterogeneous noisy max, with what is kept and the tilt."""
        low, high = self.keep
        kept = "" if self.keep == (0.0, 1.0) else f", keep {low:.4g} to {high:.4g}"
        biased = "" if self.neutral else ", not neutral"
        return f"heterogeneous noisy max{kept}{tilt_label(self.tilt)}{biased}"

    def law(self, sizes: IndexArray) -> Law:
        """Noise that fits each of the kept candidates."""
        slopes = tilts(sizes, self.tilt * 2 / self.epsilon, self.beta)
        law = HeterogeneousLaw(self.epsilon, slopes, self.neutral)
        return law if self.keep == (0.0, 1.0) else KeptLaw(law, *self.keep)
