"""Entry points of the kernels: each works on the block of rows [first, last) of a table."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpselect.kernels.arrays import (
    INVALID,
    LARGEST,
    UNRESOLVED,
    Column,
    FloatArray,
    IndexArray,
    Normalisation,
    Table,
    Units,
)
from dpselect.kernels.chacha import Tape, load_pair, new_stream, next_word, seek, seek_in_pair
from dpselect.kernels.compilation import borrowing, compiled, inlined
from dpselect.kernels.draws import FAIL, PASS, UNSURE, draw_below, judge_word, split
from dpselect.kernels.gaps import (
    GLOBAL,
    INDIVIDUAL,
    PAIRWISE,
    fill_global_gaps,
    fill_individual_gaps,
    fill_pairwise_gaps,
    fill_plain_gaps,
)
from dpselect.kernels.instructions import MAGNITUDE, float_bits, float_of_bits, ordered_bits_of
from dpselect.kernels.largest_draws import keep_larger, length_of, pick_by_random_stopping, pick_largest_noisy
from dpselect.kernels.lineups import KNOWN, LAZY, Lineup, fill_heights
from dpselect.kernels.passers import fill_exponential_pmf, fill_gumbel_pmf
from dpselect.kernels.picks import (
    EXPENSIVE,
    Source,
    pick_noisy_max,
    pick_passer,
    visits_of,
)
from dpselect.kernels.quadrature import EXPONENTIAL, GUMBEL, ONCE, fill_largest_noisy_pmf
from dpselect.kernels.ranks import rank_covariance_sign, rising
from dpselect.kernels.twofloat import add


@inlined
def row_of(column: Column, bounds: IndexArray, row: int) -> FloatArray:
    """Return the slice of a column that belongs to a row."""
    start = column.starts[row]
    return column.values[start : start + bounds[row + 1] - bounds[row]]


@borrowing
def widest_row(first: int, last: int, bounds: IndexArray) -> int:
    """Return the largest number of candidates of a row in the block."""
    size = 0
    for row in range(first, last):
        size = max(size, bounds[row + 1] - bounds[row])
    return size


class Order(NamedTuple):
    """The candidates by rising sensitivity, and where the sensitivities start that they were sorted for."""

    candidates: IndexArray
    start: int


@compiled
def no_order() -> Order:
    """Return the order of no row."""
    return Order(np.empty(0, np.int64), -1)


@compiled
def sensitivity_order(table: Table, row: int, known: Order) -> Order:
    """Return the order of a row, which is the known one if that was sorted for the same sensitivities."""
    start = table.sensitivities.starts[row]
    if known.start == start and known.candidates.size == table.bounds[row + 1] - table.bounds[row]:
        return known
    return Order(np.argsort(row_of(table.sensitivities, table.bounds, row)), start)


@compiled
def fill_gaps(
    table: Table, rule: Normalisation, row: int, order: Order, hull: IndexArray, gaps: FloatArray
) -> tuple[bool, Order]:
    """Fill the gaps of one row; return whether to trust them, and the last order of sensitivities, for reuse."""
    scores = row_of(table.scores, table.bounds, row)
    sensitivities = row_of(table.sensitivities, table.bounds, row)
    public = row_of(table.public, table.bounds, row)
    tilt, weight = rule.tilts[row], rule.anchor_weights[row]
    if rule.kind == GLOBAL and rule.plain:
        trusted = fill_plain_gaps(scores, sensitivities, rule.budget, gaps)
    elif rule.kind == GLOBAL:
        trusted = fill_global_gaps(scores, public, sensitivities, tilt, rule.budget, gaps)
    elif rule.kind == INDIVIDUAL:
        trusted = fill_individual_gaps(scores, public, sensitivities, tilt, weight, rule.budget, gaps)
    else:
        order = sensitivity_order(table, row, order)
        trusted = fill_pairwise_gaps(scores, public, sensitivities, order.candidates, tilt, rule.budget, hull, gaps)
    return trusted, order


@compiled
def noisy_max_gaps(
    first: int, last: int, table: Table, rule: Normalisation, gaps: FloatArray, trusted: NDArray[np.bool_]
) -> None:
    """Fill the gaps of every row, and whether to trust them, counted from the first row of the block."""
    hull = np.empty(widest_row(first, last, table.bounds), np.int64)
    order = no_order()
    for row in range(first, last):
        target = gaps[table.bounds[row] : table.bounds[row + 1]]
        trusted[row - first], order = fill_gaps(table, rule, row, order, hull, target)


@compiled
def noisy_max_laws(first: int, last: int, bounds: IndexArray, noise: int, pmf: FloatArray) -> None:
    """Turn the gaps of every row into the exact probabilities of a noisy max, in place."""
    for row in range(first, last):
        target = pmf[bounds[row] : bounds[row + 1]]
        if noise == EXPONENTIAL:
            fill_exponential_pmf(target, target)
        elif noise == GUMBEL:
            fill_gumbel_pmf(target, target)
        else:
            scores = -np.minimum(target, 1e6)  # beyond 1e6 scales Laplace noise is exactly nothing
            fill_largest_noisy_pmf(noise, scores, np.ones(scores.size), ONCE, 1.0, 1.0, target)


@borrowing
def row_extent(values: FloatArray) -> tuple[float, float]:
    """Return the largest value, and the largest magnitude (infinite or NaN if any value is)."""
    top, largest = -MAGNITUDE, np.int64(0)
    for i in range(values.size):
        bits = float_bits(values[i])
        top = max(top, ordered_bits_of(bits))
        largest = max(largest, bits & MAGNITUDE)
    return float_of_bits(ordered_bits_of(top)), float_of_bits(largest)


@borrowing
def pick_on_demand(
    first: int,
    last: int,
    table: Table,
    rule: Normalisation,
    noise: int,
    fixed_work: bool,  # noqa: FBT001
    units: Units,
    source: Source,
    room: FloatArray,
    picks: IndexArray,
) -> None:
    """Pick one candidate of every row by gaps that are computed only for candidates looked at.

    Rows for which that is not possible are left EXPENSIVE, and rows with a bad score INVALID.
    """
    widest = 0.0
    for row in range(first, last):
        scores = row_of(table.scores, table.bounds, row)
        sensitivities = row_of(table.sensitivities, table.bounds, row)
        visits = visits_of(rule.kind, scores.size)
        top, magnitude = row_extent(scores)
        picks[row] = EXPENSIVE if magnitude <= LARGEST else INVALID
        if picks[row] == INVALID or not rule.plain:
            continue
        seek(source.tape, units.nonces, row)
        if rule.kind == GLOBAL:
            if row == first or table.sensitivities.starts[row] != table.sensitivities.starts[row - 1]:
                widest = row_extent(sensitivities)[0]
            if widest > 0.0:
                lineup = Lineup(scores, top, rule.budget / widest, KNOWN, sensitivities, 0.0, 0.0, 0.0)
                picks[row] = pick_noisy_max(noise, fixed_work, lineup, visits, source)
        elif rule.kind == PAIRWISE and noise == EXPONENTIAL:
            heights = room[: scores.size]
            top, width, narrowest, error = fill_heights(scores, sensitivities, rule.tilts[row], heights)
            if narrowest > 0.0:
                lineup_of_heights = Lineup(heights, top, rule.budget, LAZY, sensitivities, width, narrowest, error)
                picks[row] = pick_passer(lineup_of_heights, visits, source)


@compiled
def noisy_max_select(
    first: int,
    last: int,
    table: Table,
    rule: Normalisation,
    noise: int,
    fixed_work: bool,  # noqa: FBT001
    units: Units,
    width: float,
    room: FloatArray,
    picks: IndexArray,
) -> None:
    """Pick one candidate of every row by a noisy max over normalised scores; ``room`` holds those of one row."""
    widest = room.size
    hull = np.empty(widest, np.int64)
    order = no_order()
    seen = np.zeros(widest, np.bool_)
    visited = np.empty(visits_of(rule.kind, widest) + 1, np.int64)
    source = Source(new_stream(units.key), width, seen, visited)
    pick_on_demand(first, last, table, rule, noise, fixed_work, units, source, room, picks)
    for row in range(first, last):
        if picks[row] == EXPENSIVE:
            values = room[: table.bounds[row + 1] - table.bounds[row]]
            trusted, order = fill_gaps(table, rule, row, order, hull, values)
            np.negative(values, values)
            seek(source.tape, units.nonces, row)
            visits = visits_of(rule.kind, values.size)
            sensitivities = row_of(table.sensitivities, table.bounds, row)
            lineup = Lineup(values, 0.0, 1.0, KNOWN, sensitivities, 0.0, 0.0, 0.0)
            picks[row] = pick_noisy_max(noise, fixed_work, lineup, visits, source) if trusted else UNRESOLVED


@compiled
def largest_noisy_pmf(
    first: int,
    last: int,
    table: Table,
    noise: int,
    scale: float,
    stopping: bool,  # noqa: FBT001
    gamma: float,
    eta: float,
    pmf: FloatArray,
) -> None:
    """Fill the exact probabilities of the largest noisy score, candidate a's noise being scale · Δ_a."""
    for row in range(first, last):
        scores = row_of(table.scores, table.bounds, row)
        scales = row_of(table.sensitivities, table.bounds, row) * scale
        target = pmf[table.bounds[row] : table.bounds[row + 1]]
        fill_largest_noisy_pmf(noise, scores, scales, stopping, gamma, eta, target)


