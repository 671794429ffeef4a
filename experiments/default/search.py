"""An adversary's search for the row on which the default loses most to noisy max.

Both errors depend only on ε·q_a/Δ_a, so ε is 1 here and the largest sensitivity is 1. A row of scores and
sensitivities stands for all rows that are multiples of it.
"""

from dataclasses import dataclass

import numpy as np

import dpselect as dps
from experiments.arrays import FloatArray

__all__ = ["Row", "family_row", "ratios", "worst_row"]

FAR = 60.0
"""A candidate this far below the best is picked with a probability below 1e-13."""


@dataclass(frozen=True)
class Row:
    """Scores and sensitivities at ε = 1."""

    scores: FloatArray
    sensitivities: FloatArray


def ratios(scores: FloatArray, sensitivities: FloatArray) -> FloatArray:
    """Return the default's error over noisy max's, for each row; 0 where neither has an error."""
    ours, theirs = (
        np.asarray(dps.expected_error(mechanism, scores, sensitivities))
        for mechanism in (dps.HeterogeneousNoisyMax(epsilon=1.0), dps.NoisyMax(epsilon=1.0))
    )
    return np.where(theirs > 0, ours / np.where(theirs > 0, theirs, 1.0), 0.0)


def worst_row(candidates: int, *, rounds: int, seed: int, population: int = 2000, kept: int = 20) -> Row:
    """Return the worst row that random search finds: keep the worst rows, vary them, and repeat.

    Args:
        candidates: The number of candidates.
        rounds: The number of repetitions, each with smaller variations.
        seed: The seed of the random variations.
        population: The number of rows in each round.
        kept: The number of rows to vary.
    """
    random = np.random.default_rng([seed, candidates])
    # Gaps and sensitivities on a logarithmic scale: both may be far below 1, and gaps far above.
    gaps = random.uniform(-3, np.log10(FAR), (population, candidates))
    widths = random.uniform(-3, 0.5, (population, candidates))
    for size in 0.5 * 0.85 ** np.arange(rounds):
        order = np.argsort(-ratios(*_rows(gaps, widths)))[:kept]
        parents = np.concatenate([order, random.choice(order, population - kept)])
        gaps, widths = (values[parents] for values in (gaps, widths))
        for values, low, high in ((gaps, -3.0, np.log10(FAR)), (widths, -3.0, 0.5)):
            # Some coordinates of a row vary, and the kept rows stay.
            steps = random.normal(0, size, values.shape) * (random.random(values.shape) < 0.5)
            values[kept:] = np.clip(values + steps, low, high)[kept:]
    worst = int(np.argmax(ratios(*_rows(gaps, widths))))
    scores, sensitivities = _rows(gaps[worst : worst + 1], widths[worst : worst + 1])
    return Row(scores[0], sensitivities[0])


def _rows(gaps: FloatArray, widths: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return scores and sensitivities. The smallest gap is 0, and sensitivities are cut off at 1."""
    scores = -(10.0**gaps)
    sensitivities = 10.0 ** np.minimum(widths, 0.0)
    return scores - scores.max(axis=1, keepdims=True), sensitivities / sensitivities.max(axis=1, keepdims=True)


def family_row(candidates: int, points: int = 60) -> Row:
    """Return the worst row of one shape, for any number of candidates.

    Two candidates have sensitivity 1, the others 0. One of the two is best, one of the others trails it by some
    gap, and all others are far below. The offsets that make equal scores fair favour the one that trails.
    """
    sensitivities = np.zeros(candidates)
    sensitivities[:2] = 1.0
    gaps = np.linspace(0.0, 1.5 * np.log(candidates), points + 1)[1:]
    scores = np.full((points, candidates), -FAR)
    scores[:, 0], scores[:, -1] = 0.0, -gaps
    return Row(scores[np.argmax(ratios(scores, sensitivities))], sensitivities)
