"""The pmf of random stopping, Laplace or exponential noise, in a few hundred evaluations of each candidate's noise.

    Pr[a] = (1/k) ∫ f_a(x) h(S(x)) dx,   h(S) = φ'(1 − S) = E[K] · (1 + S(1−γ)/γ)^−(1+η),   S = (1/k) Σ (1 − F_b)

:mod:`dpselect.kernels.pmf.noisy_argmax` has the definitions, and handles other noises and candidates without
noise. There the line is cut at every score, because densities have kinks there; with k scores that is O(k²) work.
Here a panel may hold any number of scores:

- 1 − F_b is ½ exp(−z) right of its score and 1 − ½ exp(z) left of it, z = (x − q_b)/b_b. Either branch, continued
  beyond the score, is smooth on the whole panel. Its values at 16 Gauss–Legendre nodes determine it up to
  rounding.
- S on a cell between two neighbouring scores is therefore a polynomial of degree 15, stored by its Legendre
  coefficients. Crossing a score exchanges one candidate's branch and updates 16 coefficients.
- ∫ f_a h over the panel is Σ_n (coefficient n of f_a) · ∫ P_n h, and the moments ∫ P_n h are the same for all
  candidates. They are summed cell by cell, with few nodes where a cell is short.

The width of a panel is chosen so that 16 nodes suffice: the Bernstein ellipse of parameter 3.2 holds no
singularity, and 3.2^−32 is below 1e-16. Near a candidate's score a panel is at most FINE scales wide, since |Im z|
< π/2 keeps the real part of its term in S positive. A panel may be wider where that term is too small to matter:
left of the score as soon as ½ exp(z) stays below 1 on the ellipse (width −0.7 z), and right of it from where (1+η)
S(1−γ)/γ is below 1 (width 2(z − height)). But 16 nodes must still integrate exp(z) itself. For a width w they err
by about 2e-17 (w/14)^33, relative to the largest value on the panel, exp(−|z|): hence 14 + 0.4 z to the right, and
10 − 0.3 z to the left.

Exponential noise is the simpler case: 1 − F_b is exp(−z) right of its score and 1 left of it, where the density is
0. Left of its score a candidate shapes nothing, so a panel may be wide. But a panel must end at a score that is
more than FINE scales away: continued that far to the left, exp(−z) would be too large to be exchanged.

A panel that holds scores is narrower. Its branches are interpolated by polynomials of degree 15. Elsewhere they
are only integrated, and for that 16 nodes are as good as degree 31.
"""

import math
from typing import NamedTuple

import numpy as np

from dpselect.kernels.arrays import FloatArray, IndexArray
from dpselect.kernels.compilation import compiled

FINE = 2.0
REACH = 38.0
"""The distance from a score, in scales, at which ½ exp(−z) is below the rounding of its integral."""
WIDEST = 32.0
"""The largest width of a panel, in scales. :func:`fill_exponentials` needs half of it to be at most 16."""
CANCELLING = 64.0
"""The largest distance, in scales, that is formed as a difference of two larger numbers; costs 6 of 53 bits."""

TWO_SIDED, ONE_SIDED = 0.5, 1.0
"""1 − F at a score, for Laplace and for exponential noise."""

NODES = 16
POINTS, WEIGHTS = np.polynomial.legendre.leggauss(NODES)
TO_COEFFICIENTS = np.array(
    [0.5 * (2 * n + 1) * WEIGHTS * np.polynomial.Legendre.basis(n)(POINTS) for n in range(NODES)]
)
"""Maps values at the nodes to Legendre coefficients."""
FROM_VALUES = np.ascontiguousarray(TO_COEFFICIENTS.T)
UPWARDS = np.array([(2 * n + 1) / (n + 1) for n in range(NODES)])
DOWNWARDS = np.array([n / (n + 1) for n in range(NODES)])
"""P_{n+1} = UPWARDS[n] x P_n − DOWNWARDS[n] P_{n−1}."""

