"""How far along: a bar on a terminal, plain lines elsewhere."""

import sys
from types import TracebackType
from typing import Self, TextIO

from tqdm import tqdm

__all__ = ["Progress"]


class Progress:
    """Shows which step of how many is running.

    Args:
        total: The number of steps.
        stream: Where to show it; standard error unless said.
    """

    def __init__(self, total: int, stream: TextIO | None = None) -> None:
        self._total = total
        self._begun = 0
        self._stream = sys.stderr if stream is None else stream
        # None means: only on a terminal.
        self._bar = tqdm(total=total, file=self._stream, unit="step", dynamic_ncols=True, disable=None)

    def begin(self, label: str) -> None:
        """Say that the step before is done and that this one begins."""
        done = self._begun
        self._begun += 1
        if not self._bar.disable:
            self._bar.set_postfix_str(label, refresh=False)
            self._bar.update(min(done, 1))
        # A bar that redraws itself would fill a log; some ten lines tell as much.
        elif done == 0 or done * 10 // self._total > (done - 1) * 10 // self._total:
            self._print(done, label)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and not self._bar.disable:
            self._bar.set_postfix_str("done", refresh=False)
            self._bar.update(min(self._begun, 1))
        elif kind is None:
            self._print(self._begun, "done")
        self._bar.close()

    def _print(self, done: int, label: str) -> None:
        print(f"{done / self._total:4.0%}  {label}", file=self._stream, flush=True)
