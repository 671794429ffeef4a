"""Optional dependencies, with an install hint that works as it is printed."""

import re
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
    """Return the command that installs what an extra of this package needs.

    It names the libraries and not the extra: a package that was installed from its sources or from a file may not
    be known to an index.
    """
    from importlib import metadata  # noqa: PLC0415 - only for the message

    try:
        declared = metadata.requires("dpselect") or []
    except metadata.PackageNotFoundError:
        declared = []
    wanted = sorted(set(_requirements(extra, declared))) or [f"dpselect[{extra}]"]
    return " ".join(["pip install", *(f"'{requirement}'" for requirement in wanted)])


def _requirements(extra: str, declared: list[str]) -> Iterator[str]:
    """Yield what an extra needs; extras may contain others."""
    for line in declared:
        requirement, _, marker = (part.strip() for part in line.partition(";"))
        if not re.search(rf"""extra == ['"]{extra}['"]""", marker):
            continue
        inner = re.fullmatch(r"dpselect\[([a-z, ]+)\]", requirement)
        if inner is None:
            yield requirement
        else:
            for name in inner[1].split(","):
                yield from _requirements(name.strip(), declared)
