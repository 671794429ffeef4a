"""Lists in one pass over a row, where that has the law of peeling."""

from fractions import Fraction

import numpy as np

from dpselect import kernels
from dpselect.candidates import Batch
from dpselect.exact import ExactStream
from dpselect.exact.samplers.exponential_mechanism import pick_list
from dpselect.kernels.arrays import DRAWN, IndexArray, Units
from dpselect.laws.base import draw_rows
from dpselect.randomness import Randomness

__all__ = ["draw_in_one_pass"]


def draw_in_one_pass(batch: Batch, budget: float, randomness: Randomness, lists: IndexArray) -> IndexArray:
    """Fill the lists of the rows where one pass has the law of peeling; return the other rows.

    If the candidates of a row differ in their scores only, every pick of a list is Pr[a] ∝ exp(budget · q_a/Δ)
    among the candidates that are left, with the same Δ in each round. The picks can therefore follow each other in
    one stream. By Yellott's theorem this is also the law of the order of q_a · budget/Δ + Gumbel noise.

    Args:
        batch: The rows.
        budget: The law's ``weight_budget``.
        randomness: The streams of one pass, which are not those of peeling.
        lists: Where the lists go, (rows, count).
    """
    kernel, loops = kernels.samplers.exponential_mechanism, kernels.samplers.loops

    def fill(batch: Batch, first: int, last: int, units: Units, width: float, states: IndexArray) -> None:
        room = np.empty(kernels.blocks.widest_row(first, last, batch.table.bounds))
        setup = loops.Setup(loops.Visits(0, 1), units, width)
        kernel.select_lists(loops.ScoreRows(first, last, batch.table, budget), setup, room, lists, states)

    def draw_exactly(batch: Batch, row: int, stream: ExactStream) -> int:
        scores, sensitivities, _ = batch.row(row)
        length = min(scores.size, lists.shape[1])
        rate = Fraction(budget) / Fraction(sensitivities[0])
        lists[row, :length] = pick_list([Fraction(score) for score in scores], rate, length, stream)
        return DRAWN

    states = draw_rows(batch, randomness.units(batch.rows), fill, draw_exactly)
    return np.flatnonzero(states != DRAWN)
