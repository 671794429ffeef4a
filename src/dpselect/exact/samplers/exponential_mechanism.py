"""The exponential mechanism (noisy max with Gumbel noise), by rejection sampling: one pick, or a list."""

from fractions import Fraction

from dpselect.exact.gaps import Gaps
from dpselect.exact.partial_uniform import passes
from dpselect.exact.streams import ExactStream

__all__ = ["pick", "pick_list"]


def pick(gaps: Gaps, _visits: int, stream: ExactStream) -> int:
    """Propose candidates uniformly and accept with probability exp(−gap)."""
    while True:
        coin = stream.uniform()
        a = coin.split(len(gaps))
        if passes(coin, gaps[a]):
            return a


def pick_list(scores: list[Fraction], rate: Fraction, count: int, stream: ExactStream) -> list[int]:
    """Pick one candidate after another, each with probability ∝ exp(rate · score) among those that are left."""
    picks: list[int] = []
    for _ in range(count):
        top = max(score for a, score in enumerate(scores) if a not in picks)
        gaps: Gaps = [None if a in picks else (top - score) * rate for a, score in enumerate(scores)]
        picks.append(pick(gaps, 0, stream))
    return picks
