"""Tails of the binomial and the χ² distribution, by their continued fractions.

They replace the two functions of SciPy that a sampler's audit needs.
"""

import math
from collections.abc import Callable

__all__ = ["binomial_quantile", "chi_squared_tail"]

MOST_TERMS = 1_000_000
PRECISION = 1e-15
TINY = 1e-300


def binomial_quantile(successes: int, draws: int, level: float) -> float:
    """Return the p at which at least that many of n draws succeed with probability ``level``, for 0 < k ≤ n.

    It is the level-quantile of the Beta(k, n − k + 1) distribution, found by bisection.
    """
    low, high = 0.0, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        if _beta_cdf(middle, successes, draws - successes + 1) < level:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def chi_squared_tail(statistic: float, freedom: int) -> float:
    """Return the probability that a χ² variable with these degrees of freedom exceeds the statistic."""
    a, x = freedom / 2, statistic / 2
    if x <= 0:
        return 1.0
    scale = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        for n in range(1, MOST_TERMS):
            term *= x / (a + n)
            total += term
            if term < total * PRECISION:
                break
        return max(0.0, 1 - scale * total)
    return min(1.0, scale / _fraction(lambda n: (-n * (n - a), x + 2 * n + 1 - a), x + 1 - a))


def _beta_cdf(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function, DLMF 8.17.22."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # where the fraction converges faster
        return 1 - _beta_cdf(1 - x, b, a)
    front = a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)

    def term(n: int) -> tuple[float, float]:
        m = n // 2
        if n % 2:
            return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), 1.0
        return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), 1.0

    return math.exp(front) / (a * _fraction(term, 1.0))


def _fraction(term: Callable[[int], tuple[float, float]], first: float) -> float:
    """Return b₀ + a₁/(b₁ + a₂/(b₂ + …)) by Lentz's method; ``term(n)`` is (aₙ, bₙ)."""
    value = first or TINY
    c, d = value, 0.0
    for n in range(1, MOST_TERMS):
        above, below = term(n)
        d = 1 / (below + above * d or TINY)
        c = below + above / c or TINY
        value *= c * d
        if abs(c * d - 1) < PRECISION:
            break
    return value
