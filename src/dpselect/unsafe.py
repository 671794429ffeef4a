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
from dpselect.laws.random_stopping import RandomStoppingLaw
from dpselect.mechanisms.base import Mechanism
from dpselect.parameters import Noise, store

__all__ = ["ExponentialRandomStopping", "NaiveHeterogeneousNoisyMax"]


SCALES: dict[Noise, int] = {"exponential": 2, "gumbel": 2, "laplace": 1}
"""εb_a/Δ_a of the naive noisy max, by noise."""


@final
@dataclass(frozen=True)
class NaiveHeterogeneousNoisyMax(Mechanism):
    r"""**Not private.** Noisy max with noise in proportion to each candidate's own sensitivity (RNMH).

    Reports argmax_a {q_a + b_a Z_a}, Pr[a] = ∫ f_a(x) ∏_{b≠a} F_b(x) dx, with b_a = 2Δ_a/ε for exponential and
    Gumbel noise and b_a = Δ_a/ε for Laplace noise.

    Privacy:
        None. Take two candidates with Δ = (0, 1). At q = (0, ½) the first is never picked; at the neighbouring (0,
        −½) it is picked with probability 1 − exp(−ε/4). With Laplace noise the loss reaches (k−1)ε.
        :class:`dpselect.StandardizedNoisyMax` is the private alternative.

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
        return _no_guarantee("not private: a candidate can become impossible on a neighbouring dataset")

    @property
    def label(self) -> str:
        """The naive heterogeneous noisy max."""
        return "naive heterogeneous noisy max (not private)"

    def law(self, sizes: IndexArray) -> NoisyArgmaxLaw:  # noqa: ARG002 - the same for all sizes
        """Noise in proportion to each candidate's own sensitivity."""
        return NoisyArgmaxLaw(self.noise, SCALES[self.noise] / Fraction(self.epsilon))


@final
@dataclass(frozen=True)
class ExponentialRandomStopping(Mechanism):
    r"""Random stopping (η = 1) with exponential instead of Laplace noise, of scale 6Δ_a/ε.

    It was published as a second counterexample: a single exponentially noisy score is not private, and a ratio of
    probabilities is said to grow without bound in k. It is kept under that name, and **no guarantee is claimed**.

    Privacy:
        None claimed. The exact law contradicts the printed counterexample. With Δ_1 = 0, all other sensitivities
        1, q_1 = 1 and the other scores 1 against 0, the ratio of candidate 1's probabilities tends to (1 − (1−γ)(1
        − e^(−ε/6)))^−2 as k grows, which is below e^(ε/2). docs/theory/counterexamples.md gives the corrected
        algebra, and an argument for ε/2-DP.

    Cost:
        The same as :class:`dpselect.RandomStopping`.

    Example:
        >>> import numpy as np, dpselect as dps
        >>> published = dps.unsafe.ExponentialRandomStopping(epsilon=1.0, gamma=0.05)
        >>> sensitivities = np.r_[0.0, np.ones(999)]
        >>> high = published.pmf(np.ones(1000), sensitivities)[0]
        >>> low = published.pmf(np.r_[1.0, np.zeros(999)], sensitivities)[0]
        >>> limit = (1 - 0.95 * (1 - np.exp(-1 / 6))) ** -2
        >>> round(float(low / high), 2), round(float(limit), 2)
        (1.37, 1.37)

    References:
        D. Antonova et al., Private selection with heterogeneous sensitivities, 2025, appendix B.
    """

    epsilon: float
    _: KW_ONLY
    gamma: float

    def __post_init__(self) -> None:
        store(
            self,
            epsilon=check.positive("epsilon", self.epsilon),
            gamma=check.probability("gamma", self.gamma),
        )

    @property
    def guarantee(self) -> Guarantee:
        """None: ε = ∞."""
        return _no_guarantee("none is claimed: published as a counterexample, see docs/theory/counterexamples.md")

    @property
    def label(self) -> str:
        """Random stopping with exponential noise."""
        return f"random stopping with exponential noise, γ = {self.gamma:.2g}"

    def law(self, sizes: IndexArray) -> RandomStoppingLaw:  # noqa: ARG002 - the same for all sizes
        """Noise of scale 6Δ_a/ε for each draw."""
        return RandomStoppingLaw("exponential", 6 / Fraction(self.epsilon), self.gamma, 1.0)


def _no_guarantee(theorem: str) -> Guarantee:
    return Guarantee(epsilon=math.inf, theorem=theorem, reference="Antonova et al. 2025, counterexamples")
