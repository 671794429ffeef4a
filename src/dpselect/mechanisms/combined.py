"""Combined GEM: estimate privately whether scores and sensitivities correlate, then run GEM or modified GEM."""

from dataclasses import KW_ONLY, dataclass
from typing import final

import dpselect.parameters as check
from dpselect.guarantees import Guarantee, remainder
from dpselect.kernels.arrays import IndexArray
from dpselect.laws.combined import CombinedLaw
from dpselect.mechanisms.base import Mechanism
from dpselect.mechanisms.gem import gem_law
from dpselect.parameters import store


@final
@dataclass(frozen=True)
class CombinedGEM(Mechanism):
    r"""Estimate the sign of Spearman's correlation privately; run modified GEM if it is ≥ 0, otherwise GEM.

    The sign takes $ε_c$, the share ``correlation_share`` of ε. Randomised response reports it correctly with
    probability $e^(ε_c)/(1 + e^(ε_c))$. The pick takes $ε_g = ε − ε_c$:

    $$Pr[a] = w Pr_mGEM[a] + (1 − w) Pr_GEM[a],$$

    where w is the probability of the answer "≥ 0".

    Combined GEM helps where correlations differ between rows and cannot be predicted. A correlation that is
    undefined, because all scores or all sensitivities are equal, counts as 0. Its sign is exact, including ties.

    Privacy:
        ε-DP, $ε = ε_c + ε_g$ by composition, assuming public sensitivities and candidates.

    Cost:
        O(k log k); ``pmf`` costs as much as two GEMs.

    Args:
        epsilon: The privacy budget of one pick, for the sign and the pick together.
        beta: The failure probability in t, which is GEM's at $ε_g$.
        correlation_share: The fraction of ε spent on the sign, strictly between 0 and 1.

    Example:
        >>> import dpselect as dps
        >>> scores, sensitivities = [1.0, 0.0, 0.0], [1.8, 1.0, 1.0]
        >>> dps.CombinedGEM(epsilon=4.0).pmf(scores, sensitivities).round(3)
        array([0.731, 0.134, 0.134])

    References:
        D. Antonova et al., Private selection with heterogeneous sensitivities, 2025, algorithm 2.
    """

    epsilon: float
    _: KW_ONLY
    beta: float = 0.05
    correlation_share: float = 0.6

    def __post_init__(self) -> None:
        store(
            self,
            epsilon=check.positive("epsilon", self.epsilon),
            beta=check.inside_unit_interval("beta", self.beta),
            correlation_share=check.inside_unit_interval("correlation_share", self.correlation_share),
        )

    @property
    def guarantee(self) -> Guarantee:
        """ε-DP: the budgets of the sign and of the pick add up."""
        return Guarantee(
            epsilon=self.epsilon,
            flat_epsilon=self.sign_epsilon,
            laplace_epsilon=self.pick_epsilon,
            theorem="randomised response on one bit at ε_c, then GEM at ε_g: (ε_c + ε_g)-DP by composition",
            reference="Antonova et al. 2025, algorithm 2; Dwork and Roth 2014, theorem 3.14",
        )

    @property
    def sign_epsilon(self) -> float:
        """The budget of the sign, $ε_c$."""
        return self.correlation_share * self.epsilon

    @property
    def pick_epsilon(self) -> float:
        """The budget of the pick, $ε_g$: the rest, rounded so that the two never exceed ε."""
        return remainder(self.epsilon, self.sign_epsilon)

    @property
    def label(self) -> str:
        """Combined GEM, with the fraction of ε that it spends on the sign."""
        return f"combined GEM ({self.correlation_share:.0%} of ε on the sign)".replace("%", " %")

    def law(self, sizes: IndexArray) -> CombinedLaw:
        """Randomised response on the sign, then GEM with the tilt for that answer."""
        return CombinedLaw(self.sign_epsilon, lambda tilt: gem_law(sizes, self.pick_epsilon, self.beta, tilt))
