"""Mechanisms **without a guarantee**, which show why the private ones are needed.

They are in no registry, and their ``guarantee`` has ε = ∞. Never use them on private data.
"""

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import final

import dpselect.parameters as check
from dpselect.guarantees import Guarantee
from dpselect.kernels.arrays import IndexArray
from dpselect.laws.noisy_argmax import NoisyArgmaxLaw
from dpselect.mechanisms.base import Mechanism
from dpselect.parameters import Noise, store

__all__ = ["NaiveHeterogeneousNoisyMax"]


SCALES: dict[Noise, int] = {"exponential": 2, "laplace": 1}
"""εb_a/Δ_a of the naive noisy max, by noise."""


@final
@dataclass(frozen=True)
class NaiveHeterogeneousNoisyMax(Mechanism):
    r"""**Not private.** Noisy max with noise in proportion to each candidate's own sensitivity (RNMH).

    Reports $argmax_a {q_a + b_a Z_a}$, $Pr[a] = ∫ f_a(x) ∏_{b≠a} F_b(x) dx$, with $b_a = 2Δ_a/ε$ for exponential
    noise and $b_a = Δ_a/ε$ for Laplace noise.

    Privacy:
        None. Take two candidates with $Δ = (0, 1)$. At $q = (0, ½)$ the first is never picked; at the neighbouring
        (0, −½) it is picked with probability $1 − exp(−ε/4)$. With Laplace noise the loss reaches (k−1)ε.
        :class:`dpselect.HeterogeneousNoisyMax` is the private alternative.

    Cost:
        ``select`` takes O(k), ``pmf`` is a quadrature of O(k²), right to 1e-9 of probabilities down to 1e-250.

    Example:
        >>> import dpselect as dps
        >>> naive = dps.unsafe.NaiveHeterogeneousNoisyMax(epsilon=1.0)
        >>> naive.pmf([0.0, 0.5], [0.0, 1.0]), naive.pmf([0.0, -0.5], [0.0, 1.0]).round(4)
        (array([0., 1.]), array([0.2212, 0.7788]))
        >>> naive.guarantee.epsilon
        inf

    References:
        D. Antonova et al., Private selection with heterogeneous sensitivities, 2025, section III.A.
    """

    label = "naive noisy max (not private)"

    epsilon: float
    _: KW_ONLY
    noise: Noise = "exponential"

    def __post_init__(self) -> None:
        store(
            self,
            epsilon=check.positive("epsilon", self.epsilon),
            noise=check.one_of("noise", self.noise, tuple(SCALES)),
        )

    @property
    def guarantee(self) -> Guarantee:
        """None: ε = ∞."""
        return Guarantee(
            epsilon=math.inf,
            theorem="not private: a candidate can become impossible on a neighbouring dataset",
            reference="Antonova et al. 2025, counterexamples",
        )

    def law(self, sizes: IndexArray) -> NoisyArgmaxLaw:  # noqa: ARG002 - the same for all sizes
        """Noise in proportion to each candidate's own sensitivity."""
        return NoisyArgmaxLaw(self.noise, SCALES[self.noise] / Fraction(self.epsilon))
