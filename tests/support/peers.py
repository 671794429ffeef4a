"""Other libraries' samplers as objects with ``select``, for every function that takes a sampler.

They take one sensitivity for all candidates, so the largest is used, and their law is that of noisy max. OpenDP
draws its randomness from the operating system and cannot be seeded; diffprivlib uses a seed if one is given.
"""

import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import pytest

import dpselect as dps


class _NoisyMaxPeer:
    """One index for each row, drawn by :meth:`_sampler`, and the law that it claims."""

    def select(self, scores, sensitivities):
        rows = np.asarray(scores, dtype=float)
        draw = self._sampler(float(np.max(sensitivities)))
        return np.apply_along_axis(draw, -1, rows)[()]

    def pmf(self, scores, sensitivities):
        return dps.NoisyMax(epsilon=self.epsilon, noise=self.noise).pmf(scores, sensitivities)

    @property
    def guarantee(self):
        return dps.NoisyMax(epsilon=self.epsilon, noise=self.noise).guarantee


@dataclass(frozen=True, kw_only=True)
class OpenDPNoisyMax(_NoisyMaxPeer):
    """OpenDP's ``make_noisy_max``: exponential noise for pure DP, Gumbel noise for zCDP."""

    epsilon: float
    noise: Literal["exponential", "gumbel"] = "exponential"

    def _sampler(self, sensitivity):
        measurement = _opendp_noisy_max(2 * sensitivity / self.epsilon, self.noise)
        return lambda row: measurement(row.tolist())


@lru_cache
def _opendp_noisy_max(scale, noise):
    import opendp.prelude as dp  # noqa: PLC0415 - a second to import

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    measure = dp.max_divergence() if noise == "exponential" else dp.zero_concentrated_divergence()
    return dp.m.make_noisy_max(*space, measure, scale=scale)


@dataclass(frozen=True, kw_only=True)
class DiffprivlibNoisyMax(_NoisyMaxPeer):
    """diffprivlib's permute-and-flip (exponential noise) and exponential mechanism (Gumbel noise)."""

    epsilon: float
    noise: Literal["exponential", "gumbel"] = "exponential"
    seed: int | None = None

    def _sampler(self, sensitivity):
        if sys.version_info >= (3, 14):
            pytest.skip("diffprivlib needs scikit-learn < 1.6, which does not support Python 3.14")
        from diffprivlib.mechanisms import Exponential, PermuteAndFlip  # noqa: PLC0415 - a second to import

        family = PermuteAndFlip if self.noise == "exponential" else Exponential
        source = None if self.seed is None else np.random.RandomState(self.seed)
        settings = {"epsilon": self.epsilon, "sensitivity": sensitivity, "random_state": source}
        return lambda row: family(utility=row.tolist(), **settings).randomise()