INVERSE_FACTORIALS = np.array([1.0 / math.factorial(n) for n in range(15)])

# A cell of half-width up to this many scales needs this many nodes: n = 2, 3, 4, 6, 8, 12 with (π/r)^−2n < 1e-16.
CELL_NODES = np.array([2, 3, 4, 6, 8, 12, 16])
CELL_WIDTHS = np.array([2e-4, 4e-3, 2.5e-2, 1e-1, 2.5e-1, 5e-1, np.inf])
CELL_POINTS, CELL_WEIGHTS = np.zeros((2, CELL_NODES.size, NODES))
for _row, _count in enumerate(CELL_NODES):
    CELL_POINTS[_row, :_count], CELL_WEIGHTS[_row, :_count] = np.polynomial.legendre.leggauss(int(_count))


@compiled
def exponential_series(y: float) -> float:
    """Return exp(y) for |y| ≤ ½, accurate to rounding: 14 terms, no call and no branch, so that it vectorises."""
    power: float = INVERSE_FACTORIALS[14]
    for n in range(13, -1, -1):
        power = power * y + INVERSE_FACTORIALS[n]
    return power


@compiled
def fill_exponentials(rate: float, factor: float, values: FloatArray) -> None:
    """Fill factor · exp(rate · ξ) at all nodes ξ, |rate| ≤ 16, by a series that is squared repeatedly.

    Each squaring undoes one halving of the rate.
    """
    if abs(rate) <= 0.5:
        for j in range(NODES):
            values[j] = factor * exponential_series(rate * POINTS[j])
    elif abs(rate) <= 2.0:
        for j in range(NODES):
            root = exponential_series(0.25 * rate * POINTS[j])
            square = root * root
            values[j] = factor * (square * square)
    else:
        for j in range(NODES):
            root = exponential_series(0.03125 * rate * POINTS[j])
            square = root * root
            fourth = square * square
            sixteenth = (fourth * fourth) * (fourth * fourth)
            values[j] = factor * (sixteenth * sixteenth)


class Stopping(NamedTuple):
    """The law of the number of draws, and what it requires of panels."""

    peak: float
    """1 − F at the score: ½ for Laplace noise, 1 for exponential noise, which is one-sided."""
    odds: float
    """(1 − γ)/γ."""
    eta: float
    mean: float
    """E[K]."""
    height: float
    """The distance right of a score, in scales, from which its term in S no longer shapes h."""
    growth: float
    """The logarithm of max h / min h."""


class Scratch(NamedTuple):
    """Work arrays for one panel."""

    falls: FloatArray
    """½ exp(−z), or exp(−z), at each node, for each candidate left of the panel or in it."""
    rises: FloatArray
    """½ exp(z), or 0, at each node, for each candidate right of the panel or in it."""
    survival: FloatArray
    shared: FloatArray
    moments: FloatArray
    basis: FloatArray


@compiled
def new_stopping(peak: float, gamma: float, eta: float, mean: float) -> Stopping:
    """Return the law, given 1 − F at a score, γ, η and E[K]."""
    odds = (1.0 - gamma) / gamma
    height = max(0.0, math.log(peak * odds * (1.0 + eta))) if odds > 0.0 else 0.0
    return Stopping(peak, odds, eta, mean, height, -(1.0 + eta) * math.log(gamma))


@compiled
def slope(law: Stopping, survival: float) -> float:
    """Return h(S)."""
    base = 1.0 + law.odds * survival
    if law.eta == 1.0:
        return law.mean / (base * base)
    if law.eta == 0.0:
        return law.mean / base
    return law.mean * math.exp(-(1.0 + law.eta) * math.log1p(law.odds * survival))


@compiled
def is_over(law: Stopping, z: float, flat: float) -> bool:
    """Return whether a candidate's noise no longer matters, z scales right of its score.

    Its density falls by exp(−REACH) while h no longer grows: h is flat from ``flat`` scales on, and before that it
    grows by at most its whole range.
    """
    return z >= REACH + max(0.0, min(flat, law.growth))


