"""The noises: for each, its sampler, the exact twin and the pmf, three modules of the same name.

There is one table and one lookup. A noise that is not in the table raises an error.
"""

import importlib
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from dpselect import kernels
from dpselect.parameters import Noise

SAMPLERS = MappingProxyType(
    {"exponential": "permute_and_flip", "gumbel": "exponential_mechanism", "laplace": "laplace_noisy_max"}
)
"""The sampler of noisy max, by noise."""


class Sampler(NamedTuple):
    """Three modules of the same name."""

    kernel: Any
    """The compiled sampler."""
    twin: Any
    """The sampler in exact arithmetic."""
    pmf: Any
    """The exact probabilities."""


@cache
def sampler_of(noise: Noise) -> Sampler:
    """Return the sampler of noisy max for a noise."""
    if noise not in SAMPLERS:
        raise ValueError(f"noise must be one of {', '.join(map(repr, SAMPLERS))}; got {noise!r}")
    homes = ("kernels.samplers", "exact.samplers", "kernels.pmf")
    return Sampler(*(importlib.import_module(f"dpselect.{home}.{SAMPLERS[noise]}") for home in homes))


def code_of(noise: Noise) -> int:
    """Return the number by which the quadrature over noises of different scales knows a noise."""
    known = kernels.pmf.integrands
    codes = {"exponential": known.EXPONENTIAL, "laplace": known.LAPLACE}
    if noise not in codes:
        raise ValueError(f"noise must be one of {', '.join(map(repr, codes))}; got {noise!r}")
    code: int = codes[noise]
    return code