@borrowing
def pick_largest(
    first: int,
    last: int,
    table: Table,
    noise: int,
    scale: float,
    stopping: bool,  # noqa: FBT001
    gamma: float,
    eta: float,
    units: Units,
    tape: Tape,
    width: float,
    picks: IndexArray,
) -> None:
    """Pick the largest noisy score of every row, candidate a's noise being scale · Δ_a."""
    length = length_of(gamma, eta)
    widest = 0.0
    for row in range(first, last):
        second = (row - first) & 1
        if stopping and not second:
            load_pair(tape, units.nonces, row, min(row + 1, last - 1))
        seek_in_pair(tape, units.nonces, row, second)
        scores = row_of(table.scores, table.bounds, row)
        sensitivities = row_of(table.sensitivities, table.bounds, row)
        top, magnitude = row_extent(scores)
        if not magnitude <= LARGEST:
            picks[row] = INVALID
        elif stopping:
            if row == first or table.sensitivities.starts[row] != table.sensitivities.starts[row - 1]:
                widest = row_extent(sensitivities)[0]
            picks[row] = pick_by_random_stopping(
                noise, scores, top, sensitivities, widest, scale, length, tape, width
            )
        else:
            picks[row] = pick_largest_noisy(noise, scores, top, sensitivities, scale, tape)


