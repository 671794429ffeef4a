"""The law of noisy max with exponential noise: independent passers.

With gaps x_a and p_a = exp(−x_a), noisy max with exponential noise lets every candidate pass with
probability p_a, independently, and picks one of the passers at random. Hence

    Pr[a] = p_a ∫₀¹ ∏_{b≠a} (1 − u p_b) du.

The integrand falls like exp(−uS), S = Σ p ≥ 1. Beyond u = DEPTH/S it is worth less than exp(−DEPTH), and
up to there a panel over which uS grows by at most PANEL needs NODES Gauss–Legendre nodes: the quadrature
error is below 1e-18 of the integral, for every k, since |1 − up| ≤ exp(|u|p) holds in the complex plane.

Candidates with u p ≤ SMALL on the whole range enter through their power sums, because
log(1 − up) = −Σ uⁱpⁱ/i; there are at most DEPTH/SMALL = 320 others. So a row costs O(k), and the product
has few enough factors that rounding stays below 1e-13.
"""

import math

import numpy as np

from dpselect.kernels.arrays import FloatArray
from dpselect.kernels.compilation import compiled
from dpselect.kernels.twofloat import add

DEPTH = 40.0
PANEL = DEPTH / 3.0
SMALL = 1.0 / 8.0
TERMS = 18  # SMALL**TERMS / TERMS < 4e-18, the part of log(1 − up) that is left out
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


@compiled
def fill_exponential_pmf(gaps: FloatArray, pmf: FloatArray) -> None:
    """Fill the probabilities of noisy max with exponential noise."""
    high, low = 0.0, 0.0
    for a in range(gaps.size):
        pmf[a] = math.exp(-gaps[a])
        high, low = add(high, low, pmf[a], 0.0)
    total = high + low
    limit = min(1.0, DEPTH / total)
    threshold = SMALL / limit

    sums = np.zeros(TERMS + 1)
    low = 0.0
    large = np.empty(int(DEPTH / SMALL) + 1)
    larges = 0
    for p in pmf:
        if p > threshold:
            large[larges] = p
            larges += 1
            continue
        sums[1], low = add(sums[1], low, p, 0.0)
        power = p
        for i in range(2, TERMS + 1):
            power *= p
            sums[i] += power

    panels = math.ceil(total * limit / PANEL)
    points = np.empty(panels * NODES.size)
    masses = np.empty(points.size)
    moments = np.zeros(TERMS)
    for j in range(points.size):
        u = limit * (j // NODES.size + 0.5 * (NODES[j % NODES.size] + 1.0)) / panels
        log_product = 0.0
        for i in range(TERMS, 0, -1):
            log_product = (log_product - sums[i] / i) * u
        product = math.exp(log_product)
        for b in range(larges):
            product *= 1.0 - u * large[b]
        points[j] = u
        masses[j] = product * WEIGHTS[j % NODES.size] * limit / (2.0 * panels)
        power = masses[j]
        for i in range(TERMS):
            moments[i] += power
            power *= u

    # ∏_{b≠a} is the full product over 1 − u p_a; for small p_a that quotient is a power series in u p_a.
    for a in range(gaps.size):
        p = pmf[a]
        integral = 0.0
        if p > threshold:
            for j in range(points.size):
                integral += masses[j] / (1.0 - points[j] * p)
        else:
            for i in range(TERMS - 1, -1, -1):
                integral = integral * p + moments[i]
        pmf[a] = p * integral


@compiled
def fill_gumbel_pmf(gaps: FloatArray, pmf: FloatArray) -> None:
    """Fill the probabilities of noisy max with Gumbel noise, the exponential mechanism: exp(−x_a) / Σ."""
    high, low = 0.0, 0.0
    for a in range(gaps.size):
        pmf[a] = math.exp(-gaps[a])
        high, low = add(high, low, pmf[a], 0.0)
    for a in range(gaps.size):
        pmf[a] /= high
