"""The law that a function gives: probabilities in floats, one row at a time."""

import hashlib
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, count
from typing import Any, TypeAlias

import numpy as np

from dpselect.candidates import Batch
from dpselect.kernels.arrays import FloatArray, IndexArray
from dpselect.laws.base import Law
from dpselect.randomness import Randomness

Probabilities: TypeAlias = Callable[[FloatArray, FloatArray], Any]
"""``function(scores, sensitivities)``: the probability of each candidate of one row."""

TOLERANCE = 1e-9
"""How far the probabilities of a row may be from a sum of 1. Picks follow them divided by their exact sum."""


@dataclass(frozen=True, slots=True)
class GivenLaw(Law):
    """The probabilities of a function, which are floats, and picks that follow these floats exactly."""

    function: Probabilities

    def pmf(self, batch: Batch) -> FloatArray:
        """Return what the function says, row after row, as a flat array."""
        return np.concatenate([self._row(*batch.row(row)[:2]) for row in range(batch.rows)] or [np.empty(0)])

    def select(self, batch: Batch, randomness: Randomness) -> IndexArray:
        """Return one pick for each row."""
        units = randomness.units(batch.rows)
        secrets = (units.key.astype("<u4").tobytes() + nonce.tobytes() for nonce in units.nonces.astype("<u4"))
        rows = (self._row(*batch.row(row)[:2]).tolist() for row in range(batch.rows))
        return np.array([_pick(row, secret) for row, secret in zip(rows, secrets, strict=True)], dtype=np.int64)

    def _row(self, scores: FloatArray, sensitivities: FloatArray) -> FloatArray:
        given = np.asarray(self.function(scores, sensitivities))
        if given.shape != scores.shape or given.dtype.kind not in "iuf":
            raise ValueError(f"function must return one probability for each candidate, {scores.size} in this row")
        row = given.astype(np.float64)
        if not (row >= 0).all() or not abs(row.sum() - 1) <= TOLERANCE:  # NaN compares false
            raise ValueError("function must return probabilities: numbers ≥ 0 that add up to 1, within 1e-9")
        return row


def _pick(probabilities: list[float], secret: bytes) -> int:
    """Return a candidate with exactly these odds: floats are whole numbers of some unit."""
    ratios = [number.as_integer_ratio() for number in probabilities]
    finest = max(denominator for _, denominator in ratios)
    bounds = list(accumulate(share * (finest // denominator) for share, denominator in ratios))
    size = -(-bounds[-1].bit_length() // 8)
    excess = 8 * size - bounds[-1].bit_length()
    for attempt in count():
        bits = hashlib.shake_256(b"dpselect given" + secret + attempt.to_bytes(8, "little")).digest(size)
        if (drawn := int.from_bytes(bits, "little") >> excess) < bounds[-1]:
            break
    return bisect_right(bounds, drawn)
