"""k-ary randomised response, on candidates and on single bits."""

import math

from dpselect.kernels.arrays import UNRESOLVED, IndexArray, Rows, Units
from dpselect.kernels.blocks import row_of
from dpselect.kernels.chacha import StreamState, next_word, seek
from dpselect.kernels.coins import FAIL, PASS, UNSURE, bernoulli_exp, keep_larger, split
from dpselect.kernels.compilation import compiled_without_refcounts


@compiled_without_refcounts
def keep_proposal(size: int, truth: int, epsilon: float, stream: StreamState, error_bound: float) -> int:
    """Propose uniform answers until one is accepted: the truth with certainty, any other with probability e^−ε.

    The accepted answer has the odds e^ε : 1 : … : 1 of randomised response.
    """
    while True:
        answer, coin = split(next_word(stream), size)
        if answer == UNSURE:
            return UNRESOLVED
        verdict = PASS if answer == truth else bernoulli_exp(coin, size, epsilon, error_bound)
        if verdict != FAIL:
            return answer if verdict == PASS else UNRESOLVED


@compiled_without_refcounts
def select_rows(
    first: int,
    last: int,
    table: Rows,
    epsilon: float,
    units: Units,
    stream: StreamState,
    error_bound: float,
    picks: IndexArray,
) -> None:
    """Report the best candidate of every row by randomised response; ties for the best are broken uniformly."""
    for row in range(first, last):
        seek(stream, units.nonces, row)
        scores = row_of(table.scores, table.bounds, row)
        best, winner, ties = -math.inf, 0, 0
        for a in range(scores.size):
            best, winner, ties = keep_larger(scores[a], a, best, winner, ties, stream)
        picks[row] = keep_proposal(scores.size, winner, epsilon, stream, error_bound)


@compiled_without_refcounts
def select_bits(
    first: int,
    last: int,
    positive: IndexArray,
    epsilon: float,
    units: Units,
    stream: StreamState,
    error_bound: float,
    reported: IndexArray,
) -> None:
    """Report each row's sign by randomised response; the true sign has odds e^ε : 1."""
    for row in range(first, last):
        seek(stream, units.nonces, row)
        reported[row] = keep_proposal(2, positive[row], epsilon, stream, error_bound)
