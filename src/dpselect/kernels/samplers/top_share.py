"""Top share: from the weights with probability s, and otherwise from the weights of the best candidates.

Both picks are drawn, and then the coin decides between them, so the work does not depend on the coin. A row reads
the words of its sequence in this order: the coin, the pick from all, and the pick from the best.
"""

import math

import numpy as np

from dpselect.kernels.arrays import (
    INVALID,
    LARGEST,
    UNRESOLVED,
    FlagArray,
    FloatArray,
    IndexArray,
    Rows,
    Share,
    Units,
)
from dpselect.kernels.blocks import load_next_row, row_extent, row_of
from dpselect.kernels.chacha import ManyStreams, StreamState, next_word, seek
from dpselect.kernels.coins import LOW, PASS, UNSURE, bernoulli_exp
from dpselect.kernels.compilation import compiled_without_refcounts, in_numpy
from dpselect.kernels.weighted_draws import (
    ABOVE,
    AT,
    BEFORE,
    NO,
    ONE,
    UNIT,
    ZERO,
    Sizes,
    Urn,
    draw_long,
    draw_weighted,
    equal_sizes,
    fill_urn,
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
def select_rows(
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
        magnitude = row_extent(scores)[1]
        load_next_row(row, last, table.scores, table.bounds)
        if not magnitude <= LARGEST:
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


@compiled_without_refcounts
def select_equal(
    first: int,
    last: int,
    table: Rows,
    share: Share,
    units: Units,
    error_bound: float,
    urn: Urn,
    stream: StreamState,
    picks: IndexArray,
) -> None:
    """Pick one candidate for each row of a block, by equal weights."""
    select_rows(first, last, table, NO, share, units, error_bound, urn, stream, picks)


# --- The same in NumPy, for many rows at once -------------------------------------------------------------


@in_numpy(select_equal, small=1 << 25)
def _select_equal(
    first: int,
    last: int,
    table: Rows,
    share: Share,
    units: Units,
    error_bound: float,
    urn: Urn,  # noqa: ARG001 - of the kernel
    stream: StreamState,  # noqa: ARG001
    picks: IndexArray,
) -> None:
    sizes, starts = np.diff(table.bounds[first : last + 1]), table.scores.starts[first:last]
    for size in np.unique(sizes).tolist():
        rows = np.flatnonzero(sizes == size)
        for some in np.array_split(rows, 1 + rows.size * max(size, 64) // (1 << 18)):  # in the processor's cache
            scores = table.scores.values[starts[some][:, None] + np.arange(size)]
            streams = ManyStreams(units.key, units.nonces[first + some])
            picks[first + some] = ManyRows(scores, streams).pick(share, error_bound)


class ManyRows:
    """Rows of the same size. Every candidate has the weight UNIT."""

    def __init__(self, scores: FloatArray, streams: ManyStreams) -> None:
        self.scores, self.size, self.streams = scores, scores.shape[1], streams

    def pick(self, share: Share, error_bound: float) -> IndexArray:
        """Return one pick for each row, like :func:`select_rows`."""
        valid = np.maximum(self.scores.max(axis=1), -self.scores.min(axis=1)) <= LARGEST
        self.scores[~valid] = 0.0
        odds, rows = odds_of(share, equal_sizes(self.size)), np.arange(len(self.scores))
        coins, threshold = self.streams.next_words(rows).astype(np.float64), math.exp(-odds.gap) * 2.0**64
        passes, fails = (coins + 1.0) * (1.0 + error_bound) < threshold, coins * (1.0 - error_bound) > threshold
        picks = self.draw(rows)
        picks = np.where(passes, picks, np.where(fails, self.draw_best(int(odds.share)), UNRESOLVED))
        return np.where(valid, picks, INVALID)

    def draw(self, rows: IndexArray) -> IndexArray:
        """Return a candidate of each row, like :func:`draw_weighted`."""
        drawn, waiting = np.empty(rows.size, np.int64), np.arange(rows.size)
        while waiting.size:
            places = (self.streams.next_words(rows[waiting]) >> np.uint64(32)) * np.uint64(self.size)
            drawn[waiting] = places >> np.uint64(32)
            waiting = waiting[places & LOW < np.uint64(2**32 % self.size)]
        return drawn

    def draw_long(self, rows: IndexArray, bounds: IndexArray) -> IndexArray:
        """Return an integer below a bound for each row, like :func:`draw_long`."""
        short = bounds < 2**52  # then a float has all its bits
        lengths = np.where(short, np.frexp(bounds)[1], 10 + np.frexp(bounds >> 10)[1])
        shifts = (64 - lengths).astype(np.uint64)
        drawn, waiting = np.empty(rows.size, np.int64), np.arange(rows.size)
        while waiting.size:
            drawn[waiting] = self.streams.next_words(rows[waiting]) >> shifts[waiting]
            waiting = waiting[drawn[waiting] >= bounds[waiting]]
        return drawn

    def draw_best(self, share: int) -> IndexArray:
        """Return a candidate of each row from the best share, like :func:`draw_best`."""
        found, rows = np.empty(len(self.scores), np.int64), np.arange(len(self.scores))
        bars, above = np.full(rows.size, -math.inf), np.full(rows.size, self.size)
        free = FREE_DRAWS + self.size // DIVISOR
        while rows.size:
            free -= 1
            if free >= 0:
                drawn = self.draw(rows)
            else:
                ranks = self.draw_long(rows, UNIT * above[rows]) // UNIT
                drawn = nth(self.scores[rows] > bars[rows, None], ranks)
            scores = self.scores[rows, drawn]
            hopeful = scores > bars[rows]
            trying, drawn, scores = rows[hopeful], drawn[hopeful], scores[hopeful]
            candidates = self.scores if trying.size == len(self.scores) else self.scores[trying]
            better = np.count_nonzero(candidates > scores[:, None], axis=1)
            bars[trying], above[trying] = scores, better
            inside = UNIT * better < share
            found[trying[inside]] = self.settle(trying[inside], drawn[inside], better[inside], share)
            hopeful[hopeful] = inside
            rows = rows[~hopeful]
        return found

    def settle(self, rows: IndexArray, drawn: IndexArray, better: IndexArray, share: int) -> IndexArray:
        """Return the pick of each row that drew a candidate with less than the share above it."""
        ties = self.scores[rows] == self.scores[rows, drawn][:, None]
        tied, room = np.count_nonzero(ties, axis=1), share - UNIT * better
        margin = np.flatnonzero(UNIT * tied > room)
        margin = margin[self.draw_long(rows[margin], UNIT * tied[margin]) >= room[margin]]
        places = self.draw_long(rows[margin], np.full(margin.size, share))
        at = places >= UNIT * better[margin]
        places[at] = self.draw_long(rows[margin[at]], UNIT * tied[margin[at]])
        level = self.scores[rows[margin], drawn[margin]][:, None]
        drawn[margin] = nth(np.where(at[:, None], ties[margin], self.scores[rows[margin]] > level), places // UNIT)
        return drawn


def nth(flags: FlagArray, ranks: IndexArray) -> IndexArray:
    """Return where in each row the flag number ``rank`` is, from 0."""
    places: IndexArray = np.argmax(np.cumsum(flags, axis=1) > ranks[:, None], axis=1)
    return places
