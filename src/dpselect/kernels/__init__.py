"""Compiled arithmetic: arrays in, arrays out, no validation.

Each module is imported on first use, so ``import dpselect`` does not load the compiler.
"""

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpselect.kernels import (  # noqa: F401 - for type checkers, which look for them here
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


def modules_of(package: str) -> Callable[[str], Any]:
    """Return a package's ``__getattr__`` that imports a module on first use."""

    def module(name: str) -> Any:
        try:
            return importlib.import_module(f"{package}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{package}.{name}":
                raise
            raise AttributeError(f"module {package!r} has no attribute {name!r}") from None

    return module


__getattr__ = modules_of(__name__)