@compiled
def widest_panel(
    law: Stopping, scores: FloatArray, scales: FloatArray, base: float, delta: float, flat: float
) -> tuple[float, float, float]:
    """Return the largest width of a panel from base + delta, the smallest active scale, and the next landing.

    The landing is where further noise starts, relative to ``base``. It is infinite if none starts. Panels end
    at a landing of one-sided noise.
    """
    width, finest, landing = math.inf, math.inf, math.inf
    for a in range(scores.size):
        scale = scales[a]
        z = ((base - scores[a]) + delta) / scale
        if is_over(law, z, ((base - scores[a]) + flat) / scale):
            continue
        if z >= 0.0:
            room = min(2.0 * (z - law.height), 14.0 + 0.4 * z, WIDEST)
        elif law.peak == ONE_SIDED:
            if z <= -FINE:
                landing = min(landing, scores[a] - base)
                continue
            room = FINE
        else:
            room = max(min(-0.7 * z, 10.0 - 0.3 * z, WIDEST), -z - REACH - 1.0)
        width = min(width, max(room, FINE) * scale)
        if z < -REACH - 1.0:
            landing = min(landing, (scores[a] - base) - REACH * scale)
        else:
            finest = min(finest, scale)
    return width, finest, landing


@compiled
def widest_polynomial(
    law: Stopping, scores: FloatArray, scales: FloatArray, base: float, delta: float, flat: float
) -> float:
    """Return the largest width of a panel from base + delta on which every branch is a polynomial of degree 15.

    Interpolation at 16 Gauss–Legendre nodes on w scales has an error of 2^−15 (w/2)^16/16! times the largest value
    of exp(z) on the panel. That value is exp(−|z|) at the end nearer to the score, so the error is 1e-16 if w ≤
    2.6 exp(|z|/16).
    """
    width = math.inf
    for a in range(scores.size):
        z = ((base - scores[a]) + delta) / scales[a]
        if is_over(law, z, ((base - scores[a]) + flat) / scales[a]) or z < -REACH - WIDEST:
            continue
        if law.peak == ONE_SIDED and z <= -FINE:
            continue
        room = 2.6 * math.exp(abs(z) / 16.0)
        if z < 0.0 and law.peak == ONE_SIDED:
            room = FINE  # continued to the left, the branch is as large as exp(FINE)
        elif z < 0.0:
            room /= 1.0 + room / 16.0  # the nearer end is the right one, closer by w: w ≤ 2.6 exp((|z| − w)/16)
        width = min(width, max(room, FINE) * scales[a])
    return width


@compiled
def crowding(scores: FloatArray, scales: FloatArray, rising: IndexArray, upcoming: int, gap: float) -> float:
    """Return the smallest scale of the next score and of those that follow it within the distance ``gap``."""
    smallest = math.inf
    first = scores[rising[upcoming]]
    for j in range(upcoming, rising.size):
        if scores[rising[j]] - first > gap:
            break
        smallest = min(smallest, scales[rising[j]])
    return smallest


