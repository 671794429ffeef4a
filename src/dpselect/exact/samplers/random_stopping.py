"""Random stopping: the largest of K noisy draws."""

import itertools
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

from dpselect.exact.noisy_scores import NoisyScore, largest
from dpselect.exact.partial_uniform import FIRST_DIGITS, PartialUniform, wide_context
from dpselect.exact.streams import ExactStream
from dpselect.kernels.arrays import FloatArray


def pick(
    one_sided: bool,  # noqa: FBT001 - as in the kernel
    scores: FloatArray,
    sensitivities: FloatArray,
    scale: Fraction,
    gamma: float,
    eta: float,
    stream: ExactStream,
) -> int:
    """Draw K candidates, add noise of scale ``scale`` · Δ_a to each, and pick the largest."""
    noisy = []
    atom, atom_pick = None, -1
    count = 1 if gamma == 1 else _count_draws(gamma, eta, stream.count_uniform())
    octaves, words = _octaves(count, stream, one_sided=one_sided)
    for i, octave in enumerate(octaves):
        uniform = stream.draw_uniform(words, i)
        a = uniform.split(scores.size)
        if sensitivities[a] == 0:
            if atom is None or scores[a] > atom:
                atom, atom_pick = scores[a], a
            continue
        if octave is not None:
            uniform.move_to_octave(octave)
        spread = scale * Fraction(sensitivities[a])
        noisy.append(NoisyScore(a, -1 if octave is None else 1, uniform, spread, Fraction(scores[a])))
    if not noisy:
        return atom_pick
    winner = largest(noisy, None if atom is None else Fraction(atom))
    return atom_pick if winner < 0 else winner


def _octaves(count: int, stream: ExactStream, *, one_sided: bool) -> tuple[list[int | None], int]:
    """Return each draw's octave, the largest noise first (``None``: negative), and the next word's number."""
    places = itertools.count(1)
    counts = stream.count_octaves(count, lambda: stream.paired_word(next(places)))
    if one_sided:
        counts = [count, *counts]  # all draws are positive
    rising: list[int | None] = [j for j in range(len(counts) - 1) for _ in range(counts[j] - counts[j + 1])]
    return rising[::-1] + [None] * (count - counts[0]), next(places)


def _count_draws(gamma: float, eta: float, uniform: PartialUniform) -> int:
    """Return K, the smallest n such that U < Pr[K ≤ n]: truncated negative binomial, by inversion."""
    digits = FIRST_DIGITS
    law = _cumulative(gamma, eta, digits)
    count = 0
    while True:
        count += 1
        reached = next(law)
        doubt = Fraction(1, 10 ** (digits - 15))
        while uniform.high > reached - doubt and uniform.low < reached + doubt:
            uniform.refine()
            digits *= 2
            law = _cumulative(gamma, eta, digits)
            for _ in range(count):
                reached = next(law)
            doubt = Fraction(1, 10 ** (digits - 15))
        if uniform.high <= reached - doubt:
            return count


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
