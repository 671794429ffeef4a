"""Which step of how many is running: a bar on a terminal, a few lines elsewhere."""

import sys
from types import TracebackType
from typing import Self, TextIO

from tqdm import tqdm

__all__ = ["Steps"]


class Steps:
    """Shows which step of how many is running.

    Args:
        total: The number of steps.
        stream: Where to show it; by default standard error.
    """

    def __init__(self, total: int, stream: TextIO | None = None) -> None:
        self._total, self._begun = total, 0
        self._stream = sys.stderr if stream is None else stream
        shown = self._stream.isatty()
        self._bar = tqdm(file=self._stream, dynamic_ncols=True, total=total, unit="step") if shown else None

    def __enter__(self) -> Self:
        return self

    def begin(self, label: str) -> None:
        """Say that the step before is done and that this one begins."""
        done = self._begun
        self._begun += 1
        if self._bar is not None:
            self._bar.set_postfix_str(label, refresh=False)
            self._bar.update(min(done, 1))
        # A bar that redraws itself would fill a log; ten lines say as much.
        elif done == 0 or done * 10 // self._total > (done - 1) * 10 // self._total:
            self._print(done, label)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._bar is not None:
            self._bar.set_postfix_str("done", refresh=False)
            self._bar.update(min(self._begun, 1))
        elif kind is None:
            self._print(self._begun, "done")
        if self._bar is not None:
            self._bar.close()

    def _print(self, done: int, label: str) -> None:
        print(f"{done / self._total:4.0%}  {label}", file=self._stream, flush=True)
