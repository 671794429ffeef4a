"""The law of top share: from public weights, whatever the scores, or from the weights of the best share."""

import math
from dataclasses import dataclass

from dpselect import kernels
from dpselect.candidates import Batch
from dpselect.exact import ExactStream
from dpselect.exact.samplers import top_share
from dpselect.kernels.arrays import FloatArray, IndexArray, Share, Units
from dpselect.laws.base import RowLaw


def share_by_rule(epsilon: float) -> float:
    """Return 1/(1 + e^(ε/2)): the chance of missing the best share is then the share itself."""
    return 1.0 / (1.0 + math.exp(min(epsilon / 2, 700.0)))


@dataclass(frozen=True, slots=True)
class TopShareLaw(RowLaw):
    """Picks from the weights with probability s, and otherwise from those of the best candidates."""

    epsilon: float
    share: float | None
    checks_scores = True

    def _share(self) -> Share:
        by_rule = self.share is None
        return Share(self.epsilon, share_by_rule(self.epsilon) if self.share is None else self.share, by_rule)

    def fill_pmf(self, batch: Batch, first: int, last: int, pmf: FloatArray) -> None:
        """Write the probabilities of a block of rows."""
        weighted = batch.has_offsets
        urn = kernels.weighted_draws.new_urn(batch.widest_row(first, last) if weighted else 0)
        kernels.pmf.top_share.fill_rows(first, last, batch.table, weighted, self._share(), urn, pmf)

    def fill_picks(
        self, batch: Batch, first: int, last: int, units: Units, error_bound: float, picks: IndexArray
    ) -> None:
        """Write the picks of a block of rows."""
        sampler, table, stream = kernels.samplers.top_share, batch.table, kernels.chacha.new_stream(units.key)
        room = kernels.weighted_draws.new_urn(batch.widest_row(first, last) if batch.has_offsets else 0), stream
        if batch.has_offsets:
            sampler.select_rows(first, last, table, True, self._share(), units, error_bound, *room, picks)  # noqa: FBT003
        else:
            sampler.select_equal(first, last, table, self._share(), units, error_bound, *room, picks)

    def pick_exactly(self, batch: Batch, row: int, stream: ExactStream) -> int:
        """Return the pick of one row, in exact arithmetic."""
        scores, _, weights = batch.row(row)
        kernel, size = kernels.weighted_draws, scores.size
        urn = kernel.new_urn(size)
        sizes = kernel.fill_urn(weights, urn) if batch.has_offsets else kernel.equal_sizes(size)
        if sizes.equal:
            table = top_share.PublicTable(
                [kernel.UNIT] * size, [(a, kernel.UNIT, a) for a in range(size)], kernel.UNIT
            )
        else:
            columns = zip(*(part[: sizes.columns].tolist() for part in urn[1:]), strict=True)
            table = top_share.PublicTable(urn.weights[:size].tolist(), list(columns), int(sizes.height))
        share = int(kernel.odds_of(self._share(), sizes).share)
        sampler = kernels.samplers.top_share
        draws = sampler.FREE_DRAWS + size // sampler.DIVISOR
        return top_share.pick(scores, table, share, self.epsilon, draws, stream)
