"""The law of the heterogeneous noisy max: noise that fits each candidate, with neutral public offsets."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpselect import kernels
from dpselect.candidates import Batch, map_columns
from dpselect.exact import ExactStream
from dpselect.exact.samplers import heterogeneous_noisy_max, permute_and_flip
from dpselect.kernels.arrays import ALL_GAPS_NEEDED, Column, FlagArray, FloatArray, IndexArray, Units
from dpselect.laws.base import Law, RowLaw
from dpselect.laws.noisy_max import BLOCK, VISITS, NoisyMaxLaw, blocks_of
from dpselect.parallel import cut_rows
from dpselect.randomness import Randomness

EQUAL, FEW, MANY = VISITS["global"], (72, 128), (140, 128)
"""How many candidates are visited in random order before the whole row is scanned: base + size // divisor.

EQUAL for equal sensitivities; otherwise FEW as long as nobody has passed, and then MANY.
"""


@dataclass(frozen=True, slots=True)
class HeterogeneousLaw(RowLaw):
    """Picks the largest of q_a + o_a − tΔ_a + n_a + m_a Z_a, with m_a = (Δ_a + max_{b≠a} Δ_b)/ε and n_a neutral."""

    checks_scores = True
    pmf_seconds = 1.5e-7

    epsilon: float
    tilts: FloatArray
    """One for each row: t of −tΔ."""
    neutral: bool
    known: Column | None = None
    """The neutral offsets, in units of the largest noise, if they are known: those that all rows share, or those
    that the rounds of a list keep. Where all noise is equal they count as zero."""

    def fill_pmf(self, batch: Batch, first: int, last: int, pmf: FloatArray) -> None:
        """Write the probabilities of a block of rows, from heights in fractions where floats cannot be trusted."""
        trusted = np.ones(batch.rows, dtype=np.bool_)
        kernel, parameters = kernels.pmf.heterogeneous_noisy_max, self._parameters(batch)
        for start, stop, neutral in self._offsets(batch, first, last):
            kernel.fill_rows(start, stop, batch.table, parameters, neutral, pmf, trusted)
        for row in np.flatnonzero(~trusted).tolist():
            heights, shares = self.exact_row(batch, row)
            top = max(height for height in heights if height is not None)
            numbers = np.array([-np.inf if height is None else float(height - top) for height in heights])
            target = pmf[batch.table.bounds[row] : batch.table.bounds[row + 1]]
            kernel.fill(numbers, np.array([float(share) for share in shares]), target)

    def fill_picks(
        self, batch: Batch, first: int, last: int, units: Units, error_bound: float, picks: IndexArray
    ) -> None:
        """Write the picks of a block of rows."""
        self.fill_lists(batch, first, last, units._replace(key=units.key[None]), error_bound, picks[:, None])
        for rows, places in blocks_of(batch, first + np.flatnonzero(picks[first:last] == ALL_GAPS_NEEDED)):
            picks[rows] = self._pick_equal(batch, rows, places, units, error_bound)

    def fill_lists(
        self, batch: Batch, first: int, last: int, units: Units, error_bound: float, lists: IndexArray
    ) -> None:
        """Write a list for each row of a block, with a key for each pick; with offsets or tilts, only single picks.

        A list ends with a negative number where a pick could not be made.
        """
        loops, kernel = kernels.samplers.loops, kernels.samplers.heterogeneous_noisy_max
        parameters = self._parameters(batch)
        setup = loops.Setup(loops.Visits(*MANY), units._replace(key=units.key[0]), error_bound)
        space = kernel.new_space(setup, loops.Visits(*FEW), batch.widest_row(first, last))
        for start, stop, neutral in self._offsets(batch, first, last):
            call = (batch.table, parameters, neutral, units, space)
            if parameters.plain:
                kernel.select_from_scores(start, stop, *call, lists)
            elif len(units.key) == 1:
                kernels.blocks.mark_rows(start, stop, batch.table, lists[:, 0])
                rows = start + np.flatnonzero(lists[start:stop, 0] == ALL_GAPS_NEEDED)
                kernel.select_from_levels(rows, *call, lists[:, 0])

    def _pick_equal(
        self, batch: Batch, rows: IndexArray, places: IndexArray, units: Units, error_bound: float
    ) -> IndexArray:
        """Return the picks of rows whose candidates have equal noise, by permute-and-flip.

        Kernels get these rows alone: if they are few, nothing is compiled for them.
        """
        loops, kernel = kernels.samplers.loops, kernels.heterogeneous
        table = map_columns(batch.table, lambda column: Column(column.values, column.starts[rows]), places)
        parameters = self._parameters(batch)._replace(tilts=self.tilts[rows])
        gaps, trusted = np.empty(int(places[-1])), np.empty(rows.size, dtype=np.bool_)
        kernel.fill_equal_rows(places, table, parameters, gaps, trusted)
        known = loops.GapRows(np.arange(rows.size), places, gaps, trusted)
        own = Units(units.key, units.nonces[rows])
        picks = np.empty(rows.size, dtype=np.int64)
        setup = loops.Setup(loops.Visits(*EQUAL), own, error_bound * kernel.WIDER)
        kernels.samplers.permute_and_flip.select_from_gaps(
            known, setup, loops.new_workspace(setup, int(np.diff(places).max())), picks
        )
        return picks

    def pick_exactly(self, batch: Batch, row: int, stream: ExactStream) -> int:
        """Return the pick of one row, in exact arithmetic."""
        heights, shares = self.exact_row(batch, row)
        equal, few, many = (min(len(shares), base + len(shares) // by) for base, by in (EQUAL, FEW, MANY))
        if min(shares) == 1:
            top = max(height for height in heights if height is not None)
            gaps = [None if height is None else top - height for height in heights]
            return permute_and_flip.pick(gaps, equal, stream)
        finite = [height for height in heights if height is not None]  # all of them: some sensitivity is not zero
        return heterogeneous_noisy_max.pick(finite, shares, few, many, stream)

    def exact_row(self, batch: Batch, row: int) -> tuple[list[Fraction | None], list[Fraction]]:
        """Return heights and shares as fractions; ``None`` is −∞. Neutral offsets are the kernel's floats."""
        scores, sensitivities, given = batch.row(row)
        widths = [Fraction(sensitivity) for sensitivity in sensitivities]
        tilt = Fraction(self.tilts[row])
        levels = [
            Fraction(q) + Fraction(o) - tilt * width for q, o, width in zip(scores, given, widths, strict=True)
        ]
        *_, second, widest = [Fraction(0), *sorted(widths)] if len(widths) == 1 else sorted(widths)
        largest = second + widest
        if largest == 0:
            top = max(levels)
            return [Fraction(0) if level == top else None for level in levels], [Fraction(1)] * len(levels)
        shares = [(width + (widest if width < widest else second)) / largest for width in widths]
        offsets = self.neutral_offsets(batch, row) if min(shares) < 1 else np.zeros(len(shares))
        unit = Fraction(self.epsilon) / largest
        heights: list[Fraction | None] = [
            level * unit + Fraction(n) for level, n in zip(levels, offsets, strict=True)
        ]
        return heights, shares

    def neutral_offsets(self, batch: Batch, row: int) -> FloatArray:
        """Return n_a of one row, in units of the largest noise."""
        (_, _, neutral), *_ = self._offsets(batch, row, row + 1)
        values: FloatArray = neutral.values[neutral.starts[row] :][: batch.row(row)[0].size]
        return values

    def for_batch(self, batch: Batch) -> RowLaw:
        """Solve once for the neutral offsets that all rows share, if they do.

        If the sensitivities of every row are equal and not zero, so is the noise, and this is permute-and-flip.
        """
        if not batch.rows:
            return self
        if _has_equal_sensitivities(batch) and batch.table.sensitivities.values.min() > 0.0:
            return NoisyMaxLaw("global", "exponential", 0.5 * self.epsilon, self.tilts)
        if self.known is None and self.neutral and _share_sensitivities(batch):
            return replace(self, known=self.solve(batch))
        return self

    def solve(self, batch: Batch) -> Column:
        """Return the neutral offsets of all rows. Rows that share their sensitivities share them, too."""
        if batch.rows > 1 and _share_sensitivities(batch):  # a small call: nothing is compiled
            return Column(self.solve(batch.rows_between(0, 1)).values, np.zeros(batch.rows, dtype=np.int64))
        solved = Column(np.empty(int(batch.table.bounds[-1])), np.zeros(batch.rows, dtype=np.int64))
        kernels.heterogeneous.fill_offset_rows(0, batch.rows, batch.table, kernels.neutral.new_room(), *solved)
        return solved

    def _offsets(self, batch: Batch, first: int, last: int) -> Iterator[tuple[int, int, Column]]:
        """Yield blocks of rows with their neutral offsets."""
        if self.known is not None:
            yield first, last, self.known
            return
        bounds, starts = batch.table.bounds, np.zeros(batch.rows, dtype=np.int64)
        if not self.neutral:
            yield first, last, Column(np.zeros(batch.widest_row(first, last)), starts)
            return
        room = kernels.neutral.new_room()
        for start, stop in cut_rows(bounds, BLOCK, first, last):
            values = np.empty(int(bounds[stop] - bounds[start]))
            kernels.heterogeneous.fill_offset_rows(start, stop, batch.table, room, values, starts)
            yield start, stop, Column(values, starts)

    def _parameters(self, batch: Batch) -> Any:  # noqa: ANN401 - a type of the kernels, which load the compiler
        plain = not batch.has_offsets and not np.count_nonzero(self.tilts)
        return kernels.heterogeneous.LawParameters(self.epsilon, plain, self.tilts)


