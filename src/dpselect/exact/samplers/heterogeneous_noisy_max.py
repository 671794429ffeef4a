"""The largest of height + share · Z: among the candidates that pass, the largest share · E."""

from fractions import Fraction

from dpselect.exact.noisy_scores import GumbelScore, NoisyScore, largest
from dpselect.exact.partial_uniform import bernoulli_exp
from dpselect.exact.streams import ExactStream
from dpselect.parameters import Noise

__all__ = ["pick", "pick_noisy"]


def pick(heights: list[Fraction], shares: list[Fraction], few: int, many: int, stream: ExactStream) -> int:
    """Pick the largest share · E among the candidates that pass (exponential noise)."""
    size, top = len(heights), max(heights)
    gaps = [(top - height) / share for height, share in zip(heights, shares, strict=True)]
    counts = _count_octaves(size, stream)
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


def pick_noisy(noise: Noise, heights: list[Fraction | None], shares: list[Fraction], stream: ExactStream) -> int:
    """Pick the largest height + share · Z (Laplace or Gumbel noise). ``None`` is a height of −∞."""
    noisy: list[NoisyScore | GumbelScore] = []
    for a, (height, share) in enumerate(zip(heights, shares, strict=True)):
        if noise == "gumbel":
            uniform = stream.uniform()
            score: NoisyScore | GumbelScore = GumbelScore(a, uniform, share, height or Fraction(0))
        else:
            sign, uniform = stream.signed_uniform()
            score = NoisyScore(a, sign, uniform, share, height or Fraction(0))
        if height is not None:
            noisy.append(score)
    return largest(noisy)


def _count_octaves(size: int, stream: ExactStream) -> list[int]:
    """Return the number of candidates in octave j or higher, j = 0, 1, …, until there are none."""
    counts = [size]
    while counts[-1]:
        found = [0, 0, 0]
        for first in range(0, counts[-1], 64):
            bits = 2 ** min(64, counts[-1] - first) - 1
            for halving in range(3):
                bits &= stream.word()
                found[halving] += bits.bit_count()
        counts += found
    return counts
