"""Pick one candidate out of many under differential privacy, when candidates are not equally sensitive.

>>> import dpselect as dps
>>> mechanism = dps.HeterogeneousNoisyMax(epsilon=1.0)
>>> pick = mechanism.select([0.2, 0.9, 0.5], [1.0, 0.1, 0.3])

From a table of users, candidates, scores and sensitivities to named picks: ``select_table(table, mechanism)``.

A mechanism is an immutable value made of public numbers. Scores are private, and you pass them with each call.
Sensitivities, candidates and the mechanism's fields are public.

The exponential mechanism is ``NoisyMax(epsilon=…, noise="gumbel")``; permute-and-flip is ``NoisyMax(epsilon=…)``.
"""

from typing import NoReturn

from dpselect import accounting, advice, auditing, bounds, correlation, pools, tuning, unsafe
from dpselect._version import __version__
from dpselect.evaluation import error_quantile, expected_error, expected_regret, probability_of_best
from dpselect.frames import select_table
from dpselect.guarantees import Guarantee
from dpselect.mechanisms import (
    GEM,
    Anchored,
    CombinedGEM,
    HeterogeneousNoisyMax,
    Mechanism,
    ModifiedGEM,
    NoisyMax,
    RandomizedResponse,
    RandomStopping,
    StandardizedNoisyMax,
    Uniform,
    gem_scores,
)
from dpselect.randomness import Randomness
from dpselect.registry import MECHANISMS

__all__ = [
    "GEM",
    "MECHANISMS",
    "Anchored",
    "CombinedGEM",
    "Guarantee",
    "HeterogeneousNoisyMax",
    "Mechanism",
    "ModifiedGEM",
    "NoisyMax",
    "RandomStopping",
    "RandomizedResponse",
    "Randomness",
    "StandardizedNoisyMax",
    "Uniform",
    "__version__",
    "accounting",
    "advice",
    "auditing",
    "bounds",
    "correlation",
    "error_quantile",
    "expected_error",
    "expected_regret",
    "gem_scores",
    "pools",
    "probability_of_best",
    "select_table",
    "tuning",
    "unsafe",
]

_OTHER_NAMES = {
    "ExponentialMechanism": 'NoisyMax(epsilon=..., noise="gumbel")',
    "PermuteAndFlip": "NoisyMax(epsilon=...)",
    "ReportNoisyMax": "NoisyMax(epsilon=...)",
    "TiltedNoisyMax": "NoisyMax(epsilon=..., tilt=...)",
}


def __getattr__(name: str) -> NoReturn:
    """Raise; if the name is another name of a mechanism, say what it is called here."""
    hint = f": it is {_OTHER_NAMES[name]}" if name in _OTHER_NAMES else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
