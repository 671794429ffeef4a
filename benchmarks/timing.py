"""Medians over interleaved rounds, so that other load on the machine affects all contestants equally."""

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple


class Contestant(NamedTuple):
    """A function to time, and its share of the whole workload: a slow competitor may do a sample of the rows."""

    run: Callable[[], object]
    share: float = 1.0


def race(contestants: dict[str, Contestant], rounds: int) -> dict[str, float]:
    """Return each contestant's median seconds for the whole workload, extrapolated if it does only a share."""
    for contestant in contestants.values():
        contestant.run()  # compile, and warm the caches
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            start = time.perf_counter()
            contestant.run()
            seconds[name].append((time.perf_counter() - start) / contestant.share)
    return {name: statistics.median(times) for name, times in seconds.items()}
