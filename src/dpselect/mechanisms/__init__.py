"""The mechanisms, a short file for each family.

Two model files: :mod:`~dpselect.mechanisms.composition`, which every noisy max is a setting of, and
:mod:`~dpselect.mechanisms.noisy_max`, which shows what a mechanism looks like.
"""

from dpselect.mechanisms.combined import CombinedGEM
from dpselect.mechanisms.gem import GEM, ModifiedGEM, gem_scores
from dpselect.mechanisms.noisy_max import NoisyMax
from dpselect.mechanisms.protocol import Mechanism
from dpselect.mechanisms.random_stopping import RandomStopping
from dpselect.mechanisms.randomized_response import RandomizedResponse, Uniform
from dpselect.mechanisms.standardized import StandardizedNoisyMax

__all__ = [
    "GEM",
    "CombinedGEM",
    "Mechanism",
    "ModifiedGEM",
    "NoisyMax",
    "RandomStopping",
    "RandomizedResponse",
    "StandardizedNoisyMax",
    "Uniform",
    "gem_scores",
]
