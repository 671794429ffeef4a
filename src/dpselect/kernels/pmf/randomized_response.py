"""The pmf of k-ary randomised response."""

import math

from dpselect.kernels.arrays import FloatArray, Rows
from dpselect.kernels.blocks import row_of
from dpselect.kernels.compilation import compiled


@compiled
def fill_rows(first: int, last: int, table: Rows, epsilon: float, pmf: FloatArray) -> None:
    """Fill e^ε/(e^ε + k − 1) for the best candidate, 1/(e^ε + k − 1) for others; ties share the difference."""
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
