"""Whether all units of a stream are distinct, in bounded memory."""

import tempfile
from pathlib import Path
from typing import Self

import numpy as np

from dpselect.kernels.arrays import WordArray
from dpselect.randomness import are_distinct

__all__ = ["DistinctUnits"]


class DistinctUnits:
    """Collects the addresses of units and finds out whether any two are the same: they would share their noise.

    Addresses of 12 bytes are kept in memory up to a number. Beyond that they go to files by a hash, so that equal
    ones meet in one file.
    """

    def __init__(self, most_in_memory: int = 1 << 20) -> None:
        self._most = most_in_memory
        self._held: list[WordArray] = []
        self._directory: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._directory is not None:
            self._directory.cleanup()

    def add(self, addresses: WordArray) -> None:
        """Add addresses, three words each."""
        self._held.append(addresses)
        if sum(map(len, self._held)) > self._most:
            self._directory = self._directory or tempfile.TemporaryDirectory(prefix="dpselect-units-")
            self._spill(Path(self._directory.name))

    def are_distinct(self) -> bool:
        """Tell whether all addresses added so far are distinct."""
        if self._directory is None:
            return not self._held or are_distinct(np.concatenate(self._held))
        folder = Path(self._directory.name)
        self._spill(folder)
        return all(are_distinct(np.fromfile(path, np.uint32).reshape(-1, 3)) for path in folder.iterdir())

    def _spill(self, folder: Path) -> None:
        addresses = np.concatenate([*self._held, np.empty((0, 3), np.uint32)])
        bucket = (addresses[:, 0] * np.uint32(0x9E3779B1)) >> np.uint32(24)
        for number in np.unique(bucket):
            with (folder / f"{number:03}").open("ab") as file:
                addresses[bucket == number].tofile(file)
        self._held = []
