"""Compiled arithmetic: arrays in, arrays out, no validation.

Each module is imported on first use, so ``import dpselect`` does not load the compiler.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpselect.kernels import (
        blocks,
        chacha,
        coins,
        fitting,
        gpu,
        heterogeneous,
        neutral,
        normalisations,
        weighted_draws,
    )

__all__ = [
    "blocks",
    "chacha",
    "coins",
    "fitting",
    "gpu",
    "heterogeneous",
    "neutral",
    "normalisations",
    "weighted_draws",
]


def __getattr__(name: str) -> Any:
    if name in {*__all__, "pmf", "samplers"}:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
