"""The law that noisy max, the exponential mechanism, GEM and their tilted relatives share.

    public offsets  →  normalisation  →  noise  →  pick the largest

Offsets are data-independent numbers added to scores. They change no sensitivity, so they cost nothing. A
normalisation turns scores of unequal sensitivity into numbers that change by at most ``budget`` between
neighbours: *global* divides by the largest sensitivity, *individual* by each candidate's own after
subtracting a public anchor, *pairwise* compares candidates two by two (GEM). Noise of scale one on numbers
that move by at most ε/2 (by ε if all move in the same direction) makes the pick ε-DP.
"""

import math
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from dpselect import exact, kernels
from dpselect.candidates import Batch
from dpselect.exact import ExactStream
from dpselect.kernels.arrays import LARGEST, FloatArray, IndexArray, Normalisation, Units
from dpselect.laws.base import RowLaw
from dpselect.parameters import NOISES, Noise

__all__ = ["Composition", "tilts"]

Kind: TypeAlias = Literal["global", "individual", "pairwise"]
NO_WEIGHTS: FloatArray = np.empty(0)
KINDS: tuple[Kind, ...] = ("global", "individual", "pairwise")  # numbered as in the kernels


def tilts(sizes: IndexArray, weight: float | FloatArray, beta: float) -> FloatArray:
    """Return weight · log(k/β) for each row; the largest of k noises is below log(k/β) with probability 1 − β."""
    if isinstance(weight, float) and weight == 0:
        return np.zeros(sizes.size)
    scaled: FloatArray = weight * np.log(sizes / beta)
    if scaled.size and not np.abs(scaled).max() <= LARGEST:
        raise ValueError("tilt is too large for this epsilon: q − tΔ needs |t| ≤ 2^300")
    return scaled


@dataclass(frozen=True, slots=True)
class Composition(RowLaw):
    """Offsets, normalisation and noise of one call."""

    checks_scores = True

    kind: Kind
    noise: Noise
    budget: float
    tilts: FloatArray
    """One for each row: t of q − tΔ (global, pairwise), or the weight of −Δ/max Δ (individual)."""
    anchor_weights: FloatArray = field(default_factory=lambda: NO_WEIGHTS)
    """One for each row: the weight of c/max|c| (individual); empty for the others."""
    fixed_work: bool = False
    """Whether to pick by the same amount of work for all scores."""

    def rule(self, batch: Batch) -> Normalisation:
        """Return the normalisation, for the kernels."""
        plain = not batch.has_public and not (self.kind == "global" and np.count_nonzero(self.tilts))
        weights = self.anchor_weights if self.kind == "individual" else self.tilts  # unused by the others
        return Normalisation(KINDS.index(self.kind), plain, self.budget, self.tilts, weights)

    def fill_pmf(self, batch: Batch, first: int, last: int, pmf: FloatArray) -> None:
        """Write the probabilities of a block of rows."""
        self.fill_gaps(batch, first, last, pmf)
        kernels.rows.noisy_max_laws(first, last, batch.table.bounds, NOISES.index(self.noise), pmf)

    def fill_gaps(self, batch: Batch, first: int, last: int, gaps: FloatArray) -> None:
        """Write the gaps of a block of rows: in floats or, where these cannot be trusted, in fractions."""
        bounds = batch.table.bounds
        trusted = np.empty(last - first, dtype=np.bool_)
        kernels.rows.noisy_max_gaps(first, last, batch.table, self.rule(batch), gaps, trusted)
        for row in (first + np.flatnonzero(~trusted)).tolist():
            exact_gaps = self.exact_gaps(batch, row)
            gaps[bounds[row] : bounds[row + 1]] = [math.inf if gap is None else float(gap) for gap in exact_gaps]

    def fill_picks(
        self, batch: Batch, first: int, last: int, units: Units, width: float, picks: IndexArray
    ) -> None:
        """Write the picks of a block of rows."""
        bounds = batch.table.bounds
        # NumPy's memory comes in large pages; the compiler's would cost more than the pick if a row is long.
        room = np.empty(bounds[-1] if batch.rows == 1 else kernels.rows.widest_row(first, last, bounds))
        rule, noise = self.rule(batch), NOISES.index(self.noise)
        kernels.rows.noisy_max_select(
            first, last, batch.table, rule, noise, self.fixed_work, units, width, room, picks
        )

    def pick_exactly(self, batch: Batch, row: int, stream: ExactStream) -> int:
        """Return the pick of one row, in exact arithmetic."""
        gaps = self.exact_gaps(batch, row)
        if self.fixed_work and self.noise == "exponential":
            return exact.pick_passer_at_fixed_work(gaps, stream)
        visits = kernels.picks.visits_of(KINDS.index(self.kind), len(gaps))
        return exact.pick_noisy_max(self.noise, gaps, visits, stream)

    def exact_gaps(self, batch: Batch, row: int) -> exact.Gaps:
        """Return the gaps of one row as fractions."""
        scores, sensitivities, public = batch.row(row)
        tilt = float(self.tilts[row])
        if self.kind == "global":
            return exact.global_gaps(scores, public, sensitivities, tilt, self.budget)
        if self.kind == "pairwise":
            return exact.pairwise_gaps(scores, public, sensitivities, tilt, self.budget)
        weight = float(self.anchor_weights[row])
        return exact.individual_gaps(scores, public, sensitivities, tilt, weight, self.budget)
