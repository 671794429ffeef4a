"""The shape that noisy max, the exponential mechanism, GEM and their tilted relatives share.

    public offsets  →  normalisation  →  noise  →  pick the largest

Offsets are data-independent numbers added to scores; they change no sensitivity, so they cost nothing. A
normalisation turns scores of unequal sensitivity into numbers that change by at most ``budget`` between
neighbours: *global* divides by the largest sensitivity, *individual* by each candidate's own after
subtracting a public anchor, *pairwise* compares candidates two by two (GEM). Noise of scale one on numbers
that move by at most ε/2 (by ε if all move in the same direction) makes the pick ε-DP.
"""

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from dpselect import exact, kernels
from dpselect.candidates import Batch
from dpselect.kernels.arrays import LARGEST, FloatArray, IndexArray, Normalisation, Units
from dpselect.mechanisms.rows import pick_rows, weigh_rows
from dpselect.parameters import NOISES, Noise
from dpselect.randomness import Randomness

__all__ = ["Composition", "tilts"]

Kind: TypeAlias = Literal["global", "individual", "pairwise"]
KINDS: tuple[Kind, ...] = ("global", "individual", "pairwise")  # numbered as in the kernels


def tilts(batch: Batch, weight: float | FloatArray, beta: float) -> FloatArray:
    """Return weight · log(k/β) for each row: how far the largest of k noises reaches, but for a chance of β."""
    if isinstance(weight, float) and weight == 0:
        return np.zeros(batch.rows)
    scaled: FloatArray = weight * np.log(batch.sizes / beta)
    if scaled.size and not np.abs(scaled).max() <= LARGEST:
        raise ValueError("tilt is too large for this epsilon: q − tΔ needs |t| ≤ 2^300")
    return scaled


@dataclass(frozen=True, slots=True)
class Composition:
    """Offsets, normalisation and noise of one call."""

    kind: Kind
    noise: Noise
    budget: float
    tilts: FloatArray
    """One for each row: t of q − tΔ (global, pairwise), or the weight of −Δ/max Δ (individual)."""
    anchor_weights: FloatArray | None = None
    """One for each row: the weight of c/max|c| (individual)."""

    def _rule(self, batch: Batch) -> Normalisation:
        plain = not batch.has_public and not (self.kind == "global" and np.count_nonzero(self.tilts))
        weights = self.tilts if self.anchor_weights is None else self.anchor_weights  # unused if absent
        return Normalisation(KINDS.index(self.kind), plain, self.budget, self.tilts, weights)

    def pmf(self, batch: Batch) -> FloatArray:
        """Return flat exact probabilities."""
        noise = NOISES.index(self.noise)

        def fill(first: int, last: int, pmf: FloatArray) -> None:
            self.fill_gaps(batch, first, last, pmf)
            kernels.rows.noisy_max_laws(first, last, batch.table.bounds, noise, pmf)

        return weigh_rows(batch, fill)

    def fill_gaps(self, batch: Batch, first: int, last: int, gaps: FloatArray) -> None:
        """Fill the gaps of a block of rows: in floats or, where these cannot be trusted, in fractions."""
        bounds = batch.table.bounds
        trusted = np.empty(last - first, dtype=np.bool_)
        kernels.rows.noisy_max_gaps(first, last, batch.table, self._rule(batch), gaps, trusted)
        for row in (first + np.flatnonzero(~trusted)).tolist():
            exact_gaps = self._exact_gaps(batch, row)
            gaps[bounds[row] : bounds[row + 1]] = [math.inf if gap is None else float(gap) for gap in exact_gaps]

    def select(self, batch: Batch, randomness: Randomness | None, *, fixed_work: bool = False) -> IndexArray:
        """Return one pick for each row; with ``fixed_work``, by the same amount of work whatever the scores."""
        rule, noise = self._rule(batch), NOISES.index(self.noise)
        bounds = batch.table.bounds

        def fill(first: int, last: int, units: Units, width: float, picks: IndexArray) -> None:
            # NumPy's memory comes in large pages; the compiler's would cost more than the pick if a row is long.
            room = np.empty(bounds[-1] if batch.rows == 1 else kernels.rows.widest_row(first, last, bounds))
            kernels.rows.noisy_max_select(
                first, last, batch.table, rule, noise, fixed_work, units, width, room, picks
            )

        return pick_rows(
            batch,
            randomness,
            fill,
            lambda row, stream: self._resolve(batch, row, stream, fixed_work=fixed_work),
        )

    def _resolve(self, batch: Batch, row: int, stream: exact.ExactStream, *, fixed_work: bool) -> int:
        gaps = self._exact_gaps(batch, row)
        if fixed_work and self.noise == "exponential":
            return exact.pick_passer_at_fixed_work(gaps, stream)
        visits = kernels.picks.visits_of(KINDS.index(self.kind), len(gaps))
        return exact.pick_noisy_max(self.noise, gaps, visits, stream)

    def _exact_gaps(self, batch: Batch, row: int) -> exact.Gaps:
        scores, sensitivities, public = batch.row(row)
        tilt = float(self.tilts[row])
        if self.kind == "global":
            return exact.global_gaps(scores, public, sensitivities, tilt, self.budget)
        if self.kind == "pairwise":
            return exact.pairwise_gaps(scores, public, sensitivities, tilt, self.budget)
        weight = float(self._rule(batch).anchor_weights[row])
        return exact.individual_gaps(scores, public, sensitivities, tilt, weight, self.budget)
