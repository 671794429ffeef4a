"""The files that a job reads: how each is read, and whether they stay what they were."""

import argparse
from pathlib import Path
from typing import Any

from dpselect.engines.grouping import csv_delimiter
from dpselect.engines.sources import COMPRESSED, table_files, table_format

__all__ = ["Inputs", "file_state"]


class Inputs:
    """The files of a job, in the state in which it found them. Made before anything of them is read."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._found = self._look()
        self.files = [path for _, _, path in self._listed()]

    @property
    def readings(self) -> list[list[str]]:
        """How each file is read: as what, in which format, with which delimiter and compression.

        Its name may decide that, so the same bytes under another name can be another table.
        """
        return [[role, kind, *_text_settings(path, kind)] for role, kind, path in self._listed()]

    def check_unchanged(self) -> None:
        """Raise if a file is not what it was: then nobody knows what was fingerprinted and what was read."""
        if self._look() != self._found:
            raise ValueError(f"{self._options.input.name!r} or --candidates has changed while it was read")

    def _listed(self) -> list[tuple[str, str, Path]]:
        kind = table_format(self._options.input, self._options.format)
        listed = [("input", kind, path) for path in table_files(self._options.input, kind)]
        if self._options.candidates is not None:
            kind = table_format(self._options.candidates)
            listed += [("candidates", kind, path) for path in table_files(self._options.candidates, kind)[:1]]
        return listed

    def _look(self) -> list[Any]:
        return [(role, kind, path, file_state(path)) for role, kind, path in self._listed()]


def file_state(path: Path) -> tuple[int, ...]:
    """Return what changes whenever a file is written to or exchanged: times can be set back, but not ``ctime``."""
    state = path.stat()
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def _text_settings(path: Path, kind: str) -> list[str]:
    return [csv_delimiter(path), path.suffix if path.suffix in COMPRESSED else ""] if kind == "csv" else []
