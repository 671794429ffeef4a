"""Permute-and-flip with the same amount of work for all scores."""

from dpselect.exact.gaps import Gaps
from dpselect.exact.partial_uniform import largest_priority, passes
from dpselect.exact.streams import ExactStream

__all__ = ["pick"]


def pick(gaps: Gaps, _visits: int, stream: ExactStream) -> int:
    """Draw a coin and a priority for every candidate; pick the largest priority among those that pass."""
    passed = []
    for a, gap in enumerate(gaps):
        coin, priority = stream.uniform(), stream.uniform()
        if passes(coin, gap):
            passed.append((a, priority))
    return largest_priority(passed)
