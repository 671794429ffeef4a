"""Optional dependencies, with an install hint that works as it is printed."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def from_extra(extra: str) -> Iterator[None]:
    """Say what to install if an import inside the block fails."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            f"this needs {missing.name}, which is not installed: {install_command(extra)}", name=missing.name
        ) from None


def install_command(extra: str) -> str:
    """Return the command that installs what an extra of this package needs. The package itself is not looked up."""
    return f"pip install 'dpselect[{extra}]'"
