"""What a mechanism promises."""

import math
from dataclasses import dataclass

__all__ = ["Guarantee"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Guarantee:
    """A privacy guarantee, with the theorem it rests on.

    It assumes that the sensitivities passed to the mechanism are true and public: for any two neighbouring
    datasets, candidate a's score differs by at most ``sensitivities[a]``.

    Attributes:
        epsilon: The pure-DP loss. 0 if the pick ignores the scores, infinite if there is no guarantee.
        delta: The probability of exceeding it; 0 for every mechanism of this library.
        rho: The zero-concentrated DP loss, where one is proven; ``None`` where there is none.
        neighbours: Which datasets count as neighbours.
        theorem: Why the guarantee holds, in a sentence.
        reference: Where it is proven.

    Example:
        >>> import dpselect as dps
        >>> promise = dps.GEM(epsilon=1.0).guarantee
        >>> promise.epsilon, promise.delta, promise.is_private
        (1.0, 0.0, True)
    """

    epsilon: float
    delta: float = 0.0
    rho: float | None = None
    neighbours: str = "scores within the sensitivities: |q_a − q'_a| ≤ Δ_a for every candidate a"
    theorem: str
    reference: str

    @property
    def is_private(self) -> bool:
        """Whether there is a guarantee at all."""
        return math.isfinite(self.epsilon)
