"""The pmf of permute-and-flip: candidates pass independently.

With gaps x_a and p_a = exp(−x_a), noisy max with exponential noise lets every candidate pass with probability p_a,
independently, and picks one that passes uniformly. Hence

    Pr[a] = p_a ∫₀¹ ∏_{b≠a} (1 − u p_b) du.

The integrand falls like exp(−uS), S = Σ p ≥ 1. Beyond u = DEPTH/S it is below exp(−DEPTH). Up to there, a panel
over which uS grows by at most PANEL needs NODES Gauss–Legendre nodes: the quadrature error is below 1e-18 of the
integral, for every k, since |1 − up| ≤ exp(|u|p) holds in the complex plane.

Candidates with u p ≤ SMALL on the whole range enter through their power sums, because log(1 − up) = −Σ uⁱpⁱ/i. At
most DEPTH/SMALL = 320 candidates remain. So a row costs O(k), and the product has few enough factors that rounding
stays below 1e-13.
"""

import math

import numpy as np

from dpselect.kernels.arrays import FloatArray, IndexArray
from dpselect.kernels.compilation import compiled, in_numpy
from dpselect.kernels.twofloat import add

DEPTH = 40.0
PANEL = DEPTH / 3.0
SMALL = 1.0 / 8.0
TERMS = 18  # the omitted part of log(1 − up) is below SMALL**TERMS / TERMS < 4e-18
LANES = 8
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


@compiled
def fill_passing(gaps: FloatArray, passing: FloatArray) -> float:
    """Fill p_a = exp(−x_a) and return their sum, exact to the last bits: LANES sums with their rounding errors."""
    sums, errors = np.zeros(LANES), np.zeros(LANES)
    for a in range(gaps.size):
        p = math.exp(-gaps[a])
        passing[a] = p
        lane = a % LANES
        before = sums[lane]
        sums[lane] = before + p
        part = sums[lane] - before
        errors[lane] += (before - (sums[lane] - part)) + (p - part)
    high, low = 0.0, 0.0
    for lane in range(LANES):
        high, low = add(high, low, sums[lane], errors[lane])
    return high


@compiled
def fill_power_sums(passing: FloatArray, threshold: float, sums: FloatArray, large: FloatArray) -> int:
    """Fill sums[i] with Σ pⁱ over all p up to a threshold, put the others into ``large``, return their number.

    The loop takes LANES candidates at a time, and each lane has its own sums, so the compiler can vectorise it.
    """
    larges = 0
    lanes, low = np.zeros((TERMS + 1, LANES)), np.zeros(LANES)
    powers, base = np.empty(LANES), np.empty(LANES)
    for first in range(0, passing.size, LANES):
        for lane in range(LANES):
            p = passing[first + lane] if first + lane < passing.size else 0.0
            if p > threshold:
                large[larges] = p
                larges += 1
                p = 0.0
            base[lane] = p
            powers[lane] = p
            before = lanes[1, lane]
            lanes[1, lane] = before + p
            part = lanes[1, lane] - before
            low[lane] += (before - (lanes[1, lane] - part)) + (p - part)
        for i in range(2, TERMS + 1):
            for lane in range(LANES):
                powers[lane] *= base[lane]
                lanes[i, lane] += powers[lane]
    high, rest = 0.0, 0.0
    for lane in range(LANES):
        high, rest = add(high, rest, lanes[1, lane], low[lane])
    sums[1] = high
    for i in range(2, TERMS + 1):
        sums[i] = lanes[i].sum()
    return larges


@compiled
def fill(gaps: FloatArray, pmf: FloatArray) -> None:
    """Fill the probabilities of noisy max with exponential noise; ``pmf`` and ``gaps`` may be the same array."""
    total = fill_passing(gaps, pmf)
    limit = min(1.0, DEPTH / total)
    threshold = SMALL / limit
    sums = np.zeros(TERMS + 1)
    large = np.empty(int(DEPTH / SMALL) + 1)
    larges = fill_power_sums(pmf, threshold, sums, large)

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

    # ∏_{b≠a} is the full product divided by 1 − u p_a. For small p_a that quotient is a power series in u p_a.
    for a in range(pmf.size):
        p = pmf[a]
        if p > threshold:
            integral = 0.0
            for j in range(points.size):
                integral += masses[j] / (1.0 - points[j] * p)
            pmf[a] = -p * integral  # negative: marks the candidate as done
    for a in range(pmf.size):
        p = pmf[a]
        series = 0.0
        for i in range(TERMS - 1, -1, -1):
            series = series * p + moments[i]
        pmf[a] = p * series if p >= 0.0 else -p


@in_numpy(fill)
def _fill(gaps: FloatArray, pmf: FloatArray) -> None:
    passing = np.exp(-gaps)
    total = passing.sum()
    limit = min(1.0, DEPTH / total)
    panels = math.ceil(total * limit / PANEL)
    places = np.arange(panels)[:, None] + 0.5 * (NODES + 1.0)
    points = (limit / panels * places).reshape(-1, 1)
    failing = 1.0 - points * passing
    masses = np.prod(failing, axis=1, keepdims=True) * np.tile(WEIGHTS, panels)[:, None] * (limit / (2.0 * panels))
    pmf[:] = passing * (masses / failing).sum(axis=0)


@compiled
def fill_rows(first: int, last: int, bounds: IndexArray, pmf: FloatArray) -> None:
    """Turn the gaps of each row of a block into probabilities, in place."""
    for row in range(first, last):
        target = pmf[bounds[row] : bounds[row + 1]]
        fill(target, target)
