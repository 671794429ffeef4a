"""Libraries that are not installed along: whoever calls for one is told how to get it."""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["from_extra"]


@contextmanager
def from_extra(extra: str) -> Iterator[None]:
    """Name the extra to install where an import inside fails because a library is not there."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            f"this needs {missing.name}, which is not installed: pip install 'dpselect[{extra}]'", name=missing.name
        ) from None