@compiled
def fill_branches(
    law: Stopping,
    scores: FloatArray,
    scales: FloatArray,
    rising: IndexArray,
    passed: int,
    after: int,
    base: float,
    middle: float,
    half: float,
    flat: float,
    scratch: Scratch,
) -> None:
    """Fill in every candidate's branches at the nodes, and S as it is left of all scores in the panel.

    A candidate beyond its reach has no branch; the first entry −1 marks that.
    """
    waiting = 0.0
    for j in range(NODES):
        scratch.survival[j] = 0.0
    for i in range(rising.size):
        a = rising[i]
        z, rate = ((base - scores[a]) + middle) / scales[a], half / scales[a]
        if i < after:
            if is_over(law, z - rate, ((base - scores[a]) + flat) / scales[a]):
                scratch.falls[i, 0] = -1.0  # marks: no branch
                continue
            fill_exponentials(-rate, law.peak * math.exp(-z), scratch.falls[i])
            if i < passed:
                for j in range(NODES):
                    scratch.survival[j] += scratch.falls[i, j]
        if i >= passed:
            waiting += 1.0
            if law.peak == ONE_SIDED:
                scratch.rises[i] = 0.0 if i < after else -1.0
                continue
            if z + rate < -REACH - 0.5:
                scratch.rises[i, 0] = -1.0
                continue
            fill_exponentials(rate, 0.5 * math.exp(z), scratch.rises[i])
            for j in range(NODES):
                scratch.survival[j] -= scratch.rises[i, j]
    for j in range(NODES):
        scratch.survival[j] = (scratch.survival[j] + waiting) / rising.size


@compiled
def add_cell(
    law: Stopping, coefficients: FloatArray, left: float, right: float, extent: float, scratch: Scratch
) -> None:
    """Add ∫ P_n(ξ) h(S(ξ)) dξ over [left, right] to the moments; ``extent`` is the panel's half-width in scales."""
    half, middle = 0.5 * (right - left), 0.5 * (right + left)
    row = 0
    while half * extent > CELL_WIDTHS[row]:
        row += 1
    basis = scratch.basis
    for i in range(CELL_NODES[row]):
        x = middle + half * CELL_POINTS[row, i]
        basis[0], basis[1] = 1.0, x
        for n in range(1, NODES - 1):
            basis[n + 1] = UPWARDS[n] * x * basis[n] - DOWNWARDS[n] * basis[n - 1]
        survival = 0.0
        for n in range(NODES):
            survival += coefficients[n] * basis[n]
        mass = half * CELL_WEIGHTS[row, i] * slope(law, max(0.0, survival))
        for n in range(NODES):
            scratch.moments[n] += mass * basis[n]


@compiled
def fill_shared(scratch: Scratch) -> None:
    """Fill in, from the moments, the weights of the nodes that give ∫ f h from the values of f at the nodes."""
    for j in range(NODES):
        scratch.shared[j] = 0.0
    for n in range(NODES):
        for j in range(NODES):
            scratch.shared[j] += scratch.moments[n] * TO_COEFFICIENTS[n, j]


@compiled
def weigh(values: FloatArray, weights: FloatArray) -> float:
    """Return the sum of products over the nodes, in four lanes."""
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    for j in range(0, NODES, 4):
        first += values[j] * weights[j]
        second += values[j + 1] * weights[j + 1]
        third += values[j + 2] * weights[j + 2]
        fourth += values[j + 3] * weights[j + 3]
    return (first + second) + (third + fourth)


@compiled
def integrate_panel(
    law: Stopping,
    scores: FloatArray,
    scales: FloatArray,
    rising: IndexArray,
    passed: int,
    after: int,
    base: float,
    middle: float,
    half: float,
    finest: float,
    flat: float,
    scratch: Scratch,
    pmf: FloatArray,
) -> None:
    """Add the integral over the panel around base + middle, which holds the scores ``passed`` up to ``after``."""
    k = rising.size
    fill_branches(law, scores, scales, rising, passed, after, base, middle, half, flat, scratch)
    if passed == after:
        for j in range(NODES):
            scratch.shared[j] = WEIGHTS[j] * slope(law, scratch.survival[j])
    else:
        coefficients = np.zeros(NODES)  # a compiled matrix product would need SciPy
        for j in range(NODES):
            for n in range(NODES):
                coefficients[n] += FROM_VALUES[j, n] * scratch.survival[j]
        scratch.moments[:] = 0.0
        left = -1.0
        for i in range(passed, after):
            a = rising[i]
            here = max(left, min(1.0, ((scores[a] - base) - middle) / half))
            if here > left:
                add_cell(law, coefficients, left, here, half / finest, scratch)
                fill_shared(scratch)
            elif i == passed:
                scratch.shared[:] = 0.0
            left = here
            # Up to here the candidate's density rises. From here on it falls; the end of the panel adds that part.
            share = weigh(scratch.rises[i], scratch.shared) - weigh(scratch.falls[i], scratch.shared)
            pmf[a] += share * half / (scales[a] * k)
            for j in range(NODES):
                change = (scratch.falls[i, j] + scratch.rises[i, j]) / k
                for n in range(NODES):
                    coefficients[n] += FROM_VALUES[j, n] * change
            coefficients[0] -= 1.0 / k
        if left < 1.0:
            add_cell(law, coefficients, left, 1.0, half / finest, scratch)
            fill_shared(scratch)
    for i in range(k):
        branch = scratch.falls[i] if i < after else scratch.rises[i]
        if branch[0] >= 0.0:
            pmf[rising[i]] += weigh(branch, scratch.shared) * half / (scales[rising[i]] * k)


