"""Compiled arithmetic: arrays in, arrays out, no validation.

The modules are loaded on first use, so that ``import dpselect`` costs no compiler.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpselect.kernels import (
        blocks,
        chacha,
        coins,
        correlations,
        duplicates,
        levels,
        normalisations,
        partitioned,
        quantiles,
    )

__all__ = [
    "blocks",
    "chacha",
    "coins",
    "correlations",
    "duplicates",
    "levels",
    "normalisations",
    "partitioned",
    "quantiles",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module
    if name in {*__all__, "pmf", "samplers"}:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