@compiled
def largest_noisy_select(
    first: int,
    last: int,
    table: Table,
    noise: int,
    scale: float,
    stopping: bool,  # noqa: FBT001
    gamma: float,
    eta: float,
    units: Units,
    width: float,
    picks: IndexArray,
) -> None:
    """Pick the largest noisy score of every row, candidate a's noise being scale · Δ_a."""
    tape = new_stream(units.key)
    pick_largest(first, last, table, noise, scale, stopping, gamma, eta, units, tape, width, picks)


@compiled
def randomized_response_pmf(first: int, last: int, table: Table, epsilon: float, pmf: FloatArray) -> None:
    """Fill e^ε/(e^ε + k − 1) for the best candidate, 1/(e^ε + k − 1) for others; ties share the surplus."""
    for row in range(first, last):
        scores = row_of(table.scores, table.bounds, row)
        top = scores.max()
        ties = 0
        for score in scores:
            ties += score == top
        norm = 1.0 + (scores.size - 1) * math.exp(-epsilon)
        for a in range(scores.size):
            surplus = -math.expm1(-epsilon) / ties if scores[a] == top else 0.0
            pmf[table.bounds[row] + a] = (math.exp(-epsilon) + surplus) / norm


@borrowing
def keep_proposal(size: int, truth: int, epsilon: float, tape: Tape, width: float) -> int:
    """Propose uniform answers until one is kept: the truth surely, any other with probability e^−ε.

    The answer kept has the odds e^ε : 1 : … : 1 of randomised response.
    """
    while True:
        answer, coin = split(next_word(tape), size)
        if answer == UNSURE:
            return UNRESOLVED
        verdict = PASS if answer == truth else judge_word(coin, size, epsilon, width)
        if verdict != FAIL:
            return answer if verdict == PASS else UNRESOLVED


