"""Permute-and-flip: every candidate passes with probability exp(−gap), and one of those that pass is picked."""

from dpselect.exact.gaps import Gaps
from dpselect.exact.partial_uniform import passes
from dpselect.exact.streams import ExactStream


def pick(gaps: Gaps, visits: int, stream: ExactStream) -> int:
    """Visit candidates in random order. After ``visits`` of them, test all others and pick uniformly."""
    seen: set[int] = set()
    while len(seen) < visits:
        coin = stream.uniform()
        a = coin.split(len(gaps))
        if a not in seen and passes(coin, gaps[a]):
            return a
        seen.add(a)
    picked, passed = -1, 0
    for a in range(len(gaps)):
        if a not in seen and passes(stream.candidate_uniform(a), gaps[a]):
            passed += 1
            if passed == 1 or stream.below(passed) == 0:
                picked = a
    return picked
