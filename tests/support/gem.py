"""The GEM scores that a law computes, for comparison with their definition."""

import numpy as np

from dpselect.candidates import read_batch
from dpselect.laws.noisy_max import NoisyMaxLaw


def gem_scores(scores, sensitivities, t):
    """Return min_b ((q_a − tΔ_a) − (q_b − tΔ_b)) / (Δ_a + Δ_b) of every candidate."""
    batch = read_batch(scores, sensitivities)
    law = NoisyMaxLaw(kind="pairwise", noise="exponential", rate=1.0, tilts=np.full(batch.rows, t, dtype=float))
    gaps = np.empty(int(batch.table.bounds[-1]))
    law.fill_gaps(batch, 0, batch.rows, gaps)
    return batch.restore_candidates(0.0 - gaps)
