"""Permute-and-flip by the same amount of work for all scores."""

from dpselect.exact.gaps import Gaps
from dpselect.exact.partial_uniform import largest_priority, passes
from dpselect.exact.streams import ExactStream

__all__ = ["pick"]


def pick(gaps: Gaps, _visits: int, stream: ExactStream) -> int:
    """Pick the passer of the largest priority, a coin and a priority drawn for everybody."""
    contenders = []
    for a, gap in enumerate(gaps):
        coin, priority = stream.uniform(), stream.uniform()
        if passes(coin, gap):
            contenders.append((a, priority))
    return largest_priority(contenders)
