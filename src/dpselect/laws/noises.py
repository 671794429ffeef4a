"""The noises: for each, the sampler that draws it, its exact twin and its law, all of one name.

One table, one lookup. A noise that is not in it is refused, never taken for another one.
"""

import importlib
from functools import cache
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

from dpselect import kernels
from dpselect.parameters import Noise

__all__ = ["SAMPLERS", "Sampler", "code_of", "sampler_of"]

SAMPLERS = MappingProxyType(
    {
        ("exponential", False): "permute_and_flip",
        ("exponential", True): "permute_and_flip_at_fixed_work",
        ("gumbel", False): "exponential_mechanism",
        ("laplace", False): "laplace_noisy_max",
        ("laplace", True): "laplace_noisy_max",  # it does the same work for all scores
    }
)
"""The sampler of noisy max, by noise and by whether it must do the same work for all scores."""

LAWS = MappingProxyType({"permute_and_flip_at_fixed_work": "permute_and_flip"})
"""Samplers whose law is another one's."""


class Sampler(NamedTuple):
    """Three modules of one name, imported when they are used: only what is used is compiled."""

    name: str

    @property
    def kernel(self) -> Any:  # noqa: ANN401 - a module
        """The compiled sampler."""
        return _module(f"dpselect.kernels.samplers.{self.name}")

    @property
    def twin(self) -> Any:  # noqa: ANN401 - a module
        """The sampler in exact arithmetic."""
        return _module(f"dpselect.exact.samplers.{self.name}")

    @property
    def pmf(self) -> Any:  # noqa: ANN401 - a module
        """The exact probabilities."""
        return _module(f"dpselect.kernels.pmf.{LAWS.get(self.name, self.name)}")


def sampler_of(noise: Noise, *, fixed_work: bool = False) -> Sampler:
    """Return the sampler of noisy max with a noise."""
    try:
        return Sampler(SAMPLERS[noise, fixed_work])
    except KeyError:
        raise ValueError(f"noise must be one of the known ones, got {noise!r}, fixed_work={fixed_work}") from None


def code_of(noise: Noise) -> int:
    """Return the number by which the quadrature over noises of different scales knows a noise."""
    known = kernels.pmf.integrands
    codes = {"exponential": known.EXPONENTIAL, "laplace": known.LAPLACE, "gumbel": known.GUMBEL}
    if noise not in codes:
        raise ValueError(f"noise must be one of {', '.join(map(repr, codes))}; got {noise!r}")
    code: int = codes[noise]
    return code


@cache
def _module(name: str) -> ModuleType:
    return importlib.import_module(name)
