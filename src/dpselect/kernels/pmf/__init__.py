"""Exact probabilities, compiled: one file for each sampler, with its name."""

import importlib
from typing import Any


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module
    """Import a module when it is used."""
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
