"""The law of random stopping: the largest of a random number of noisy draws."""

import math
from dataclasses import dataclass
from fractions import Fraction

from dpselect import kernels
from dpselect.candidates import Batch
from dpselect.exact import ExactStream
from dpselect.exact.samplers import random_stopping
from dpselect.kernels.arrays import MOST_DRAWS, FloatArray, IndexArray, Units
from dpselect.kernels.pmf.integrands import NO_ETA
from dpselect.laws.base import RowLaw
from dpselect.laws.noises import code_of
from dpselect.parameters import Noise

TOO_MANY = "gamma is too small: a pick would draw more than 2^33 candidates; choose a larger gamma"


@dataclass(frozen=True, slots=True)
class RandomStoppingLaw(RowLaw):
    """Draws K uniform candidates, each with noise in proportion to its own sensitivity, and picks the largest."""

    checks_scores = True
    pmf_seconds = 1e-5

    noise: Noise
    scale: Fraction
    """Candidate a's noise has scale ``scale`` · Δ_a."""
    gamma: float
    eta: float
    """K is truncated negative binomial with parameters γ and η."""

    @property
    def is_one_sided(self) -> bool:
        """Whether noise is only positive."""
        return {"exponential": True, "laplace": False}[self.noise]

    @property
    def mean_draws(self) -> float:
        """E[K] = η(1−γ)/(γ(1 − γ^η))."""
        if self.gamma == 1:
            return 1.0
        exponent = self.eta * math.log(self.gamma)
        limit = -math.log(self.gamma)  # at η = 0; a quotient of numbers that underflow would have few digits
        shape = limit if abs(exponent) < NO_ETA else -math.expm1(exponent) / self.eta
        return (1 - self.gamma) / (self.gamma * shape)

    @property
    def refusal(self) -> str | None:
        """Set if a pick may take more draws than a random stream has bits for."""
        return TOO_MANY if self.mean_draws > MOST_DRAWS else None

    def fill_pmf(self, batch: Batch, first: int, last: int, pmf: FloatArray) -> None:
        """Write the probabilities of a block of rows."""
        root = math.sqrt(self.mean_draws)
        law = kernels.pmf.integrands.NoiseLaw(
            code_of(self.noise), stopping=True, gamma=self.gamma, eta=self.eta, root=root
        )
        kernels.pmf.noisy_argmax.fill_rows(first, last, batch.table, law, float(self.scale), pmf)

    def fill_picks(
        self, batch: Batch, first: int, last: int, units: Units, error_bound: float, picks: IndexArray
    ) -> None:
        """Write the picks of a block of rows."""
        kernel, rate = kernels.samplers.random_stopping, -math.log1p(-self.gamma) if self.gamma < 1.0 else math.inf
        law = kernel.Stopping(self.is_one_sided, float(self.scale), self.gamma, self.eta, rate)
        space = kernel.new_space(units.key, error_bound)
        try:
            kernel.select_rows(first, last, batch.table, law, units, space, picks)
        except OverflowError:  # by chance, whatever the scores: the mean is just below the limit
            raise ValueError(TOO_MANY) from None

    def pick_exactly(self, batch: Batch, row: int, stream: ExactStream) -> int:
        """Return the pick of one row, in exact arithmetic."""
        scores, sensitivities, _ = batch.row(row)
        law = (self.scale, self.gamma, self.eta)
        return random_stopping.pick(self.is_one_sided, scores, sensitivities, *law, stream)
