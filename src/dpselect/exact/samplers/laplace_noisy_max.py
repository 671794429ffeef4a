"""Noisy max with Laplace noise."""

from fractions import Fraction

from dpselect.exact.gaps import Gaps
from dpselect.exact.noisy_scores import NoisyScore, largest
from dpselect.exact.streams import ExactStream


def pick(gaps: Gaps, _visits: int, stream: ExactStream) -> int:
    """Pick the largest of (Laplace noise − gap)."""
    noisy = []
    for a, gap in enumerate(gaps):
        sign, uniform = stream.signed_uniform()
        if gap is not None:
            noisy.append(NoisyScore(a, sign, uniform, Fraction(1), -gap))
    return largest(noisy)
