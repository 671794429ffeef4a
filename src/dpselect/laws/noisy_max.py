"""The law that noisy max, the exponential mechanism, GEM and their tilted variants share.

    public offsets  →  normalisation  →  noise  →  pick the largest

Offsets are data-independent numbers added to scores. They change no sensitivity, so they cost no budget. A
normalisation turns scores of unequal sensitivity into numbers that change by at most ``rate`` between
neighbours. *Global* normalisation divides by the largest sensitivity. *Pairwise* normalisation compares candidates
two by two (GEM). Noise of scale one on numbers that move by at most ε/2 (by ε if all move in the same direction)
makes the pick ε-DP.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from dpselect import kernels
from dpselect.candidates import Batch
from dpselect.exact import ExactStream
from dpselect.exact.gaps import Gaps, global_gaps, pairwise_gaps
from dpselect.kernels.arrays import ALL_GAPS_NEEDED, LARGEST, FlagArray, FloatArray, IndexArray, Units
from dpselect.laws.base import RowLaw
from dpselect.laws.noises import Sampler, sampler_of
from dpselect.parallel import cut_rows
from dpselect.parameters import Noise

Kind: TypeAlias = Literal["global", "pairwise"]

VISITS = {"global": (32, 128), "pairwise": (48, 64)}
"""The number of candidates visited in random order before the whole row is scanned: base + size // divisor.

A visit costs about as much as scanning a dozen candidates if few of those may pass, and much less if many may. For
GEM a scan costs more, because every candidate that passes takes a pass over the row.
"""

BLOCK = 1 << 16
"""The number of gaps held at once, for a block of rows. They fit into the processor's cache."""


def tilts(sizes: IndexArray, weight: float | FloatArray, beta: float) -> FloatArray:
    """Return weight · log(k/β) for each row; log(k/β) bounds the 1 − β quantile of the largest of k noises."""
    if isinstance(weight, float) and weight == 0:
        return np.zeros(sizes.size)
    scaled: FloatArray = weight * np.log(sizes / beta)
    if scaled.size and not np.abs(scaled).max() <= LARGEST:
        raise ValueError("tilt is too large for this epsilon: choose a smaller |tilt| (q − tΔ needs |t| ≤ 2^300)")
    return scaled


@dataclass(frozen=True, slots=True)
class NoisyMaxLaw(RowLaw):
    """The offsets, normalisation and noise of one call."""

    checks_scores = True

    kind: Kind
    noise: Noise
    rate: float
    """How much a normalised score moves between neighbours, at most."""
    tilts: FloatArray
    """One for each row: t of q − tΔ."""

    @property
    def sampler(self) -> Sampler:
        """The sampler for the noise."""
        return sampler_of(self.noise)

    def fill_pmf(self, batch: Batch, first: int, last: int, pmf: FloatArray) -> None:
        """Write the probabilities of a block of rows."""
        self.fill_gaps(batch, first, last, pmf)
        self.sampler.pmf.fill_rows(first, last, batch.table.bounds, pmf)

    def fill_gaps(self, batch: Batch, first: int, last: int, gaps: FloatArray) -> None:
        """Write the gaps of a block of rows, in floats or, where those cannot be trusted, in fractions."""
        rows, places = np.arange(first, last), batch.table.bounds[first : last + 1]
        for row in rows[~self._float_gaps(batch, rows, places, gaps)].tolist():
            exact = self.exact_gaps(batch, row)
            gaps[places[row - first] : places[row - first + 1]] = [
                math.inf if x is None else float(x) for x in exact
            ]

    def fill_picks(
        self, batch: Batch, first: int, last: int, units: Units, error_bound: float, picks: IndexArray
    ) -> None:
        """Write the picks of a block of rows, without computing all gaps where possible."""
        sampler, loops = self.sampler.kernel, kernels.samplers.loops
        setup = loops.Setup(loops.Visits(*VISITS[self.kind]), units, error_bound)
        space = loops.new_workspace(setup, batch.widest_row(first, last))
        plain = self._is_plain(batch)
        block = loops.ScoreRows(first, last, batch.table, self.rate)
        if plain and self.kind == "global":
            sampler.select_from_scores(block, setup, space, picks)
        elif plain and self.kind == "pairwise" and self.noise == "exponential":
            sampler.select_pairwise(block, self.tilts, setup, np.empty(space.seen.size), space, picks)
        else:
            kernels.blocks.mark_rows(first, last, batch.table, picks)
        if last - first == 1 and picks[first] != ALL_GAPS_NEEDED:
            return  # a shortcut for single rows: the loop below would do nothing
        for rows, places in blocks_of(batch, first + np.flatnonzero(picks[first:last] == ALL_GAPS_NEEDED)):
            gaps = np.empty(int(places[-1]))
            trusted = self._float_gaps(batch, rows, places, gaps)
            sampler.select_from_gaps(loops.GapRows(rows, places, gaps, trusted), setup, space, picks)

    def pick_exactly(self, batch: Batch, row: int, stream: ExactStream) -> int:
        """Return the pick of one row, in exact arithmetic."""
        base, divisor = VISITS[self.kind]
        gaps = self.exact_gaps(batch, row)
        pick: int = self.sampler.twin.pick(gaps, min(len(gaps), base + len(gaps) // divisor), stream)
        return pick

    def exact_gaps(self, batch: Batch, row: int) -> Gaps:
        """Return the gaps of one row as fractions."""
        scores, sensitivities, offsets = batch.row(row)
        tilt = float(self.tilts[row])
        gaps_of = {"global": global_gaps, "pairwise": pairwise_gaps}[self.kind]
        return gaps_of(scores, offsets, sensitivities, tilt, self.rate)

    def _is_plain(self, batch: Batch) -> bool:
        """Return whether there are no public offsets and, for global normalisation, no tilt."""
        return not batch.has_offsets and not (self.kind == "global" and np.count_nonzero(self.tilts))

    def _float_gaps(self, batch: Batch, rows: IndexArray, places: IndexArray, gaps: FloatArray) -> FlagArray:
        """Write the gaps of the given rows, in floats; return for which rows they can be trusted."""
        fill = {
            "global": "fill_plain_rows" if self._is_plain(batch) else "fill_global_rows",
            "pairwise": "fill_pairwise_rows",
        }[self.kind]
        numbers = kernels.normalisations.PublicNumbers(self.rate, self.tilts)
        trusted = np.empty(rows.size, dtype=np.bool_)
        getattr(kernels.normalisations, fill)(rows, places, batch.table, numbers, gaps, trusted)
        return trusted


def blocks_of(batch: Batch, rows: IndexArray) -> Iterator[tuple[IndexArray, IndexArray]]:
    """Yield rows in blocks of bounded size, with the places of their gaps."""
    places = np.concatenate([[0], np.cumsum(batch.sizes[rows])]) if rows.size else np.zeros(1, dtype=np.int64)
    for first, last in cut_rows(places, BLOCK):
        block = places[first : last + 1] - places[first]
        block.setflags(write=False)  # like a table's bounds: kernels are compiled for one or the other
        yield rows[first:last], block
