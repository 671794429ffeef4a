"""The mechanisms, with a short module for each family.

Read :mod:`~dpselect.mechanisms.noisy_max` for the shape of a mechanism, and :mod:`~dpselect.laws.noisy_max` for
the law that noisy max and GEM share.
"""

from dpselect.mechanisms.base import Mechanism
from dpselect.mechanisms.combined import CombinedGEM
from dpselect.mechanisms.gem import GEM, ModifiedGEM
from dpselect.mechanisms.given import from_pmf
from dpselect.mechanisms.heterogeneous import HeterogeneousNoisyMax
from dpselect.mechanisms.noisy_max import NoisyMax
from dpselect.mechanisms.random_stopping import RandomStopping
from dpselect.mechanisms.randomized_response import RandomizedResponse
from dpselect.mechanisms.top_share import TopShare
from dpselect.mechanisms.uniform import Uniform

__all__ = [
    "GEM",
    "CombinedGEM",
    "HeterogeneousNoisyMax",
    "Mechanism",
    "ModifiedGEM",
    "NoisyMax",
    "RandomStopping",
    "RandomizedResponse",
    "TopShare",
    "Uniform",
    "from_pmf",
]
