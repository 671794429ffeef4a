"""k-ary randomised response, which ignores sensitivities."""

from dataclasses import dataclass
from typing import final

import dpselect.parameters as check
from dpselect.guarantees import ANY_SCORES, Guarantee
from dpselect.kernels.arrays import IndexArray
from dpselect.laws.randomized_response import RandomizedResponseLaw
from dpselect.mechanisms.base import Mechanism
from dpselect.parameters import store


@final
@dataclass(frozen=True)
class RandomizedResponse(Mechanism):
    r"""k-ary randomised response: the best candidate with high probability, otherwise any other.

    $Pr[a] = e^ε/(e^ε + k − 1)$ for the best candidate and $1/(e^ε + k − 1)$ for every other. Neither the
    sensitivities nor the scores of the others matter. It does well where ε is large, about $log k$ and more. If
    several candidates tie for the best, one of them is chosen uniformly.

    Privacy:
        ε-DP for any change of the scores, however large.

    Cost:
        O(k).

    Args:
        epsilon: The privacy budget of one pick.

    Example:
        >>> import math, dpselect as dps
        >>> dps.RandomizedResponse(epsilon=math.log(3)).pmf([0.0, 5.0, 1.0], 1.0)
        array([0.2, 0.6, 0.2])

    References:
        S. L. Warner, Randomized response, 1965.
    """

    label = "randomised response"
    uses_sensitivities = False

    epsilon: float

    def __post_init__(self) -> None:
        store(self, epsilon=check.positive("epsilon", self.epsilon))

    @property
    def guarantee(self) -> Guarantee:
        """ε-DP for any change of the scores."""
        return Guarantee(
            epsilon=self.epsilon,
            flat_epsilon=self.epsilon,
            neighbours=ANY_SCORES,
            theorem="no output is more than e^ε times as likely for one best candidate as for another",
            reference="Warner 1965",
        )

    def law(self, sizes: IndexArray) -> RandomizedResponseLaw:  # noqa: ARG002 - the same for all sizes
        """The best candidate with odds $e^ε$ : 1 against every other."""
        return RandomizedResponseLaw(self.epsilon)
