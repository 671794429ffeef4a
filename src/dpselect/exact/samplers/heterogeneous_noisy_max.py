"""The largest of height + share · Z: among the candidates that pass, the largest share · E."""

from fractions import Fraction

from dpselect.exact.noisy_scores import NoisyScore, largest
from dpselect.exact.partial_uniform import bernoulli_exp
from dpselect.exact.streams import ExactStream


def pick(heights: list[Fraction], shares: list[Fraction], few: int, many: int, stream: ExactStream) -> int:
    """Pick the largest share · E among the candidates that pass."""
    size, top = len(heights), max(heights)
    gaps = [(top - height) / share for height, share in zip(heights, shares, strict=True)]
    counts = [size, *stream.count_octaves(size, stream.word)]  # of candidates in octave j or higher
    passed: list[NoisyScore] = []
    seen: set[int] = set()
    octave = len(counts) - 1
    while octave > 0 and counts[octave] <= (many if passed else few):
        while len(seen) < counts[octave]:
            coin = stream.uniform()
            a = coin.split(size)
            if a not in seen:
                seen.add(a)
                if bernoulli_exp(coin, gaps[a]):
                    uniform = stream.uniform()
                    uniform.move_to_octave(octave)
                    passed.append(NoisyScore(a, 1, uniform, shares[a], Fraction(0)))
        octave -= 1
    for a in range(size):
        if a not in seen and bernoulli_exp(stream.candidate_uniform(a), gaps[a]):
            uniform = stream.uniform()
            uniform.move_below_octave(octave + 1)
            passed.append(NoisyScore(a, 1, uniform, shares[a], Fraction(0)))
    return largest(passed)
