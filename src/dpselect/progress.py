"""Progress: a bar on a terminal, a line now and then elsewhere. Never anything private.

``tqdm`` draws the bars. It is loaded only where a bar is shown; without it there are lines.
"""

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Self, TypeAlias

SECONDS_BETWEEN_LINES = 5.0


class Step(NamedTuple):
    """How far a job has come."""

    done: int
    total: int | None
    """``None`` as long as it is not known."""
    unit: str
    """What is counted."""
    phase: str = ""
    """What is done before the work itself, such as "sorting". Each phase has a progress of its own."""


Report: TypeAlias = Callable[[Step], None]
"""Something that takes steps, such as :class:`Meter`."""


def ignore(step: Step) -> None:
    """Report nothing."""


def _bar(**settings: Any) -> Any:  # noqa: ANN401 - tqdm has no stubs of its own
    """Return a bar on a terminal, and ``None`` elsewhere."""
    if not sys.stderr.isatty():
        return None
    try:
        from tqdm import tqdm  # noqa: PLC0415 - only where a bar is shown
    except ModuleNotFoundError:
        return None
    return tqdm(file=sys.stderr, dynamic_ncols=True, **settings)


class Meter:
    """Shows steps as a bar with rate and remaining time, or as a line every few seconds."""

    _bar: Any = None

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._last = time.monotonic()
        self._phase: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, step: Step) -> None:
        """Show a step."""
        if self._quiet:
            return
        if step.phase != self._phase:  # its rate does not depend on the phases before it
            self.__exit__()
            self._phase = step.phase
            settings: dict[str, Any] = {"desc": step.phase} if step.phase else {}
            self._bar = _bar(unit=f" {step.unit}", unit_scale=True, leave=False, initial=step.done, **settings)
        if self._bar is not None:
            self._bar.total = step.total
            self._bar.update(step.done - self._bar.n)
        elif time.monotonic() - self._last >= SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            phase = f"{step.phase}: " if step.phase else ""
            share = f", {step.done / step.total:.0%}" if step.total else ""
            print(f"{phase}{step.done:,} {step.unit}{share}", file=sys.stderr, flush=True)
