"""Top share, in whole numbers and fractions."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from dpselect.exact.partial_uniform import PartialUniform, exp_bounds, is_below
from dpselect.exact.streams import ExactStream
from dpselect.kernels.arrays import FloatArray


class PublicTable(NamedTuple):
    """The integer weights of a row, columns (owner, cut, other owner) to draw from them, and their height."""

    weights: list[int]
    columns: list[tuple[int, int, int]]
    height: int


def pick(
    scores: FloatArray, table: PublicTable, share: int, epsilon: float, draws: int, stream: ExactStream
) -> int:
    """Pick from all weights with probability s, and otherwise from the best, which together weigh ``share``.

    ``draws`` of the picks from the best are from all candidates; those that follow are from better ones only.
    """
    ignores_scores = coin(stream.uniform(), epsilon, Fraction(share, sum(table.weights)))
    from_all = _draw(table, stream)
    best = _draw_best(scores.tolist(), table, share, draws, stream)
    return from_all if ignores_scores else best


def coin(uniform: PartialUniform, epsilon: float, share: Fraction) -> bool:
    """Return whether a uniform real number is below s = 1/(1 + (e^ε − 1) · share)."""
    while epsilon >= uniform.bits + share.denominator.bit_length():  # s < e^−ε/share < 2^−bits: any set bit decides
        if uniform.low > 0:
            return False
        uniform.refine()
    decay = Fraction(epsilon)
    return is_below(uniform, lambda digits: (x / (x + share * (1 - x)) for x in exp_bounds(decay, digits)))


def _draw_best(scores: list[float], table: PublicTable, share: int, draws: int, stream: ExactStream) -> int:
    weights, refused = table.weights, -float("inf")
    while True:
        if draws > 0:
            draws -= 1
            a = _draw(table, stream)
            if scores[a] <= refused:
                continue
        else:
            above = [a for a, score in enumerate(scores) if score > refused]
            a = _find(above, weights, below(stream, sum(weights[b] for b in above)))
        better = [b for b, score in enumerate(scores) if score > scores[a]]
        tied = [b for b, score in enumerate(scores) if score == scores[a]]
        room, wanted = share - sum(weights[b] for b in better), sum(weights[b] for b in tied)
        if room > 0:
            if wanted <= room or below(stream, wanted) < room:
                return a
            place = below(stream, share)
            if place < share - room:
                return _find(better, weights, place)
            return _find(tied, weights, below(stream, wanted))
        refused = scores[a]


def _draw(table: PublicTable, stream: ExactStream) -> int:
    while True:
        upper, lower = divmod(stream.word(), 2**32)
        column, column_rest = divmod(upper * len(table.columns), 2**32)
        place, place_rest = divmod(lower * table.height, 2**32)
        if column_rest >= 2**32 % len(table.columns) and place_rest >= 2**32 % table.height:
            owner, cut, other = table.columns[column]
            drawn = owner if place < cut else other
            if drawn >= 0:
                return drawn


def below(stream: ExactStream, bound: int) -> int:
    """Return a uniform integer below a bound: the leading bits of as many words as it takes, until one is below."""
    bits = bound.bit_length()
    while True:
        number = 0
        for _ in range(-(-bits // 64)):
            number = number << 64 | stream.word()
        number >>= -bits % 64
        if number < bound:
            return number


def _find(candidates: Sequence[int], weights: list[int], place: int) -> int:
    for a in candidates:
        if place < weights[a]:
            return a
        place -= weights[a]
    raise AssertionError("the place is below the weight of all candidates")
