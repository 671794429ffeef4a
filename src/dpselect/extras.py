"""Optional dependencies, with an install hint."""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["from_extra"]


@contextmanager
def from_extra(extra: str) -> Iterator[None]:
    """Name the extra to install if an import inside the block fails."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            f"this needs {missing.name}, which is not installed: pip install 'dpselect[{extra}]'", name=missing.name
        ) from None
