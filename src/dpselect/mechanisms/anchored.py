"""Anchored mechanisms: public estimates of the scores as offsets."""

from dataclasses import dataclass
from typing import final

import dpselect.parameters as check
from dpselect.guarantees import Guarantee
from dpselect.kernels.arrays import IndexArray
from dpselect.laws.anchored import AnchoredLaw
from dpselect.laws.composition import tilts
from dpselect.mechanisms.base import Mechanism
from dpselect.mechanisms.gem import GEM
from dpselect.mechanisms.heterogeneous import HeterogeneousNoisyMax
from dpselect.mechanisms.noisy_max import NoisyMax
from dpselect.parameters import store

__all__ = ["Anchored"]


@final
@dataclass(frozen=True, kw_only=True)
class Anchored(Mechanism):
    r"""Noisy max or GEM with public anchors: estimates of the scores, weighted in proportion to the noise.

    Runs ``mechanism`` with the offsets

    $$o_a = weight · log(k/β) · (2 max Δ/ε) · c_a / max |c|$$

    With weight 1, the largest offset equals the 1 − β quantile bound on the largest noise. Offsets grow with 1/ε:
    anchors decide when the budget is too small for the scores to decide.

    Privacy:
        The guarantee of ``mechanism``: offsets are public, and public numbers change no sensitivity.

    Cost:
        The cost of ``mechanism``.

    Args:
        mechanism: A :class:`~dpselect.HeterogeneousNoisyMax`, :class:`~dpselect.NoisyMax` or
            :class:`~dpselect.GEM`.
        weight: The weight of the anchors; any real number.

    Example:
        >>> import dpselect as dps
        >>> guessed = dps.Anchored(mechanism=dps.NoisyMax(epsilon=0.1), weight=1.0)
        >>> guessed.pmf([0.0, 0.5], 1.0, anchors=[0.0, 1.0]).round(3)
        array([0.012, 0.988])

    References:
        The proof for noisy max covers public offsets; see docs/theory/tuning.md.
    """

    takes = ("anchors",)

    mechanism: HeterogeneousNoisyMax | NoisyMax | GEM
    weight: float

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, HeterogeneousNoisyMax | NoisyMax | GEM):
            raise ValueError(
                "mechanism must be a HeterogeneousNoisyMax, NoisyMax or GEM: other mechanisms take no offsets"
            )
        store(self, weight=check.real("weight", self.weight))

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of ``mechanism``."""
        return self.mechanism.guarantee

    @property
    def label(self) -> str:
        """The mechanism's label, with the weight of the anchors."""
        return f"{self.mechanism.label}, anchor weight {self.weight:g}"

    @property
    def needs(self) -> tuple[str, ...]:
        """Anchors."""
        return ("anchors",)

    def law(self, sizes: IndexArray) -> AnchoredLaw:
        """The mechanism's law, with offsets computed from the anchors."""
        reach = tilts(sizes, self.weight, self.mechanism.beta) * (2 / self.mechanism.epsilon)
        return AnchoredLaw(self.mechanism.law(sizes), reach)
