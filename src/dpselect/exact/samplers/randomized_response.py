"""k-ary randomised response, on candidates and on single bits."""

from fractions import Fraction

from dpselect.exact.partial_uniform import bernoulli_exp
from dpselect.exact.streams import ExactStream
from dpselect.kernels.arrays import FloatArray


def pick(scores: FloatArray, epsilon: float, stream: ExactStream) -> int:
    """Report the best candidate by randomised response."""
    best, winner, ties = None, -1, 0
    for a, score in enumerate(scores):
        if best is None or score > best:
            best, winner, ties = score, a, 1
        elif score == best:
            ties += 1
            if stream.below(ties) == 0:
                winner = a
    return _keep_proposal(scores.size, winner, epsilon, stream)


def report_bit(positive: int, epsilon: float, stream: ExactStream) -> int:
    """Report one bit by randomised response."""
    return _keep_proposal(2, positive, epsilon, stream)


def _keep_proposal(size: int, truth: int, epsilon: float, stream: ExactStream) -> int:
    while True:
        coin = stream.uniform()
        answer = coin.split(size)
        if answer == truth or bernoulli_exp(coin, Fraction(epsilon)):
            return answer
