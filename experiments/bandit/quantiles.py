"""Private quantiles by the exponential mechanism on the real line."""

import numpy as np

from experiments.arrays import FloatArray

__all__ = ["interval_log_weights", "private_quantiles"]


def interval_log_weights(
    values: FloatArray, level: float, *, epsilon: float, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the edges of the intervals between sorted values, and the logarithm of each interval's weight.

    With x₁ ≤ … ≤ xₙ, x₀ = low and xₙ₊₁ = high, every z in (xᵢ, xᵢ₊₁) has i values below it, so the density
    is constant on the interval and its weight is (xᵢ₊₁ − xᵢ) · exp(−ε |i − level · n| / 2).
    """
    count = values.shape[-1]
    edges = np.concatenate([low[:, np.newaxis], np.sort(values, axis=-1), high[:, np.newaxis]], axis=-1)
    with np.errstate(divide="ignore"):  # an interval between equal values has no weight
        lengths = np.log(np.diff(edges, axis=-1))
    return edges, lengths - epsilon / 2 * np.abs(np.arange(count + 1) - level * count)


def private_quantiles(
    values: FloatArray,
    level: float,
    *,
    epsilon: float,
    low: FloatArray,
    high: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Return a private quantile of each row: density ∝ exp(−ε |#{x < z} − level · n| / 2) on [low, high].

    Privacy:
        ε-DP for neighbours that differ in one value (the number of values is public): the number of values below z
        changes by at most 1 for every z. Values must be clipped to [low, high], which is public.

    Cost:
        O(n log n) for each row.

    Example:
        >>> windows = np.random.default_rng(1).uniform(size=(3, 200))
        >>> ends = {"low": np.zeros(3), "high": np.ones(3)}
        >>> found = private_quantiles(windows, 0.9, epsilon=1.0, **ends, rng=np.random.default_rng(2))
        >>> bool((np.abs(found - 0.9) < 0.15).all())
        True

    References:
        A. Smith, Privacy-preserving statistical estimation with optimal convergence rates, 2011.
    """
    edges, log_weights = interval_log_weights(values, level, epsilon=epsilon, low=low, high=high)
    weights = np.exp(log_weights - log_weights.max(axis=-1, keepdims=True)).cumsum(axis=-1)
    place, within = rng.uniform(size=(2, values.shape[0]))
    picks = (weights <= place[:, np.newaxis] * weights[:, -1:]).sum(axis=-1)
    rows = np.arange(values.shape[0])
    left, right = edges[rows, picks], edges[rows, picks + 1]
    return np.asarray(left + within * (right - left))
