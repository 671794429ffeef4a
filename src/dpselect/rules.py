"""The rules for numbers, for arrays and tables alike: each is a test and the words of its message.

Scores are private: a message names the argument or the column and the rule, and never shows a value.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpselect.kernels.arrays import LARGEST, FloatArray


class Rule(NamedTuple):
    """The words of a rule, which follow the name of an argument or column, and a test of each number."""

    words: str
    is_broken: Callable[[FloatArray], NDArray[np.bool_]]


PRESENT = Rule("is missing or not a number", np.isnan)
"""For tables, where a number can be missing."""

FINITE = Rule(
    "must be finite (no NaN, no infinity) and at most 2^300 in magnitude (2e90; more could overflow)",
    lambda values: ~(np.abs(values) <= LARGEST),
)
NOT_NEGATIVE = Rule("must be ≥ 0 for every candidate", lambda values: values < 0)
NOT_TINY = Rule(
    "must be zero or at least 2^-300 in magnitude (5e-91; less could underflow)",
    lambda values: (values != 0) & (np.abs(values) < 1 / LARGEST),
)

NUMBERS: Mapping[str, tuple[Rule, ...]] = {
    "scores": (FINITE,),
    "sensitivities": (FINITE, NOT_NEGATIVE, NOT_TINY),
    "offsets": (FINITE,),
    "weights": (FINITE, NOT_NEGATIVE, NOT_TINY),
}
"""The rules for each argument, in the order in which they are checked."""

EXACT_INTEGERS = "must not hold integers beyond 2^53: float64 cannot represent them exactly"
POSITIVE_WEIGHT = "must be positive for at least one candidate of each row"
HAS_CANDIDATES = "must hold at least one candidate"
DISTINCT_CANDIDATES = "must name each candidate once"
DISTINCT_UNITS = "must name each unit once"
