"""Random stopping: the best of a random number of private draws."""

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Literal, TypeAlias, final

import dpselect.parameters as check
from dpselect.guarantees import Guarantee
from dpselect.kernels.arrays import IndexArray
from dpselect.laws.random_stopping import RandomStoppingLaw
from dpselect.mechanisms.base import Mechanism
from dpselect.parameters import store

StoppingNoise: TypeAlias = Literal["laplace", "exponential"]
THEOREMS: dict[StoppingNoise, str] = {
    "laplace": "the best of a truncated negative binomial number of ε/(2+η)-DP draws is ε-DP",
    "exponential": "exponential noise of mean (2+η)Δ/ε: ε-DP for the candidate, not for its noisy score",
}


@final
@dataclass(frozen=True)
class RandomStopping(Mechanism):
    r"""Draw K random candidates, add noise of each one's own scale, report the largest.

    K is truncated negative binomial with parameters γ and η on ${1, 2, …}$. Each draw is a uniform candidate with
    Laplace or exponential noise of scale $(2 + η) Δ_a/ε$. With ``eta=1``, K is geometric with mean 1/γ (random
    stopping as first published); with ``eta=0`` it is logarithmic (the improved version). With $F_a$, $f_a$ the
    distribution function and density of a's noisy score and $F̄$ the mean of all F,

    $$Pr[a] = (1/k) ∫ f_a(x) φ'(F̄(x)) dx, φ(s) = ((1 − (1−γ)s)^(−η) − 1) / (γ^(−η) − 1).$$

    Candidates of large sensitivity reach the top more easily, so random stopping suits positive correlation.
    Exponential noise is one-sided and favours them more: it has the lower error where random stopping is a good
    choice, and the higher error where it is not. Small γ has the same effect, and costs no privacy.

    Privacy:
        ε-DP for every γ in (0, 1] and every η > −1, assuming public sensitivities and candidates. With Laplace
        noise, each draw is ε/(2+η)-DP, and the best of K such draws costs at most (2+η) times as much. With
        exponential noise a single draw is not private, but its survival function changes by a factor of at most
        $e^(ε/(2+η))$, and the proof needs no more. It covers the *candidate*, **not** the pair of candidate and
        noisy score, which the library never returns. A candidate of sensitivity zero gets no noise, and its privacy
        loss is at most $ε(1+η)/(2+η)$. The *time* of a pick depends on the data: draws that cannot be picked are
        skipped.

    Cost:
        ``select`` draws 1/γ candidates on average for η = 1, $(1/γ − 1)/log(1/γ)$ for η = 0, and about η/γ for
        large η. Each draw costs three or four random bits. More than 2³³ draws raise an error. ``pmf`` is a
        quadrature: a quarter of a millisecond for k = 100, and up to a millisecond for large ε. It grows with k
        while sensitivities lie within about two decades, and with k² beyond, for zero sensitivities and for
        probabilities below 1e-60/k (1e-12/k for η > 5): 40 milliseconds for k = 500.

    Args:
        epsilon: The privacy budget of one pick.
        gamma: The stopping probability, in (0, 1]; small values mean many draws.
        eta: The shape of K, above −1.
        noise: ``"laplace"`` or ``"exponential"``.

    Example:
        >>> import dpselect as dps
        >>> dps.RandomStopping(epsilon=1.0).pmf([0.0, 1.0], [1.0, 3.0]).round(3)
        array([0.18, 0.82])
        >>> dps.RandomStopping(epsilon=1.0, noise="exponential").pmf([0.0, 1.0], [1.0, 3.0]).round(3)
        array([0.104, 0.896])

    References:
        docs/theory/random-stopping.md (the law, and both proofs of privacy).
        J. Liu, K. Talwar, Private selection from private candidates, 2019.
        N. Papernot, T. Steinke, Hyperparameter tuning with Rényi differential privacy, 2022.
    """

    epsilon: float
    _: KW_ONLY
    gamma: float = 0.05
    eta: float = 1.0
    noise: StoppingNoise = "laplace"

    def __post_init__(self) -> None:
        store(
            self,
            epsilon=check.positive("epsilon", self.epsilon),
            gamma=check.probability("gamma", self.gamma),
            eta=check.above_minus_one("eta", self.eta),
            noise=check.one_of("noise", self.noise, tuple(THEOREMS)),
        )

    @property
    def guarantee(self) -> Guarantee:
        """ε-DP for the candidate."""
        also = "; also Liu and Talwar 2019 (η = 1); Papernot and Steinke 2022" if self.noise == "laplace" else ""
        return Guarantee(
            epsilon=self.epsilon,
            flat_epsilon=0.0,
            laplace_epsilon=self.epsilon,
            theorem=THEOREMS[self.noise],
            reference=f"docs/theory/random-stopping.md{also}",
        )

    @property
    def label(self) -> str:
        """Random stopping, with γ, η and exponential noise."""
        noise = ", exponential noise" if self.noise == "exponential" else ""
        return f"random stopping, γ = {self.gamma:.2g}, η = {self.eta:g}{noise}"

    def law(self, sizes: IndexArray) -> RandomStoppingLaw:  # noqa: ARG002 - the same for all sizes
        """Noise of scale $(2 + η) Δ_a/ε$ for each draw."""
        scale = (2 + Fraction(self.eta)) / Fraction(self.epsilon)
        return RandomStoppingLaw(self.noise, scale, self.gamma, self.eta)
