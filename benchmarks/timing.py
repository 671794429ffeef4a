"""Medians over interleaved rounds, so that other work on the machine affects all contestants equally."""

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple


class Contestant(NamedTuple):
    """Something to time, and the share of the workload that it does: a slow rival may do a sample of rows."""

    run: Callable[[], object]
    share: float = 1.0


def race(contestants: dict[str, Contestant], rounds: int) -> dict[str, float]:
    """Return the median seconds that each contestant takes, or would take, for the whole workload."""
    for contestant in contestants.values():
        contestant.run()  # compiles, and warms the caches
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            start = time.perf_counter()
            contestant.run()
            seconds[name].append((time.perf_counter() - start) / contestant.share)
    return {name: statistics.median(times) for name, times in seconds.items()}
