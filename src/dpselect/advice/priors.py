"""What you know beforehand: a public sample, a private sample that you pay for, or only a correlation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from dpselect import parameters as check
from dpselect.candidates import Numbers, read_batch, read_sensitivities
from dpselect.kernels.arrays import FloatArray

__all__ = ["GUESSES", "PrivateSample", "Public", "draw_scores", "read_sample", "read_widths"]

DRAWS = 240
"""How many score vectors to draw for a correlation. They are seeded: the same question has the same answer."""

GUESSES = (-0.8, 0.0, 0.8)
"""The correlations to average over if none is stated."""


@dataclass(frozen=True)
class Public:
    """A sample of scores that anyone may see: public data, or synthetic data made without looking at private data.

    Attributes:
        scores: A row of scores for each example, candidates along the last axis.
    """

    scores: Numbers


@dataclass(frozen=True, repr=False)
class PrivateSample:
    """A sample of private scores, a row for each user. Looking at it costs privacy.

    Attributes:
        scores: A row of scores for each user.
        tuning_epsilon: The privacy budget of the look, as for :func:`dpselect.tuning.tune`.
        cap: A public bound on a user's error, or a range of such bounds, as for :func:`dpselect.tuning.tune`.
    """

    scores: Numbers
    tuning_epsilon: float | None = None
    cap: float | tuple[float, float] | None = None

    def __repr__(self) -> str:
        return f"PrivateSample(tuning_epsilon={self.tuning_epsilon}, cap={self.cap})"


def read_widths(sensitivities: Numbers, k: int | None) -> FloatArray:
    """Return one sensitivity for each candidate."""
    widths = read_sensitivities(sensitivities)
    if widths.ndim == 0:
        if k is None:
            raise ValueError("k must be given if sensitivities is a single number")
        widths = np.full(check.count("k", k), float(widths))
    if k is not None and k != widths.size:
        raise ValueError(f"k must be the number of sensitivities, {widths.size}; got {k}")
    return widths


def read_sample(scores: Numbers, widths: FloatArray) -> FloatArray:
    """Return a public sample as an array with two axes."""
    batch = read_batch(scores, widths)
    if batch.shape is None or len(batch.shape) > 1 or batch.rows == 0:
        raise ValueError("prior must hold an array of scores: a row for each example, a column for each candidate")
    return np.asarray(scores, dtype=np.float64).reshape(-1, widths.size)


def draw_scores(widths: FloatArray, correlations: Sequence[float], deviation: float) -> FloatArray:
    """Draw normal scores with given rank correlations to the sensitivities, the same number for each correlation.

    The ranks of the sensitivities become normal numbers g. Then $r g + √(1 − r²) ξ$ with $r = 2 sin(πρ/6)$ has
    Spearman's correlation ρ with them (K. Pearson, 1907), up to ties.
    """
    order = np.argsort(widths, kind="stable")
    normal = NormalDist()
    places = np.array([normal.inv_cdf((rank + 0.5) / widths.size) for rank in range(widths.size)])
    guide = np.empty(widths.size)
    guide[order] = places
    _, group = np.unique(widths, return_inverse=True)
    guide = (np.bincount(group, guide) / np.bincount(group))[group]  # equal sensitivities, equal guides
    noise = np.random.default_rng(20_250_105).normal(size=(DRAWS, widths.size))
    strengths = np.resize([2 * math.sin(math.pi * value / 6) for value in correlations], DRAWS)[:, np.newaxis]
    return np.asarray(deviation * (strengths * guide + np.sqrt(1 - strengths**2) * noise))
