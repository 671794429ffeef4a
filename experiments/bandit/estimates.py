"""The policies' estimates of the arms: running means, exact or private, and private quantiles of windows.

Many runs go side by side. A *row* is one run, and *place* 2 · row + arm is one arm of one run.
"""

import numpy as np
from numpy.typing import NDArray

from experiments.arrays import FloatArray, IndexArray
from experiments.bandit.quantiles import private_quantiles
from experiments.bandit.sums import hybrid_noise

__all__ = ["LEVELS", "RunningMeans", "Windows"]


LEVELS = (0.1, 0.9)


class RunningMeans:
    """The mean reward of every arm of every run.

    Args:
        rows: The number of runs.
        noise: The noise in the sum of a place after n rewards, in row ``place`` and column n.
    """

    def __init__(self, rows: int, noise: NDArray[np.float32] | None = None) -> None:
        self.means = np.full((rows, 2), np.nan)
        self.counts = np.zeros((rows, 2), dtype=np.int64)
        self._sums = np.zeros(2 * rows)
        self._noise = noise

    @classmethod
    def private(
        cls, horizon: int, clips: FloatArray, *, epsilon: float, rng: np.random.Generator
    ) -> "RunningMeans":
        """Return means whose sums come from the hybrid mechanism. All releases of an arm together are ε-DP.

        ``clips`` has the lowest and the highest reward of each run. The numbers of picks get no noise, since the
        picks are released anyway.
        """
        noise = np.empty((2 * len(clips), horizon + 1), dtype=np.float32)  # single precision halves the memory
        for row, (low, high) in enumerate(clips):
            noise[2 * row : 2 * row + 2] = (high - low) * hybrid_noise(2, horizon, epsilon=epsilon, rng=rng)
        return cls(len(clips), noise)

    def add(self, places: IndexArray, rewards: FloatArray) -> None:
        """Add one reward to each of the places, which must be distinct."""
        counts = self.counts.reshape(-1)
        counts[places] = n = counts[places] + 1
        self._sums[places] = sums = self._sums[places] + rewards
        if self._noise is not None:
            sums = sums + self._noise[places, n]
        self.means.reshape(-1)[places] = sums / n


class Windows:
    """The private 10th and 90th percentile of the last full window of every arm of every run.

    Windows are disjoint, so each reward enters only one pair of quantiles, and the pair is ε-DP. Until an arm's
    first window is full, its quantiles are the ends of the clipping range, which are public.

    Args:
        clips: The lowest and the highest reward of each run.
        sizes: The number of rewards in a window of each run.
        epsilon: The budget of a pair of quantiles; half of it for each.
        rng: The generator of the noise.
    """

    def __init__(self, clips: FloatArray, sizes: IndexArray, *, epsilon: float, rng: np.random.Generator) -> None:
        self.quantiles = np.repeat(clips[:, np.newaxis, :], 2, axis=1)
        self.widths = self.quantiles[:, :, 1] - self.quantiles[:, :, 0]
        self._clips = np.repeat(clips, 2, axis=0)
        self._sizes = np.repeat(sizes, 2)
        self._rewards = np.empty((self._sizes.size, int(sizes.max())))
        self._filled = np.zeros(self._sizes.size, dtype=np.int64)
        self._epsilon = epsilon
        self._rng = rng

    def add(self, places: IndexArray, rewards: FloatArray) -> None:
        """Put one reward into the window of each of the places, and estimate the quantiles of full windows."""
        filled = self._filled[places]
        self._rewards[places, filled] = rewards
        self._filled[places] = filled = filled + 1
        full = filled == self._sizes[places]
        if full.any():
            self._estimate(places[full])

    def _estimate(self, places: IndexArray) -> None:
        self._filled[places] = 0
        sizes = self._sizes[places]
        for size in np.unique(sizes):
            chosen = places[sizes == size]
            low, high = self._clips[chosen].T
            for position, level in enumerate(LEVELS):
                self.quantiles.reshape(-1, 2)[chosen, position] = private_quantiles(
                    self._rewards[chosen, :size],
                    level,
                    epsilon=self._epsilon / len(LEVELS),
                    low=low,
                    high=high,
                    rng=self._rng,
                )
        pairs = self.quantiles.reshape(-1, 2)[places]
        self.widths.reshape(-1)[places] = np.abs(pairs[:, 1] - pairs[:, 0])
