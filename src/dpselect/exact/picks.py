"""The samplers of :mod:`dpselect.kernels.picks`, in exact arithmetic and with the same random bits."""

from fractions import Fraction

from dpselect.exact.contenders import Contender, largest
from dpselect.exact.gaps import Gaps
from dpselect.exact.reals import UniformReal, is_below_exp
from dpselect.exact.streams import ExactStream
from dpselect.kernels.arrays import FloatArray
from dpselect.parameters import Noise

__all__ = [
    "largest_priority",
    "pick_noisy_max",
    "pick_passer_at_fixed_work",
    "pick_randomized_response",
    "report_sign",
]


def pick_noisy_max(noise: Noise, gaps: Gaps, visits: int, stream: ExactStream) -> int:
    """Pick the candidate in front after noise of scale one."""
    if noise == "exponential":
        return _pick_passer(gaps, visits, stream)
    if noise == "gumbel":
        return _pick_until_pass(gaps, stream)
    contenders = []
    for a, gap in enumerate(gaps):
        sign, uniform = stream.signed_uniform()
        if gap is not None:
            contenders.append(Contender(a, sign, uniform, Fraction(1), -gap))
    return largest(contenders)


def _pick_passer(gaps: Gaps, visits: int, stream: ExactStream) -> int:
    seen: set[int] = set()
    while len(seen) < visits:
        coin = stream.uniform()
        a = coin.split(len(gaps))
        if a not in seen and _passes(coin, gaps[a]):
            return a
        seen.add(a)
    picked, passers = -1, 0
    for a in range(len(gaps)):
        if a not in seen and _passes(stream.candidate_uniform(a), gaps[a]):
            passers += 1
            if passers == 1 or stream.below(passers) == 0:
                picked = a
    return picked


def pick_passer_at_fixed_work(gaps: Gaps, stream: ExactStream) -> int:
    """Pick the passer of the largest priority, a coin and a priority drawn for everybody."""
    contenders = []
    for a, gap in enumerate(gaps):
        coin, priority = stream.uniform(), stream.uniform()
        if _passes(coin, gap):
            contenders.append((a, priority))
    return largest_priority(contenders)


def largest_priority(contenders: list[tuple[int, UniformReal]]) -> int:
    """Return whose random real number is the largest, looking at as many bits as that takes."""
    while len(contenders) > 1:
        reached = max(priority.low for _, priority in contenders)
        contenders = [(a, priority) for a, priority in contenders if priority.high > reached]
        for _, priority in contenders:
            priority.refine()
    return contenders[0][0]


def _pick_until_pass(gaps: Gaps, stream: ExactStream) -> int:
    while True:
        coin = stream.uniform()
        a = coin.split(len(gaps))
        if _passes(coin, gaps[a]):
            return a


def _passes(uniform: UniformReal, gap: Fraction | None) -> bool:
    return gap is not None and is_below_exp(uniform, gap)


def pick_randomized_response(scores: FloatArray, epsilon: float, stream: ExactStream) -> int:
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


def report_sign(positive: int, epsilon: float, stream: ExactStream) -> int:
    """Report one bit by randomised response."""
    return _keep_proposal(2, positive, epsilon, stream)


def _keep_proposal(size: int, truth: int, epsilon: float, stream: ExactStream) -> int:
    while True:
        coin = stream.uniform()
        answer = coin.split(size)
        if answer == truth or is_below_exp(coin, Fraction(epsilon)):
            return answer
