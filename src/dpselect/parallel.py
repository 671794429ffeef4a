"""Rows in parallel: ordinary threads over compiled kernels that release the interpreter lock.

Threads live for one call. Nothing survives into a forked child, and any number of callers may run at once. What a
kernel writes for a row depends on that row alone, so the number of threads does not change results.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TypeVar

import numpy as np

from dpselect.kernels.arrays import IndexArray

Result = TypeVar("Result")

BLOCKS_PER_THREAD = 8
"""Blocks for each thread. Several blocks keep one slow block from leaving the other threads idle."""

STARTING = 1e-3
"""The work, in seconds, below which starting threads costs more than it saves."""


_here = threading.local()
"""Knows whether the current thread already works on a block; such a block is not divided again."""


def _threads_asked_for() -> int | None:
    """Return the number of threads that ``DPSELECT_THREADS`` sets, or ``None`` if it is not set."""
    setting = os.environ.get("DPSELECT_THREADS")
    if not setting:
        return None
    if not (setting.isascii() and setting.isdecimal()) or int(setting) == 0:
        raise ValueError(f"DPSELECT_THREADS must be a positive whole number, got {setting!r}")
    return int(setting)


def processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_count() -> int:
    """Return the number of threads that ``DPSELECT_THREADS`` sets; by default one for each processor."""
    return _threads_asked_for() or processors()


def over_rows(
    bounds: IndexArray, work: Callable[[int, int], Result], *, seconds: float, most: int = 2**62
) -> list[Result]:
    """Call ``work(first, last)`` for blocks that cover all rows, each of at most ``most`` candidates or one row.

    Return what the calls return, in no particular order.

    Blocks hold about the same number of candidates, whatever the rows' lengths. ``seconds`` is roughly the time
    for one candidate. It decides whether threads are worth starting if ``DPSELECT_THREADS`` is not set. A call from
    within ``work`` starts no further threads, and has one block.
    """
    rows, candidates = bounds.size - 1, int(bounds[-1])
    if rows == 1 or hasattr(_here, "works"):
        return [work(0, rows)]
    threads = _threads_asked_for() or (1 if candidates * seconds < STARTING else processors())
    if threads == 1:
        return [work(*block) for block in cut_rows(bounds, most)]
    blocks = deque(cut_rows(bounds, min(most, candidates // (threads * BLOCKS_PER_THREAD))))
    # One task for each thread: to hand over one for each block takes longer than small blocks do.
    tasks: list[Future[None]] = []
    results: list[Result] = []
    with ThreadPoolExecutor(threads, initializer=lambda: setattr(_here, "works", True)) as pool:
        try:
            tasks += (pool.submit(_work_off, blocks, work, results) for _ in range(threads))
            wait(tasks, return_when=FIRST_EXCEPTION)
        finally:
            blocks.clear()  # after an error or an interrupt, no thread begins another one
    while tasks:
        tasks.pop().result()  # which raises if the task did; nothing here refers to the error then
    return results


def _work_off(blocks: deque[tuple[int, int]], work: Callable[[int, int], Result], results: list[Result]) -> None:
    while True:
        try:
            block = blocks.popleft()
        except IndexError:
            return
        results.append(work(*block))


def cut_rows(bounds: IndexArray, most: int, first: int = 0, last: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield blocks [first, last) of the rows, each of at most ``most`` candidates or of a single row.

    This is the one place where rows are cut into blocks. Row r has the candidates from ``bounds[r]`` to
    ``bounds[r + 1]``.
    """
    final = bounds.size - 1 if last is None else last
    while first < final:
        end = int(np.searchsorted(bounds, bounds[first] + most, side="right")) - 1
        end = min(max(end, first + 1), final)
        yield first, end
        first = end
