"""The law of combined GEM: randomised response on the sign of a correlation, then one of two GEMs."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpselect import kernels
from dpselect.candidates import Batch
from dpselect.exact import ExactStream
from dpselect.exact.samplers.randomized_response import report_bit
from dpselect.kernels.arrays import FloatArray, IndexArray, Units
from dpselect.laws.base import Law, draw_rows
from dpselect.laws.noisy_max import NoisyMaxLaw
from dpselect.randomness import Randomness
from dpselect.ranks import over_ranks, rank_covariances


@dataclass(frozen=True, slots=True)
class CombinedLaw(Law):
    """GEM with tilt −1 where a noisy answer says that the correlation is at least 0, and with tilt +1 elsewhere."""

    sign_epsilon: float
    gem: Callable[[float | FloatArray], NoisyMaxLaw]
    """Returns GEM at the pick's budget for a tilt, which may differ between rows."""

    def pmf(self, batch: Batch) -> FloatArray:
        """Return the exact probability of each candidate, as a flat array."""
        truth = 1.0 / (1.0 + math.exp(-self.sign_epsilon))
        lie = math.exp(-self.sign_epsilon) * truth
        positive = np.repeat(_signs(batch), batch.sizes) == 1
        modified, original = self.gem(-1.0).pmf(batch), self.gem(1.0).pmf(batch)
        return np.where(positive, truth * modified + lie * original, lie * modified + truth * original)

    def select(self, batch: Batch, randomness: Randomness) -> IndexArray:
        """Return one pick for each row."""
        signs, epsilon = _signs(batch), self.sign_epsilon

        def fill(_: Batch, first: int, last: int, units: Units, error_bound: float, answers: IndexArray) -> None:
            kernels.samplers.randomized_response.select_bits(
                first, last, signs, epsilon, units, kernels.chacha.new_stream(units.key), error_bound, answers
            )

        def answer(_: Batch, row: int, stream: ExactStream) -> int:
            return report_bit(int(signs[row]), epsilon, stream)

        answers = draw_rows(batch, randomness.substream("correlation").units(batch.rows), fill, answer)
        tilts = np.where(answers == 1, -1.0, 1.0)
        return self.gem(tilts).select(batch, randomness.substream("pick"))


def _signs(batch: Batch) -> IndexArray:
    """Return, for each row, 1 if the correlation is at least 0 and 0 otherwise."""
    return (over_ranks(batch, rank_covariances) >= 0).astype(np.int64)