@compiled
def fill_stopping_pmf(
    peak: float, scores: FloatArray, scales: FloatArray, gamma: float, eta: float, mean: float, pmf: FloatArray
) -> None:
    """Fill in the probabilities of random stopping; all scales are positive, and the peak is TWO_ or ONE_SIDED.

    The panels go from left to right. The position is kept as ``base + delta`` with ``base`` the nearest score, so
    distances are accurate whatever the scores' magnitude.
    """
    k = scores.size
    pmf[:] = 0.0
    law = new_stopping(peak, gamma, eta, mean)
    scratch = Scratch(
        np.empty((k, NODES)),
        np.empty((k, NODES)),
        np.empty(NODES),
        np.empty(NODES),
        np.empty(NODES),
        np.empty(NODES),
    )
    rising = np.argsort(scores)
    base, delta, flat = scores[rising[0]], 0.0, 0.0
    for a in range(k):
        if peak == TWO_SIDED:
            delta = min(delta, (scores[a] - base) - REACH * scales[a])
        flat = max(flat, (scores[a] - base) + law.height * scales[a])
    passed = 0
    while True:
        end = math.inf
        if 0 < passed < k and base == scores[rising[passed - 1]]:
            gap = scores[rising[passed]] - base
            if delta >= 0.5 * gap:
                base, delta, flat = scores[rising[passed]], delta - gap, flat - gap
            elif gap > CANCELLING * crowding(scores, scales, rising, passed, gap):
                end = 0.5 * gap
        width, finest, landing = widest_panel(law, scores, scales, base, delta, flat)
        if finest == math.inf:
            if landing == math.inf:
                break
            delta = min(landing, end)
            continue
        end = min(end, delta + width)
        if peak == ONE_SIDED:
            end = min(end, landing)
        if passed < k:
            # Polynomials of degree 15 must suffice here. If they do not reach the next score, the panel ends
            # there.
            near = scores[rising[passed]] - base
            end = min(end, max(near, delta + widest_polynomial(law, scores, scales, base, delta, flat)))
        half, middle = 0.5 * (end - delta), 0.5 * (end + delta)
        after = passed
        while after < k and scores[rising[after]] - base < end:
            after += 1
        integrate_panel(law, scores, scales, rising, passed, after, base, middle, half, finest, flat, scratch, pmf)
        delta = end
        if peak == ONE_SIDED and end == landing:
            # The next score is here. Its own position is the exact one: a gap of one rounding would lose a part of
            # its density, which starts at its full height.
            shift = scores[rising[after]] - base
            passed, base, delta, flat = after, scores[rising[after]], 0.0, flat - shift
        elif after > passed:
            passed = after
            shift = scores[rising[passed - 1]] - base
            base, delta, flat = scores[rising[passed - 1]], delta - shift, flat - shift
    for a in range(k):
        pmf[a] = max(pmf[a], 0.0)  # a difference of branches may round to below zero
