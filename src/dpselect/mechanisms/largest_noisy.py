"""The shape that random stopping and the naive heterogeneous noisy max share.

    noise in proportion to each candidate's own sensitivity  →  pick the largest noisy score

The noisy max draws every candidate once; random stopping draws a random number of random candidates.
"""

from dataclasses import dataclass
from fractions import Fraction

from dpselect import exact, kernels
from dpselect.candidates import Batch
from dpselect.kernels.arrays import FloatArray, IndexArray
from dpselect.mechanisms.rows import pick_rows, weigh_rows
from dpselect.parameters import NOISES, Noise
from dpselect.randomness import Randomness

__all__ = ["LargestNoisy"]


@dataclass(frozen=True, slots=True)
class LargestNoisy:
    """Which noise, how much of it, and how many candidates are drawn."""

    noise: Noise
    scale: Fraction
    """Candidate a's noise has scale ``scale`` · Δ_a."""
    stopping: tuple[float, float] | None = None
    """(γ, η) of the random number of draws; ``None`` if every candidate is drawn once."""

    @property
    def _law(self) -> tuple[int, float, bool, float, float]:
        return (
            NOISES.index(self.noise),
            float(self.scale),
            self.stopping is not None,
            *(self.stopping or (1.0, 1.0)),
        )

    def pmf(self, batch: Batch) -> FloatArray:
        """Return flat exact probabilities."""
        law = self._law
        return weigh_rows(
            batch,
            lambda first, last, pmf: kernels.rows.largest_noisy_pmf(first, last, batch.table, *law, pmf),
            seconds=1e-5,
        )

    def select(self, batch: Batch, randomness: Randomness | None) -> IndexArray:
        """Return one pick for each row."""
        law = self._law
        return pick_rows(
            batch,
            randomness,
            lambda first, last, units, width, picks: kernels.rows.largest_noisy_select(
                first, last, batch.table, *law, units, width, picks
            ),
            lambda row, stream: self._resolve(batch, row, stream),
        )

    def _resolve(self, batch: Batch, row: int, stream: exact.ExactStream) -> int:
        scores, sensitivities, _ = batch.row(row)
        gamma, eta = self.stopping or (1.0, 1.0)
        return exact.pick_by_random_stopping(self.noise, scores, sensitivities, self.scale, gamma, eta, stream)
