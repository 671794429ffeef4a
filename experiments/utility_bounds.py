"""Utility bounds: what score a pick has with probability at least 1 − β, by formulas alone.

All bounds follow from one fact about noisy max over k levels: :func:`reach`. docs/theory/utility-bounds.md proves
them, and says which published bounds hold and how loose they are. Rows lie along the last axis. With the scores at
hand, :func:`error_quantile` gives the exact number.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import dpselect as dps
from experiments.arrays import FloatArray

__all__ = [
    "error_quantile",
    "gem_floors",
    "gem_worse_than_noisy_max",
    "gem_worse_than_uniform",
    "guaranteed_score",
    "published_gem_worse_than_noisy_max",
    "published_gem_worse_than_uniform",
    "reach",
]

STEPS = 64
"""Of a fixed point whose error each step at least halves."""


def reach(candidates: int, *, beta: float = 0.05, noise: str = "exponential") -> float:
    """Return the distance L within which noisy max picks with probability at least 1 − β, in scales of the noise.

    Noisy max over k levels with independent noise of scale 1 picks a level of at least max − L with probability at
    least 1 − β, for all levels:

    - exponential: L = log((k − 1)/(2β))
    - Gumbel: L = log((k − 1)(1 − β)/β)
    - Laplace: L solves (k − 1)(2 + L) e^(−L)/4 = β

    and 0 if that is negative. The worst case is one best level and k − 1 levels that trail it by L. There the L of
    Gumbel noise is exact, and that of exponential noise is too large by less than β (for β ≤ ½). The textbook's
    log(k/β) is larger than both, and too small for Laplace noise.

    Example:
        >>> round(reach(100), 2)  # noisy max's error: at most 2 · max Δ/ε times this
        6.9
    """
    rivals = candidates - 1
    if noise == "exponential":
        return math.log(max(1.0, rivals / (2 * beta)))
    if noise == "gumbel":
        return math.log(max(1.0, rivals * (1 - beta) / beta))
    if noise != "laplace":
        raise ValueError(f"noise must be 'exponential', 'laplace' or 'gumbel': no bound is known for {noise!r}")
    distance = 0.0
    for _ in range(STEPS):
        distance = math.log(max(1.0, rivals * (2 + distance) / (4 * beta)))
    return distance


def guaranteed_score(
    mechanism: dps.Mechanism,
    scores: ArrayLike,
    sensitivities: ArrayLike,
    *,
    beta: float = 0.05,
    offsets: ArrayLike = 0.0,
) -> Any:  # noqa: ANN401 - a number, or one for each row
    """Return a lower bound of the picked score that holds with probability at least 1 − β, one for each row.

    Let L be :func:`reach`, ρ = 2L/ε (L/ε if monotone), o the offsets and t the mechanism's tilt.

    - Noisy max: max_j {q_j + o_j − tΔ_j} − ρ max Δ − max_a {o_a − tΔ_a}.
    - GEM: max_j {q_j + o_j − (ρ + t)Δ_j} − max_a {o_a + (ρ − t)Δ_a}.
    - Combined GEM: the smaller bound of GEM and modified GEM at the budget of the pick.

    The bound is never below the published one of GEM (:func:`gem_floors`).

    Args:
        mechanism: One of these, with any tilt and noise. Its own β, which sets t, may be another.
        scores: Scores, candidates along the last axis.
        sensitivities: Their sensitivities.
        beta: The probability that the bound fails.
        offsets: Public offsets.

    Example:
        >>> scores, sensitivities = [1.0, 0.9, 0.0], [1.0, 0.01, 0.01]
        >>> float(guaranteed_score(dps.GEM(epsilon=1.0), scores, sensitivities).round(3))
        0.78
        >>> round(error_quantile(dps.GEM(epsilon=1.0), scores, sensitivities, 0.95), 3)  # exact: 0.9
        0.1
    """
    q, deltas = _columns(scores, sensitivities)
    if isinstance(mechanism, dps.CombinedGEM):
        rivals = (dps.GEM(epsilon=mechanism.pick_epsilon, beta=mechanism.beta, tilt=tilt) for tilt in (-1.0, 1.0))
        return np.minimum(*(guaranteed_score(rival, q, deltas, beta=beta) for rival in rivals))
    if not isinstance(mechanism, dps.NoisyMax | dps.GEM):
        raise ValueError(f"mechanism must be a noisy max or a GEM: no bound is known for {mechanism.label}")
    o = np.asarray(offsets, dtype=np.float64)
    rho = 2 * reach(q.shape[-1], beta=beta, noise=mechanism.noise) / mechanism.epsilon
    t = mechanism.tilt * _rho(q, mechanism.epsilon, mechanism.beta)
    if isinstance(mechanism, dps.GEM):
        return (q + o - (rho + t) * deltas).max(axis=-1) - (o + (rho - t) * deltas).max(axis=-1)
    distance = rho / 2 if mechanism.monotone else rho
    free = o - t * deltas
    return (q + free).max(axis=-1) - distance * deltas.max(axis=-1) - free.max(axis=-1)


def gem_floors(
    scores: ArrayLike, sensitivities: ArrayLike, *, epsilon: float, tilt: float = 1.0, beta: float = 0.05
) -> FloatArray:
    """Return the published lower bound of the picked score for each candidate a, if GEM picks a.

    It is max_j {q_j − Δ_a (ρ − t) − Δ_j (ρ + t)} with ρ = 2 log(k/β)/ε and t = tilt · ρ.

    With probability at least 1 − β the picked score is at least its own floor. GEM proper (tilt = 1) has one floor
    for all candidates, max_j {q_j − 4Δ_j log(k/β)/ε}. The floor of modified GEM is q_* − 4Δ_a log(k/β)/ε, so the
    sensitivity of the picked candidate bounds its error. The bound holds for exponential and Gumbel noise, where it
    is loose, and fails for Laplace noise: see :func:`reach`.

    Example:
        >>> gem_floors([1.0, 0.9, 0.0], [1.0, 0.01, 0.01], epsilon=1.0).round(3)
        array([0.736, 0.736, 0.736])

    References:
        S. Raskhodnikova, A. Smith, Efficient Lipschitz extensions, 2015.
        D. Antonova et al., Private selection with heterogeneous sensitivities, 2025 (any t).
    """
    q, deltas = _columns(scores, sensitivities)
    rho = _rho(q, epsilon, beta)
    t = tilt * rho
    return np.asarray((q - deltas * (rho + t)).max(axis=-1, keepdims=True) - deltas * (rho - t))


def gem_worse_than_noisy_max(
    scores: ArrayLike, sensitivities: ArrayLike, *, epsilon: float, beta: float = 0.05
) -> Any:  # noqa: ANN401 - a truth value, or one for each row
    """Return whether GEM's published bound is below that of noisy max, one for each row.

    That is, max_j {q_j − 4Δ_j λ} < q_* − 2λ max Δ with λ = log(k/β)/ε, or Δ_j > max Δ/2 − (q_* − q_j)/(4λ) for
    *every* j. The published condition looks at the best candidate only. It is necessary but not sufficient.

    Example:
        >>> bool(gem_worse_than_noisy_max([1.0, 0.9], [1.0, 0.01], epsilon=1.0))  # because of the second
        False
        >>> bool(published_gem_worse_than_noisy_max([1.0, 0.9], [1.0, 0.01]))
        True
    """
    q, deltas = _columns(scores, sensitivities)
    rho = _rho(q, epsilon, beta)
    shortfalls = q.max(axis=-1, keepdims=True) - q
    return (shortfalls + 2 * deltas * rho).min(axis=-1) > rho * deltas.max(axis=-1)


def gem_worse_than_uniform(
    scores: ArrayLike, sensitivities: ArrayLike, *, epsilon: float, beta: float = 0.05
) -> Any:  # noqa: ANN401 - a truth value, or one for each row
    """Return whether GEM's published bound is vacuous, that is, below the lowest score, one for each row.

    That is, max_j {q_j − 4Δ_j λ} < q_− with λ = log(k/β)/ε, or Δ_j > (q_j − q_−)/(4λ) for *every* j. The published
    condition looks at the best candidate only. It is necessary but not sufficient.

    Example:
        >>> bool(gem_worse_than_uniform([1.0, 0.9, 0.0], [1.0, 0.01, 1.0], epsilon=1.0))
        False
        >>> bool(published_gem_worse_than_uniform([1.0, 0.9, 0.0], [1.0, 0.01, 1.0], epsilon=1.0))
        True
    """
    q, deltas = _columns(scores, sensitivities)
    rises = q - q.min(axis=-1, keepdims=True)
    return (rises - 2 * deltas * _rho(q, epsilon, beta)).max(axis=-1) < 0


def published_gem_worse_than_noisy_max(scores: ArrayLike, sensitivities: ArrayLike) -> Any:  # noqa: ANN401 - as above
    """Return for each row whether the best candidate's sensitivity exceeds half of the largest: Δ_* > max Δ/2.

    The paper's appendix states this as the condition for GEM's bound to be worse than that of noisy max. If several
    candidates are best, Δ_* is their smallest sensitivity.

    Example:
        >>> published_gem_worse_than_noisy_max([[1.0, 0.0], [0.0, 1.0]], [0.2, 1.0])
        array([False,  True])
    """
    q, deltas = _columns(scores, sensitivities)
    return 2 * _sensitivity_of_best(q, deltas) > deltas.max(axis=-1)


def published_gem_worse_than_uniform(
    scores: ArrayLike, sensitivities: ArrayLike, *, epsilon: float, beta: float = 0.05
) -> Any:  # noqa: ANN401 - a truth value, or one for each row
    """Return for each row whether Δ_* > (q_* − q_−) ε/(4 log(k/β)), where q_− is the lowest score.

    The paper's appendix states this as the condition for GEM's bound to be worse than the worst random pick. If
    several candidates are best, Δ_* is their smallest sensitivity.

    Example:
        >>> bool(published_gem_worse_than_uniform([1.0, 0.0], [0.01, 1.0], epsilon=1.0))
        False
    """
    q, deltas = _columns(scores, sensitivities)
    return 2 * _rho(q, epsilon, beta) * _sensitivity_of_best(q, deltas) > q.max(axis=-1) - q.min(axis=-1)


def _columns(scores: ArrayLike, sensitivities: ArrayLike) -> tuple[FloatArray, FloatArray]:
    q, deltas = np.broadcast_arrays(np.asarray(scores, np.float64), np.asarray(sensitivities, np.float64))
    return q, deltas


def _rho(scores: FloatArray, epsilon: float, beta: float) -> float:
    """Return the published ρ = 2 log(k/β)/ε."""
    return 2 * math.log(scores.shape[-1] / beta) / epsilon


def _sensitivity_of_best(scores: FloatArray, sensitivities: FloatArray) -> FloatArray:
    """Return Δ_* of each row."""
    best = scores == scores.max(axis=-1, keepdims=True)
    return np.asarray(np.where(best, sensitivities, np.inf).min(axis=-1))


def error_quantile(mechanism: dps.Mechanism, scores: ArrayLike, sensitivities: ArrayLike, level: float) -> float:
    """Return the smallest error that a row's pick exceeds with a probability of at most 1 − level.

    Probabilities are summed from the largest error down, so it is accurate for levels very close to 1 too. An
    excess of one part in 10¹² over 1 − level counts as rounding.
    """
    q = np.asarray(scores, dtype=np.float64)
    falling = np.argsort(q)
    exceeded = np.cumsum(mechanism.pmf(q, sensitivities)[falling]) > (1 - level) * (1 + 1e-12)
    exceeded[-1] = True
    return float(q.max() - q[falling[exceeded.argmax()]])
