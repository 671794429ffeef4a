"""The law of the largest noisy score, where every candidate has noise of its own scale."""

from dataclasses import dataclass
from fractions import Fraction

from dpselect import kernels
from dpselect.candidates import Batch
from dpselect.exact import ExactStream
from dpselect.kernels.arrays import FloatArray, IndexArray, Units
from dpselect.laws.base import RowLaw
from dpselect.laws.noises import code_of
from dpselect.parameters import Noise

__all__ = ["NoisyArgmaxLaw"]


@dataclass(frozen=True, slots=True)
class NoisyArgmaxLaw(RowLaw):
    """Every candidate once, with noise in proportion to its own sensitivity; the largest is picked.

    Its sampler works in floats alone: nothing that uses it is private.
    """

    checks_scores = True
    pmf_seconds = 1e-5

    noise: Noise
    scale: Fraction
    """Candidate a's noise has scale ``scale`` · Δ_a."""

    def fill_pmf(self, batch: Batch, first: int, last: int, pmf: FloatArray) -> None:
        """Write the probabilities of a block of rows."""
        noise = code_of(self.noise)
        fill = kernels.pmf.noisy_argmax.fill_rows
        fill(first, last, batch.table, noise, float(self.scale), kernels.pmf.noisy_argmax.ONCE, 1.0, 1.0, pmf)

    def fill_picks(
        self, batch: Batch, first: int, last: int, units: Units, _width: float, picks: IndexArray
    ) -> None:
        """Write the picks of a block of rows."""
        noise = code_of(self.noise)
        kernels.samplers.noisy_argmax.select_rows(first, last, batch.table, noise, float(self.scale), units, picks)

    def pick_exactly(self, batch: Batch, row: int, stream: ExactStream) -> int:  # noqa: ARG002
        """Refuse: the sampler decides every row."""
        raise AssertionError("the sampler decides every row")
