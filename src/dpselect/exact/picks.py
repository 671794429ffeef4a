"""The samplers of :mod:`dpselect.kernels.picks`, in exact arithmetic and with the same random bits."""

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from dpselect.exact.gaps import Gaps
from dpselect.exact.reals import FIRST_DIGITS, UniformReal, is_below_exp, log_bounds, wide_context
from dpselect.exact.streams import ExactStream
from dpselect.kernels.arrays import FloatArray
from dpselect.parameters import Noise

__all__ = [
    "largest_priority",
    "pick_by_random_stopping",
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
    return _largest(contenders)


def _pick_passer(gaps: Gaps, visits: int, stream: ExactStream) -> int:
    seen: set[int] = set()
    for _ in range(visits):
        a = stream.below(len(gaps))
        while a in seen:
            a = stream.below(len(gaps))
        seen.add(a)
        if _passes(stream.uniform(), gaps[a]):
            return a
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
        a = stream.below(len(gaps))
        if _passes(stream.uniform(), gaps[a]):
            return a


def _passes(uniform: UniformReal, gap: Fraction | None) -> bool:
    return gap is not None and is_below_exp(uniform, gap)


class Contender(NamedTuple):
    """A noisy value: location + sign · scale · (−log U)."""

    candidate: int
    sign: int
    uniform: UniformReal
    scale: Fraction
    location: Fraction

    def bounds(self, digits: int) -> tuple[Fraction, Fraction]:
        """Return bounds on the value, tighter with more digits and more bits of U."""
        least = -Fraction(log_bounds(self.uniform.high, digits)[1])
        most = -Fraction(log_bounds(self.uniform.low, digits)[0]) if self.uniform.low else None
        if most is None:  # no bit of U is set yet
            self.uniform.refine()
            return self.bounds(digits)
        ends = (self.sign * self.scale * least, self.sign * self.scale * most)
        return self.location + min(ends), self.location + max(ends)


def _largest(contenders: list[Contender], floor: Fraction | None = None) -> int:
    """Return the candidate of the largest value, or −1 if that is below ``floor``."""
    digits = FIRST_DIGITS
    while True:
        bounds = [contender.bounds(digits) for contender in contenders]
        reached = max(low for low, _ in bounds)
        if floor is not None:
            if max(high for _, high in bounds) < floor:
                return -1
            reached = max(reached, floor)
        contenders = [c for c, (_, high) in zip(contenders, bounds, strict=True) if high >= reached]
        above_floor = floor is None or max(low for low, _ in bounds) > floor
        if len({contender.candidate for contender in contenders}) == 1 and above_floor:
            return contenders[0].candidate
        for contender in contenders:
            contender.uniform.refine()
        digits *= 2


def pick_by_random_stopping(
    noise: Noise,
    scores: FloatArray,
    sensitivities: FloatArray,
    scale: Fraction,
    gamma: float,
    eta: float,
    stream: ExactStream,
) -> int:
    """Draw K candidates, add noise of scale · Δ_a to each, and pick the largest."""
    contenders = []
    atom, atom_pick, ties = None, -1, 0
    inverted = stream.uniform() if eta != 1 and gamma < 1 else None
    stop = _stops(gamma, eta, inverted) if inverted is not None else None
    while True:
        a, coin = stream.below_and_uniform(scores.size)
        if sensitivities[a] == 0:
            if atom is None or scores[a] > atom:
                atom, atom_pick, ties = scores[a], a, 1
            elif scores[a] == atom:
                ties += 1
                if stream.below(ties) == 0:
                    atom_pick = a
        else:
            sign, uniform = stream.signed_uniform()
            sign = 1 if noise == "exponential" else sign
            spread = scale * Fraction(sensitivities[a])
            contenders.append(Contender(a, sign, uniform, spread, Fraction(scores[a])))
        if coin.is_below(Fraction(gamma)) if stop is None else next(stop):
            break
    if not contenders:
        return atom_pick
    winner = _largest(contenders, None if atom is None else Fraction(atom))
    return atom_pick if winner < 0 else winner


def _stops(gamma: float, eta: float, uniform: UniformReal) -> Iterator[bool]:
    """Yield, after each draw, whether it was the last: K is truncated negative binomial, by inversion."""
    drawn = 0
    digits = FIRST_DIGITS
    law = _cumulative(gamma, eta, digits)
    while True:
        drawn += 1
        reached = next(law)
        doubt = Fraction(1, 10 ** (digits - 15))
        while uniform.high > reached - doubt and uniform.low < reached + doubt:
            uniform.refine()
            digits *= 2
            law = _cumulative(gamma, eta, digits)
            for _ in range(drawn):
                reached = next(law)
            doubt = Fraction(1, 10 ** (digits - 15))
        yield uniform.high <= reached - doubt


def _cumulative(gamma: float, eta: float, digits: int) -> Iterator[Fraction]:
    """Yield Pr[K ≤ 1], Pr[K ≤ 2], …, each with an error below 10^(15 − digits) for up to 10¹⁰ terms."""
    context = wide_context(digits)
    decay = context.ln(Decimal(gamma)).copy_negate()
    lost = max(0, -context.multiply(Decimal(eta), decay).adjusted()) if eta else 0
    context = wide_context(digits + lost)  # γ^−η − 1 cancels that many digits
    stay = context.subtract(Decimal(1), Decimal(gamma))
    decay = context.ln(Decimal(gamma)).copy_negate()
    if eta == 0:
        term = context.divide(stay, decay)
    else:
        growth = context.subtract(context.exp(context.multiply(Decimal(eta), decay)), Decimal(1))
        term = context.divide(context.multiply(Decimal(eta), stay), growth)
    nothing = Decimal((0, (1,), -digits))
    total = Decimal(0)
    drawn = 0
    while True:
        total = context.add(total, term)
        yield Fraction(total) if total > nothing else Fraction(0)
        drawn += 1
        ratio = context.divide(context.add(Decimal(drawn), Decimal(eta)), Decimal(drawn + 1))
        term = context.multiply(term, context.multiply(stay, ratio))


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
        answer = stream.below(size)
        if answer == truth or is_below_exp(stream.uniform(), Fraction(epsilon)):
            return answer
