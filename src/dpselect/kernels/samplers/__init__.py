"""Samplers, compiled: one module each, with the same name as its exact twin in :mod:`dpselect.exact.samplers`.

A sampler returns the picked index, or UNRESOLVED where floats could not decide. The twin reads the same bits in
the same order, so it gives an unresolved row the pick that infinitely precise floats would have given. Samplers
never use a pmf: privacy does not depend on quadrature.
"""

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    """Import a module on first use."""
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