@compiled
def randomized_response_select(
    first: int, last: int, table: Table, epsilon: float, units: Units, width: float, picks: IndexArray
) -> None:
    """Report the best candidate of every row by randomised response; ties for it are broken uniformly."""
    tape = new_stream(units.key)
    for row in range(first, last):
        seek(tape, units.nonces, row)
        scores = row_of(table.scores, table.bounds, row)
        best, winner, ties = -math.inf, 0, 0
        for a in range(scores.size):
            best, winner, ties = keep_larger(scores[a], a, best, winner, ties, tape)
        picks[row] = keep_proposal(scores.size, winner, epsilon, tape, width)


@compiled
def uniform_select(first: int, last: int, table: Table, units: Units, picks: IndexArray) -> None:
    """Pick a candidate of every row at random."""
    tape = new_stream(units.key)
    for row in range(first, last):
        seek(tape, units.nonces, row)
        picks[row] = draw_below(tape, table.bounds[row + 1] - table.bounds[row])


@compiled
def correlation_signs(first: int, last: int, table: Table, positive: IndexArray) -> None:
    """Tell for every row whether Spearman's correlation of scores and sensitivities is at least 0."""
    for row in range(first, last):
        scores = row_of(table.scores, table.bounds, row)
        sensitivities = row_of(table.sensitivities, table.bounds, row)
        positive[row] = rank_covariance_sign(scores, sensitivities) >= 0


@compiled
def noisy_signs(
    first: int,
    last: int,
    positive: IndexArray,
    epsilon: float,
    units: Units,
    width: float,
    reported: IndexArray,
) -> None:
    """Report each row's sign by randomised response: the true one has the odds e^ε : 1."""
    tape = new_stream(units.key)
    for row in range(first, last):
        seek(tape, units.nonces, row)
        reported[row] = keep_proposal(2, positive[row], epsilon, tape, width)


@compiled
def tail_quantiles(
    first: int,
    last: int,
    bounds: IndexArray,
    values: FloatArray,
    pmf: FloatArray,
    excess: float,
    quantiles: FloatArray,
) -> None:
    """Fill, for every row, the smallest of its values that is exceeded with probability at most ``excess``."""
    for row in range(first, last):
        numbers, chances = values[bounds[row] : bounds[row + 1]], pmf[bounds[row] : bounds[row + 1]]
        keys, order = rising(numbers)
        tail, place = 0.0, numbers.size - 1  # the tail is that of the values behind this place
        while place > 0:
            below = place
            while below >= 0 and keys[below] == keys[place]:
                tail += chances[order[below]]
                below -= 1
            if tail > excess or below < 0:
                break
            place = below
        quantiles[row] = numbers[order[place]]


@borrowing
def largest_magnitude(values: FloatArray) -> float:
    """Return the largest magnitude; infinite or NaN if any value is."""
    return row_extent(values)[1]


@borrowing
def largest_miss(first: int, last: int, bounds: IndexArray, pmf: FloatArray) -> float:
    """Return how far the probabilities of any row are from adding up to 1 (infinite for NaN or negatives)."""
    worst = 0.0
    for row in range(first, last):
        high, low = -1.0, 0.0
        for a in range(bounds[row], bounds[row + 1]):
            if not pmf[a] >= 0.0:
                return math.inf
            high, low = add(high, low, pmf[a], 0.0)
        worst = max(worst, abs(high + low))
    return worst
