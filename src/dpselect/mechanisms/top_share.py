"""Top share, for rows that are about one person: no sensitivities."""

from dataclasses import dataclass, field
from typing import Any, final

import dpselect.parameters as check
from dpselect.guarantees import ANY_SCORES, Guarantee
from dpselect.kernels.arrays import IndexArray
from dpselect.laws.top_share import TopShareLaw
from dpselect.mechanisms.base import Mechanism
from dpselect.parameters import store
from dpselect.randomness import Randomness


@final
@dataclass(frozen=True)
class TopShare(Mechanism):
    r"""Picks from public weights: from all of them, or from those of the best candidates. Needs no sensitivities.

    Use it where a row is about *one person*, so that any two rows are neighbours. With probability s it picks from
    the weights π, whatever the scores. Otherwise it picks, by the same weights, among the best candidates that
    together have the share μ of all weights:
    $Pr[a] = π_a s (1 + (e^ε − 1) f_a)$, $s = 1/(1 + μ(e^ε − 1))$. Here $f_a$ is 1 for a candidate inside the
    best share, 0 outside, and in between for those at the margin, which share what is left in proportion to their
    weights. Ties do so, too.

    For such rows nothing is better: every ε-DP mechanism has weights and a share with which top share is at least
    as good as it is, for every row of scores. Randomised response has equal weights and a share of one candidate.

    Privacy:
        ε-DP for any change of the scores, because every probability lies between $s π_a$ and $e^ε s π_a$. It does
        not compose like Laplace noise. The guarantee needs the following.

        - The weights and the share are public: they come from public rows or from released picks, never from
          private scores or from errors measured on them.
        - A person has the same candidates and weights whatever their data. Rank an item that is not available to
          them (seen, sold out) last; do not drop it.
        - Which of the two draws made the pick stays secret. The sampler makes both for each row.
        - No one's row depends on another person's data, such as a model trained on it. That someone takes part is
          not hidden.

    Cost:
        O(k log(1/μ)). Weights are rounded up to multiples of $2⁻²⁸$ of the largest, so that the loss is exactly ε.

    Args:
        epsilon: The privacy budget of one pick.
        share: The share μ of the weights that counts as the best, above 0 and at most 1. By default $1/(1 +
            e^(ε/2))$ or 1/k, whichever is more, for k candidates that have a weight: the best share is then missed
            with a probability of at most μ.

    Example:
        >>> import math, dpselect as dps
        >>> mechanism = dps.TopShare(epsilon=math.log(3), share=0.5)
        >>> mechanism.pmf([0.0, 5.0, 1.0, 2.0])
        array([0.125, 0.375, 0.125, 0.375])
        >>> mechanism.pmf([0.0, 5.0, 1.0, 2.0], weights=[1.0, 1.0, 1.0, 0.0]).round(4)
        array([0.1667, 0.5   , 0.3333, 0.    ])

    References:
        docs/theory/top-share.md (both theorems). P. Kairouz, S. Oh, P. Viswanath, Extremal mechanisms for local
        differential privacy, 2016.
    """

    uses_sensitivities = False
    takes = ("weights",)

    epsilon: float
    share: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        store(self, epsilon=check.positive("epsilon", self.epsilon))
        if self.share is not None:
            store(self, share=check.probability("share", self.share))

    @property
    def guarantee(self) -> Guarantee:
        """ε-DP for any change of the scores."""
        return Guarantee(
            epsilon=self.epsilon,
            flat_epsilon=self.epsilon,
            neighbours=ANY_SCORES,
            theorem="every probability lies between two public numbers, c_a and e^ε c_a",
            reference="docs/theory/top-share.md",
        )

    @property
    def label(self) -> str:
        """Top share, and the share."""
        return "top share" if self.share is None else f"top share, {self.share:.3g}"

    def select_there(self, scores: Any, weights: Any, stream: Randomness) -> Any:
        """Return picks from scores on a CUDA device, made there; ``None`` if the scores must be copied first."""
        from dpselect.laws import gpu  # noqa: PLC0415 - only for callers that have a GPU

        return gpu.select_there(TopShareLaw(self.epsilon, self.share), scores, weights, stream)

    def law(self, sizes: IndexArray) -> TopShareLaw:  # noqa: ARG002 - the same for all sizes
        """From all weights, or from the best share of them."""
        return TopShareLaw(self.epsilon, self.share)
