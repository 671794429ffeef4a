"""Top share: from the weights with probability s, and otherwise from the weights of the best candidates.

Both picks are drawn, and then the coin decides between them, so the work does not depend on the coin. A row reads
the words of its sequence in this order: the coin, the pick from all, and the pick from the best.
"""

import math

from dpselect.kernels.arrays import INVALID, LARGEST, UNRESOLVED, FloatArray, IndexArray, Rows, Share, Units
from dpselect.kernels.blocks import row_extent, row_of, widest_row
from dpselect.kernels.chacha import StreamState, new_stream, next_word, seek
from dpselect.kernels.coins import PASS, UNSURE, bernoulli_exp
from dpselect.kernels.compilation import compiled, compiled_without_refcounts
from dpselect.kernels.weighted_draws import (
    ABOVE,
    AT,
    BEFORE,
    ONE,
    UNIT,
    ZERO,
    Sizes,
    Urn,
    draw_long,
    draw_weighted,
    equal_sizes,
    fill_urn,
    new_urn,
    odds_of,
    weight_of,
)

FREE_DRAWS, DIVISOR = 32, 32
"""Draws from all candidates before only better ones are drawn, which takes a pass: 32 + k // 32."""

FEW = 16
"""So few candidates are searched one by one."""


@compiled_without_refcounts
def find(scores: FloatArray, bar: float, at: bool, weights: IndexArray, equal: bool, place: int) -> int:  # noqa: FBT001
    """Return the candidate at a place of the weights of those above the bar, or at it.

    It halves the row again and again, so its work does not depend on where the candidate is.
    """
    first, last = ZERO, scores.size
    while last - first > FEW:
        middle = (first + last) // 2
        before = weight_of(scores[first:middle], bar, at, weights[first:middle], equal)
        if place < before:
            last = middle
        else:
            place -= before
            first = middle
    found = first
    for a in range(first, last):
        inside = scores[a] == bar if at else scores[a] > bar
        weight = 0 if not inside else UNIT if equal else weights[a]
        found = a if 0 <= place < weight else found
        place -= weight
    return found


@compiled_without_refcounts
def draw_best(scores: FloatArray, share: int, urn: Urn, sizes: Sizes, stream: StreamState) -> int:
    """Return a candidate with probability ∝ W_a f_a, where f_a is the part of candidate a inside the best share.

    Draw from the weights and accept with probability f_a. Once a candidate is refused for certain, all that are not
    better are, too: after n draws about log n have taken a pass. Once the score at the margin is known, one draw
    from the share is left.
    """
    bar, above = -math.inf, sizes.total
    free = FREE_DRAWS + scores.size // DIVISOR
    while True:
        if free > 0:
            free -= 1
            a = draw_weighted(urn, sizes, stream)
            if scores[a] <= bar:
                continue
        else:
            a = find(scores, bar, ABOVE, urn.weights, sizes.equal, draw_long(stream, above))
        score = scores[a]
        better = weight_of(scores, score, ABOVE, urn.weights, sizes.equal)
        if better < share:
            tied = weight_of(scores, score, AT, urn.weights, sizes.equal)
            if better + tied <= share or draw_long(stream, tied) < share - better:
                return a
            place = draw_long(stream, share)
            at = place >= better
            return find(scores, score, at, urn.weights, sizes.equal, draw_long(stream, tied) if at else place)
        bar, above = score, better


@compiled_without_refcounts
def select_block(
    first: int,
    last: int,
    table: Rows,
    weighted: bool,  # noqa: FBT001
    share: Share,
    units: Units,
    error_bound: float,
    urn: Urn,
    stream: StreamState,
    picks: IndexArray,
) -> None:
    """Pick one candidate for each row of a block. Rows that share their weights share the table."""
    sizes = equal_sizes(ONE)
    odds = odds_of(share, sizes)
    known, start = BEFORE, BEFORE
    for row in range(first, last):
        scores = row_of(table.scores, table.bounds, row)
        if not row_extent(scores)[1] <= LARGEST:
            picks[row] = INVALID
            continue
        if scores.size != known or (weighted and table.offsets.starts[row] != start):
            known, start = scores.size, table.offsets.starts[row]
            sizes = fill_urn(row_of(table.offsets, table.bounds, row), urn) if weighted else equal_sizes(known)
            odds = odds_of(share, sizes)
        seek(stream, units.nonces, row)
        verdict = bernoulli_exp(next_word(stream), 1, odds.gap, error_bound)
        pick = draw_weighted(urn, sizes, stream)
        best = draw_best(scores, odds.share, urn, sizes, stream)
        picks[row] = UNRESOLVED if verdict == UNSURE else pick if verdict == PASS else best


@compiled
def select_rows(
    first: int,
    last: int,
    table: Rows,
    weighted: bool,  # noqa: FBT001
    share: Share,
    units: Units,
    error_bound: float,
    picks: IndexArray,
) -> None:
    """Pick one candidate for each row of a block."""
    urn = new_urn(widest_row(first, last, table.bounds) if weighted else 0)
    stream = new_stream(units.key)
    select_block(first, last, table, weighted, share, units, error_bound, urn, stream, picks)
