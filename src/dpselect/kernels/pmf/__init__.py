"""Exact probabilities, compiled: one module for each sampler, with the same name."""

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    """Import a module on first use."""
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
