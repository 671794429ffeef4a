"""Who competes: the mechanisms of the paper, their order, and how each one looks in every figure."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

import dpselect as dps

__all__ = ["FAMILIES", "STYLES", "Family", "Style", "contenders", "matched_gamma"]


def contenders(epsilon: float, *, beta: float, gamma: float) -> dict[str, dps.Mechanism]:
    """Return the mechanisms at one privacy budget, by name, in the order of :data:`STYLES`."""
    return {
        "rnm": dps.NoisyMax(epsilon=epsilon),
        "rnmh": dps.unsafe.HeterogeneousNoisyMax(epsilon=epsilon),
        "rs": dps.RandomStopping(epsilon=epsilon, gamma=gamma),
        "rs-improved": dps.RandomStopping(epsilon=epsilon, gamma=gamma, eta=0.0),
        "rs-improved-matched": dps.RandomStopping(epsilon=epsilon, gamma=matched_gamma(gamma), eta=0.0),
        "gem": dps.GEM(epsilon=epsilon, beta=beta),
        "mgem": dps.ModifiedGEM(epsilon=epsilon, beta=beta),
        "combined-gem": dps.CombinedGEM(epsilon=epsilon, beta=beta),
        "krr": dps.RandomizedResponse(epsilon=epsilon),
        "uniform": dps.Uniform(),
    }


@cache
def matched_gamma(gamma: float) -> float:
    """Return the γ at which improved random stopping takes as many draws, on average, as RS_γ does: 1/γ.

    Solves (1/x − 1)/log(1/x) = 1/γ for x by bisection of log x; the left side falls in x.

    Example:
        >>> x = matched_gamma(0.05)
        >>> round((1 / x - 1) / math.log(1 / x), 9)
        20.0
    """
    low, high = -700.0, math.log(gamma)
    while (middle := (low + high) / 2) not in {low, high}:
        low, high = (middle, high) if math.expm1(-middle) / -middle > 1 / gamma else (low, middle)
    return math.exp(middle)


@dataclass(frozen=True, kw_only=True)
class Style:
    """How a mechanism is named and drawn. Colour, dashes and marker each tell it apart, as far as they go."""

    label: str
    description: str
    color: str
    marker: str
    dashes: tuple[float, ...] = ()
    """Lengths of strokes and gaps, in line widths; empty for a solid line."""
    private: bool = True


@dataclass(frozen=True, kw_only=True)
class Family:
    """Mechanisms that differ in one public number, the tilt."""

    label: str
    build: Callable[[float, float], dps.Mechanism]
    """From ε and tilt."""
    color: str
    marker: str
    dashes: tuple[float, ...] = ()
    anchored: bool = False
    """Whether it takes public anchors."""


FAMILIES = MappingProxyType(
    {
        "gem": Family(
            label="tilted GEM (pairwise)",
            build=lambda epsilon, tilt: dps.GEM(epsilon=epsilon, tilt=tilt),
            color="#0072b2",
            marker="v",
        ),
        "noisy-max": Family(
            label="tilted noisy max (global)",
            build=lambda epsilon, tilt: dps.NoisyMax(epsilon=epsilon, tilt=tilt),
            color="#000000",
            marker="o",
            dashes=(6, 1.5),
        ),
        "standardized": Family(
            label="standardized noisy max (individual)",
            build=lambda epsilon, tilt: dps.StandardizedNoisyMax(epsilon=epsilon, tilt=tilt),
            color="#a6761d",
            marker="*",
            dashes=(4, 1.5, 1, 1.5),
            anchored=True,
        ),
    }
)
"""The three normalisations, each for any tilt; β = 0.05."""

# The colours of Okabe and Ito (2008), which people with any colour vision can tell apart, without their
# yellow, which is too faint on white. Greys are left to what is not a competitor.
STYLES = MappingProxyType(
    {
        "rnm": Style(label="RNM", description="report noisy max", color="#000000", marker="o"),
        "rnmh": Style(
            label="RNMH (not private)",
            description="noisy max with each candidate’s own noise",
            color="#8a8a8a",
            marker="X",
            dashes=(4, 2),
            private=False,
        ),
        "rs": Style(label="RSᵧ", description="random stopping", color="#cc79a7", marker="s"),
        "rs-improved": Style(
            label="improved RSᵧ",
            description="random stopping, η = 0",
            color="#56b4e9",
            marker="D",
            dashes=(6, 1.5),
        ),
        "rs-improved-matched": Style(
            label="improved RSᵧ, equal E[K]",
            description="random stopping, η = 0, with as many draws on average as RSᵧ",
            color="#8c6bb1",
            marker="d",
            dashes=(2, 1),
        ),
        "gem": Style(label="GEM", description="generalised exponential mechanism", color="#0072b2", marker="v"),
        "mgem": Style(label="mGEM", description="modified GEM", color="#d55e00", marker="^"),
        "combined-gem": Style(
            label="combined GEM",
            description="GEM or mGEM, chosen privately",
            color="#009e73",
            marker="P",
            dashes=(5, 1.5, 1, 1.5),
        ),
        "krr": Style(label="kRR", description="k-ary randomised response", color="#e69f00", marker="p"),
        "uniform": Style(
            label="random", description="a candidate at random", color="#555555", marker="", dashes=(1, 1.5)
        ),
    }
)
