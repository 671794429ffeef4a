"""Progress: a bar with rate and remaining time on a terminal, a line now and then elsewhere."""

import sys
import time
from types import TracebackType
from typing import Any, Self

from dpselect.kernels import compilation

__all__ = ["Progress", "announce_compilation"]

SECONDS_BETWEEN_LINES = 10.0


def announce_compilation() -> None:
    """Say so if kernels have never been compiled here: the first pick then takes its time, and nothing moves."""
    kept = compilation.cache_directory()
    if kept is None:
        print(
            "compiling: some twenty seconds, each time, since there is nowhere to keep the result", file=sys.stderr
        )
    elif not any(kept.rglob("*.nbi")):
        print("compiling, this once: some twenty seconds", file=sys.stderr)


class Progress:
    """Counts rows, and tells a person about it."""

    def __init__(self, unit: str, *, quiet: bool) -> None:
        self._unit = unit
        self._quiet = quiet
        self._done = 0
        self._start = self._told = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> Self:
        if not self._quiet and sys.stderr.isatty():
            from tqdm import tqdm  # noqa: PLC0415 - only for terminals

            self._bar = tqdm(unit=f" {self._unit}", unit_scale=True, dynamic_ncols=True, leave=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def advance(self, rows: int, total: int | None, *, resumed: bool = False) -> None:
        """Count rows; those of an earlier run do not count for the rate."""
        self._done += rows
        if self._quiet:
            return
        if self._bar is not None:
            self._bar.total = total
            if resumed:
                self._bar.initial += rows
            self._bar.update(rows)
            return
        now = time.monotonic()
        if now - self._told >= SECONDS_BETWEEN_LINES:
            self._told = now
            print(self._line(now, total), file=sys.stderr, flush=True)

    def _line(self, now: float, total: int | None) -> str:
        rate = self._done / (now - self._start)
        line = f"{self._done:,} {self._unit}, {rate:,.0f} a second"
        if total and rate > 0:
            line += f", {self._done / total:.0%}, about {max(0.0, (total - self._done) / rate):.0f} seconds left"
        return line
