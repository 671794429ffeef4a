"""The law of the largest noisy score, with noise of each candidate's own scale."""

from dataclasses import dataclass
from fractions import Fraction

from dpselect import kernels
from dpselect.candidates import Batch
from dpselect.exact import ExactStream
from dpselect.kernels.arrays import FloatArray, IndexArray, Units
from dpselect.laws.base import RowLaw
from dpselect.laws.noises import code_of
from dpselect.parameters import Noise


@dataclass(frozen=True, slots=True)
class NoisyArgmaxLaw(RowLaw):
    """Draws every candidate once, with noise in proportion to its own sensitivity, and picks the largest.

    Its sampler works in floats only: nothing that uses it is private.
    """

    checks_scores = True
    pmf_seconds = 1e-5

    noise: Noise
    scale: Fraction
    """Candidate a's noise has scale ``scale`` · Δ_a."""

    def fill_pmf(self, batch: Batch, first: int, last: int, pmf: FloatArray) -> None:
        """Write the probabilities of a block of rows."""
        law = kernels.pmf.integrands.NoiseLaw(code_of(self.noise), stopping=False, gamma=1.0, eta=1.0, root=1.0)
        kernels.pmf.noisy_argmax.fill_rows(first, last, batch.table, law, float(self.scale), pmf)

    def fill_picks(
        self, batch: Batch, first: int, last: int, units: Units, _error_bound: float, picks: IndexArray
    ) -> None:
        """Write the picks of a block of rows."""
        noise, stream = code_of(self.noise), kernels.chacha.new_stream(units.key)
        select = kernels.samplers.noisy_argmax.select_rows
        select(first, last, batch.table, noise, float(self.scale), units, stream, picks)

    def pick_exactly(self, batch: Batch, row: int, stream: ExactStream) -> int:  # noqa: ARG002
        """Raise: the sampler decides every row."""
        raise AssertionError("internal error: the float sampler decides every row; please report this as a bug")
