"""The command line as a process of its own: ``dpselect``, or ``python -m dpselect.cli``."""

import sys
from importlib.abc import MetaPathFinder
from typing import Any

from dpselect.cli import main

__all__ = ["run"]


class WithoutPandas(MetaPathFinder):
    """Says that pandas is not installed.

    Before its first conversion Arrow loads pandas, where it finds it, to recognise data frames. None occur here,
    and it would take a quarter of the time to the first pick.
    """

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:  # noqa: ANN401, ARG002
        """Refuse pandas; leave all else to others."""
        if fullname == "pandas":
            raise ModuleNotFoundError("the command line does without pandas", name=fullname)


def run() -> int:
    """Run the command that this process was started for, and return its exit code."""
    sys.meta_path.insert(0, WithoutPandas())
    return main()


if __name__ == "__main__":
    sys.exit(run())