def _share_sensitivities(batch: Batch) -> bool:
    """Return whether all rows, at least one, share their sensitivities."""
    starts = batch.table.sensitivities.starts
    return batch.shape is not None and bool((starts == starts[0]).all())


def _has_equal_sensitivities(batch: Batch) -> bool:
    """Return whether each row's sensitivities are equal. In most batches the first row shows that they are not."""
    first = batch.row(0)[1]
    if first[-1] != first[0] or (first != first[0]).any():
        return False
    if _share_sensitivities(batch):
        return True
    values = batch.spread(batch.table.sensitivities)
    return bool((values == np.repeat(values[batch.table.bounds[:-1]], batch.sizes)).all())


@dataclass(frozen=True, slots=True)
class KeptLaw(Law):
    """The law ``inner``, for the candidates whose sensitivity lies between two quantiles of the row's."""

    checks_scores = True

    inner: Law
    low: float
    high: float

    def pmf(self, batch: Batch) -> FloatArray:
        """Return the exact probability of each candidate, as a flat array."""
        kept, places = self._keep(batch)
        pmf = np.zeros(int(batch.table.bounds[-1]))
        pmf[places] = self.inner.pmf(kept)
        return pmf

    def select(self, batch: Batch, randomness: Randomness) -> IndexArray:
        """Return one pick for each row."""
        batch.check_scores()  # also those of candidates that are not kept
        kept, places = self._keep(batch)
        picks = self.inner.select(kept, randomness)
        chosen: IndexArray = places[kept.table.bounds[:-1] + picks] - batch.table.bounds[:-1]
        return chosen

    def _keep(self, batch: Batch) -> tuple[Batch, IndexArray]:
        """Return the batch of the kept candidates, whose rows share what they shared, and their places before."""
        shared = batch.rows > 0 and _share_sensitivities(batch)
        asked = batch.rows_between(0, 1) if shared else batch
        widths = asked.spread(asked.table.sensitivities)
        keep = kept_candidates(widths, asked.table.bounds, self.low, self.high)
        kept = np.flatnonzero(keep)
        places = (batch.table.bounds[:-1, None] + kept).reshape(-1) if shared else kept
        bounds = np.searchsorted(places, batch.table.bounds)

        def reduced(column: Column) -> Column:
            if shared and (column.starts == column.starts[0]).all():  # it stays shared
                return Column(column.values[column.starts[0] + kept], np.zeros(batch.rows, dtype=np.int64))
            return Column(batch.spread(column)[places], bounds[:-1])

        table = map_columns(batch.table, reduced, bounds)
        shape, size = ((batch.rows,), kept.size) if shared else (None, 0)
        return replace(batch, table=table, shape=shape, row_size=size), places


def kept_candidates(sensitivities: FloatArray, bounds: IndexArray, low: float, high: float) -> FlagArray:
    """Return which sensitivities lie between the quantiles ``low`` and ``high`` of their row, ends included.

    The sensitivity number i of a sorted row is the quantile i/(k − 1). If none lies between, the one nearest to the
    middle is kept. Equal sensitivities are kept together. Row r is ``sensitivities[bounds[r]:bounds[r + 1]]``.
    """
    sizes = np.diff(bounds)
    first = np.ceil(low * (sizes - 1) - 1e-9)  # 0.29 · 100 is 28.999999999999996
    final = np.floor(high * (sizes - 1) + 1e-9)
    middle = np.floor(0.5 * (low + high) * (sizes - 1) + 0.5)
    first, final = (np.where(first > final, middle, end).astype(np.int64) for end in (first, final))
    ordered = sensitivities[np.lexsort((sensitivities, np.repeat(np.arange(sizes.size), sizes)))]
    least, most = (np.repeat(ordered[bounds[:-1] + place], sizes) for place in (first, final))
    return (sensitivities >= least) & (sensitivities <= most)
