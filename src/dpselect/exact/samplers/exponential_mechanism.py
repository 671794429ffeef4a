"""The exponential mechanism (noisy max with Gumbel noise), by rejection sampling."""

from dpselect.exact.gaps import Gaps
from dpselect.exact.partial_uniform import passes
from dpselect.exact.streams import ExactStream


def pick(gaps: Gaps, _visits: int, stream: ExactStream) -> int:
    """Propose candidates uniformly and accept with probability exp(−gap)."""
    while True:
        coin = stream.uniform()
        a = coin.split(len(gaps))
        if passes(coin, gaps[a]):
            return a
