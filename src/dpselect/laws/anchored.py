"""The law of an anchored mechanism: another law, with offsets computed from public anchors."""

from dataclasses import dataclass

import numpy as np

from dpselect.candidates import Batch
from dpselect.kernels.arrays import FloatArray, IndexArray
from dpselect.laws.base import Law
from dpselect.randomness import Randomness

__all__ = ["AnchoredLaw"]


@dataclass(frozen=True, slots=True)
class AnchoredLaw(Law):
    """The law ``inner`` with the offsets o_a = reach · max Δ · c_a / max|c|; c are the batch's public numbers."""

    checks_scores = True

    inner: Law
    reach: FloatArray
    """One for each row."""

    def pmf(self, batch: Batch) -> FloatArray:
        """Return the exact probability of each candidate, as a flat array."""
        return self.inner.pmf(self._with_offsets(batch))

    def select(self, batch: Batch, randomness: Randomness) -> IndexArray:
        """Return one pick for each row."""
        return self.inner.select(self._with_offsets(batch), randomness)

    def _with_offsets(self, batch: Batch) -> Batch:
        anchors = batch.spread(batch.table.public)
        farthest = np.repeat(batch.largest(np.abs(anchors)), batch.sizes)
        widest = np.repeat(batch.largest(batch.spread(batch.table.sensitivities)), batch.sizes)
        reach = np.repeat(self.reach, batch.sizes)
        share = np.divide(anchors, farthest, out=np.zeros(anchors.size), where=farthest > 0)
        return batch.with_public("offsets", reach * widest * share)
