"""Samplers, compiled: one file each, with the name of its exact twin in :mod:`dpselect.exact.samplers`.

A sampler returns the picked index, or UNRESOLVED where floats could not decide. The twin reads the same bits in the
same order, so that an unresolved row gets there the pick that infinitely precise floats would have given. Samplers
never touch a pmf: privacy does not rest on quadrature.
"""

import importlib
from typing import Any


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module
    """Import a module when it is used."""
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
