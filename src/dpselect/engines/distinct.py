"""Whether all units of a stream are distinct, in bounded memory."""

import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from dpselect.kernels.arrays import WordArray
from dpselect.randomness import are_distinct

__all__ = ["DistinctUnits"]

MOST_IN_MEMORY = 1 << 20
"""Addresses of 12 bytes kept in memory; beyond, they go to files."""


class DistinctUnits:
    """Collects the addresses of units and finds out whether any two are the same.

    Two rows with one identifier would share their noise. A stream cannot be sorted, so addresses are kept: in
    memory up to a million, beyond that in temporary files by a hash, so that equal ones meet in one file.

    Example:
        >>> import numpy as np
        >>> with DistinctUnits() as units:
        ...     units.add(np.array([[1, 0, 0], [2, 0, 0]], dtype=np.uint32))
        ...     units.add(np.array([[1, 0, 0]], dtype=np.uint32))
        ...     units.are_distinct()
        False
    """

    def __init__(self, most_in_memory: int = MOST_IN_MEMORY) -> None:
        self._most = most_in_memory
        self._held: list[WordArray] = []
        self._count = 0
        self._directory: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._directory is not None:
            self._directory.cleanup()

    def add(self, addresses: WordArray) -> None:
        """Add addresses, three words each."""
        self._held.append(addresses)
        self._count += len(addresses)
        if self._count > self._most:
            self._spill()

    def are_distinct(self) -> bool:
        """Tell whether all addresses added so far are distinct."""
        if self._directory is None:
            return not self._held or are_distinct(np.concatenate(self._held))
        self._spill()
        buckets = Path(self._directory.name).iterdir()
        return all(are_distinct(np.fromfile(path, dtype=np.uint32).reshape(-1, 3)) for path in buckets)

    def _spill(self) -> None:
        if not self._count:
            return
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="dpselect-units-")
        addresses = np.concatenate(self._held)
        bucket = (addresses[:, 0] * np.uint32(0x9E3779B1)) >> np.uint32(24)
        order = np.argsort(bucket, kind="stable")
        numbers, starts = np.unique(bucket[order], return_index=True)
        for number, part in zip(numbers, np.split(addresses[order], starts[1:]), strict=True):
            with (Path(self._directory.name) / f"{number:03}").open("ab") as file:
                part.tofile(file)
        self._held, self._count = [], 0
