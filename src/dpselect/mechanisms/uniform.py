"""Uniform random choice."""

from dataclasses import dataclass
from typing import final

from dpselect.guarantees import ANY_SCORES, Guarantee
from dpselect.kernels.arrays import IndexArray
from dpselect.laws.randomized_response import UniformLaw
from dpselect.mechanisms.base import Mechanism


@final
@dataclass(frozen=True, kw_only=True)
class Uniform(Mechanism):
    """Uniform random choice: $Pr[a] = 1/k$. Every mechanism should beat it, and some do not.

    Privacy:
        Perfect: the scores are not used.

    Cost:
        O(1).

    Example:
        >>> import dpselect as dps
        >>> dps.Uniform().pmf([0.0, 5.0], 1.0)
        array([0.5, 0.5])

    References:
        None needed.
    """

    label = "a candidate at random"
    uses_sensitivities = False

    @property
    def guarantee(self) -> Guarantee:
        """0-DP: the pick is independent of the data."""
        return Guarantee(
            epsilon=0.0,
            flat_epsilon=0.0,
            neighbours=ANY_SCORES,
            theorem="the pick is independent of the scores",
            reference="by definition",
        )

    def law(self, sizes: IndexArray) -> UniformLaw:  # noqa: ARG002 - the same for all sizes
        """Every candidate with the same probability."""
        return UniformLaw()
