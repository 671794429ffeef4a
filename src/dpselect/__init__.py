"""Pick one candidate out of many under differential privacy, when candidates are not equally sensitive.

>>> import dpselect as dps
>>> mechanism = dps.HeterogeneousNoisyMax(epsilon=1.0)
>>> pick = mechanism.select([0.2, 0.9, 0.5], [1.0, 0.1, 0.3])

From a table of users, candidates, scores and sensitivities to named picks: ``select_table(table, mechanism)``.

A mechanism is an immutable value made of public numbers. Scores are private, and you pass them with each call.
Sensitivities, candidates and the mechanism's fields are public.

The exponential mechanism is ``NoisyMax(epsilon=…, noise="gumbel")``; permute-and-flip is ``NoisyMax(epsilon=…)``.
"""

import importlib
from typing import TYPE_CHECKING, Any

from dpselect._version import __version__

if TYPE_CHECKING:
    from dpselect import accounting, advice, auditing, correlation, lists, pools, tuning, unsafe
    from dpselect.evaluation import expected_error, probability_of_best
    from dpselect.guarantees import Guarantee
    from dpselect.lists.public import select_list
    from dpselect.lists.top_k import TopK
    from dpselect.mechanisms import (
        GEM,
        CombinedGEM,
        HeterogeneousNoisyMax,
        Mechanism,
        ModifiedGEM,
        NoisyMax,
        RandomizedResponse,
        RandomStopping,
        TopShare,
        Uniform,
    )
    from dpselect.mechanisms import from_pmf as from_pmf
    from dpselect.precompilation import compile as compile  # noqa: A004 - its name at the command line, too
    from dpselect.randomness import Randomness
    from dpselect.registry import MECHANISMS
    from dpselect.table_selection import select_table

__all__ = [
    "GEM",
    "MECHANISMS",
    "CombinedGEM",
    "Guarantee",
    "HeterogeneousNoisyMax",
    "Mechanism",
    "ModifiedGEM",
    "NoisyMax",
    "RandomStopping",
    "RandomizedResponse",
    "Randomness",
    "TopK",
    "TopShare",
    "Uniform",
    "__version__",
    "accounting",
    "advice",
    "auditing",
    "correlation",
    "expected_error",
    "lists",
    "pools",
    "probability_of_best",
    "select_list",
    "select_table",
    "tuning",
    "unsafe",
]

_MODULES = {"accounting", "advice", "auditing", "correlation", "lists", "pools", "tuning", "unsafe"}
_HOMES = {
    "MECHANISMS": "registry",
    "Guarantee": "guarantees",
    "Randomness": "randomness",
    "TopK": "lists.top_k",
    "compile": "precompilation",
    "from_pmf": "mechanisms",
    "select_list": "lists",
    "select_table": "table_selection",
    **dict.fromkeys(("expected_error", "probability_of_best"), "evaluation"),
}
"""The modules of names that are not a mechanism's."""

_OTHER_NAMES = {
    "ExponentialMechanism": 'NoisyMax(epsilon=..., noise="gumbel")',
    "PermuteAndFlip": "NoisyMax(epsilon=...)",
    "ReportNoisyMax": "NoisyMax(epsilon=...)",
    "TiltedNoisyMax": "NoisyMax(epsilon=..., tilt=...)",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use; if a name is another name of a mechanism, say what it is called here."""
    if name not in __all__ and name not in _HOMES:  # `compile` is no name for `import *`: it is a builtin's
        hint = f": it is {_OTHER_NAMES[name]}" if name in _OTHER_NAMES else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
    module = importlib.import_module(f"{__name__}.{name if name in _MODULES else _HOMES.get(name, 'mechanisms')}")
    value = module if name in _MODULES else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
