"""Short names for the private mechanisms."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from dpselect.mechanisms import (
    GEM,
    CombinedGEM,
    Mechanism,
    ModifiedGEM,
    NoisyMax,
    RandomizedResponse,
    RandomStopping,
    StandardizedNoisyMax,
    Uniform,
)

__all__ = ["MECHANISMS"]


def _uniform(*, epsilon: float = 0.0) -> Uniform:  # noqa: ARG001
    """Return :class:`Uniform`. It takes a budget only so that every name is called alike, and spends none."""
    return Uniform()


MECHANISMS: Mapping[str, Callable[..., Mechanism]] = MappingProxyType(
    {
        "rnm": NoisyMax,
        "em": partial(NoisyMax, noise="gumbel"),
        "tilted-rnm": partial(NoisyMax, tilt=1.0),
        "standardized-rnm": StandardizedNoisyMax,
        "gem": GEM,
        "mgem": ModifiedGEM,
        "rs": RandomStopping,
        "rs-improved": partial(RandomStopping, eta=0.0),
        "combined-gem": CombinedGEM,
        "krr": RandomizedResponse,
        "uniform": _uniform,
    }
)
"""Constructors by short name, for the command line, the figures and the contract tests.

All take ``epsilon=`` and further fields as keywords. Nothing of :mod:`dpselect.unsafe` is here.
"""
