"""One panel of the quadrature of random stopping, which may hold any number of scores."""

import math
from typing import NamedTuple

import numpy as np

from dpselect.kernels.arrays import FlagArray, FloatArray, IndexArray
from dpselect.kernels.compilation import compiled, in_numpy
from dpselect.kernels.vectorised import exponential, product_sum

REACH = 38.0
"""The distance from a score, in scales, at which ½ exp(−z) is below the rounding of its integral."""

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

# A cell of half-width up to this many scales needs this many nodes: n = 2, 3, 4, 6, 8, 12 with (π/r)^−2n < 1e-16.
CELL_NODES = np.array([2, 3, 4, 6, 8, 12, 16])
CELL_WIDTHS = np.array([2e-4, 4e-3, 2.5e-2, 1e-1, 2.5e-1, 5e-1, np.inf])
CELL_POINTS, CELL_WEIGHTS = np.zeros((2, CELL_NODES.size, NODES))
for _row, _count in enumerate(CELL_NODES):
    CELL_POINTS[_row, :_count], CELL_WEIGHTS[_row, :_count] = np.polynomial.legendre.leggauss(int(_count))


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


class Row(NamedTuple):
    """The candidates of a row."""

    scores: FloatArray
    scales: FloatArray
    rising: IndexArray
    """The candidates in the order of their scores."""


class Panel(NamedTuple):
    """The part of the line within ``half`` of base + middle."""

    base: float
    middle: float
    half: float
    finest: float
    """The smallest scale of noise that matters here."""
    flat: float
    """Where h becomes flat, relative to ``base``."""
    passed: int
    after: int
    """The scores in the panel are those of ``rising[passed:after]``."""


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
def new_scratch(k: int) -> Scratch:
    """Return work arrays for rows of k candidates."""
    nodes = np.empty((4, NODES))
    return Scratch(np.empty((k, NODES)), np.empty((k, NODES)), nodes[0], nodes[1], nodes[2], nodes[3])


@compiled
def fill_exponentials(rate: float, factor: float, values: FloatArray) -> None:
    """Fill factor · exp(rate · ξ) at all nodes ξ."""
    for j in range(NODES):
        values[j] = factor * exponential(rate * POINTS[j])


@compiled
def fill_branches(law: Stopping, row: Row, panel: Panel, scratch: Scratch) -> None:
    """Fill in every candidate's branches at the nodes, and S as it is left of all scores in the panel.

    A candidate beyond its reach has no branch; the first entry −1 marks that.
    """
    waiting = 0.0
    for j in range(NODES):
        scratch.survival[j] = 0.0
    for i in range(row.rising.size):
        scale, start = row.scales[row.rising[i]], panel.base - row.scores[row.rising[i]]
        z, rate = (start + panel.middle) / scale, panel.half / scale
        if i < panel.after:
            if is_over(law, z - rate, (start + panel.flat) / scale):
                scratch.falls[i, 0] = -1.0  # marks: no branch
                continue
            fill_exponentials(-rate, law.peak * math.exp(-z), scratch.falls[i])
            if i < panel.passed:
                for j in range(NODES):
                    scratch.survival[j] += scratch.falls[i, j]
        if i >= panel.passed:
            waiting += 1.0
            if law.peak == ONE_SIDED:
                scratch.rises[i] = 0.0 if i < panel.after else -1.0
                continue
            if z + rate < -REACH - 0.5:
                scratch.rises[i, 0] = -1.0
                continue
            fill_exponentials(rate, 0.5 * math.exp(z), scratch.rises[i])
            for j in range(NODES):
                scratch.survival[j] -= scratch.rises[i, j]
    for j in range(NODES):
        scratch.survival[j] = (scratch.survival[j] + waiting) / row.rising.size


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
def add_coefficients(values: FloatArray, coefficients: FloatArray) -> None:
    """Add the Legendre coefficients of values at the nodes. A compiled matrix product would need SciPy."""
    for j in range(NODES):
        for n in range(NODES):
            coefficients[n] += FROM_VALUES[j, n] * values[j]


@compiled
def fill_shared(scratch: Scratch) -> None:
    """Fill in, from the moments, the weights of the nodes that give ∫ f h from the values of f at the nodes."""
    for j in range(NODES):
        scratch.shared[j] = 0.0
    for n in range(NODES):
        for j in range(NODES):
            scratch.shared[j] += scratch.moments[n] * TO_COEFFICIENTS[n, j]


@compiled
def integrate_panel(law: Stopping, row: Row, panel: Panel, scratch: Scratch, pmf: FloatArray) -> None:
    """Add the integral over a panel."""
    k, half, extent = row.rising.size, panel.half, panel.half / panel.finest
    fill_branches(law, row, panel, scratch)
    if panel.passed == panel.after:
        for j in range(NODES):
            scratch.shared[j] = WEIGHTS[j] * slope(law, scratch.survival[j])
    else:
        coefficients = np.zeros(NODES)
        add_coefficients(scratch.survival, coefficients)
        scratch.moments[:] = 0.0
        left = -1.0
        for i in range(panel.passed, panel.after):
            a = row.rising[i]
            here = max(left, min(1.0, ((row.scores[a] - panel.base) - panel.middle) / half))
            if here > left:
                add_cell(law, coefficients, left, here, extent, scratch)
                fill_shared(scratch)
            elif i == panel.passed:
                scratch.shared[:] = 0.0
            left = here
            # Up to here the candidate's density rises. From here on it falls; the end of the panel adds that part.
            share = product_sum(scratch.rises[i], scratch.shared) - product_sum(scratch.falls[i], scratch.shared)
            pmf[a] += share * half / (row.scales[a] * k)
            add_coefficients((scratch.falls[i] + scratch.rises[i]) / k, coefficients)
            coefficients[0] -= 1.0 / k
        if left < 1.0:
            add_cell(law, coefficients, left, 1.0, extent, scratch)
            fill_shared(scratch)
    add_shares(row, panel, scratch, pmf)


@compiled
def add_shares(row: Row, panel: Panel, scratch: Scratch, pmf: FloatArray) -> None:
    """Add the integral over the panel of every branch that reaches its end."""
    k = row.rising.size
    for i in range(k):
        branch, a = scratch.falls[i] if i < panel.after else scratch.rises[i], row.rising[i]
        if branch[0] >= 0.0:
            pmf[a] += product_sum(branch, scratch.shared) * panel.half / (row.scales[a] * k)


# --- The same in NumPy ------------------------------------------------------------------------------------


def all_over(law: Stopping, z: FloatArray, flat: FloatArray) -> FlagArray:
    """Return :func:`is_over` for every candidate."""
    return z >= REACH + np.maximum(0.0, np.minimum(flat, law.growth))


@in_numpy(fill_branches)
def _fill_branches(law: Stopping, row: Row, panel: Panel, scratch: Scratch) -> None:
    k, passed, after = row.rising.size, panel.passed, panel.after
    scales, starts = row.scales[row.rising], panel.base - row.scores[row.rising]
    z, rates = (starts + panel.middle) / scales, panel.half / scales
    over = all_over(law, z - rates, (starts + panel.flat) / scales)[:after]
    scratch.falls[:after] = law.peak * np.exp(-z[:after, None] - rates[:after, None] * POINTS)
    scratch.survival[:] = np.where(over[:passed, None], 0.0, scratch.falls[:passed]).sum(axis=0)
    scratch.falls[:after][over, 0] = -1.0
    scratch.survival[:] += k - passed
    if law.peak == ONE_SIDED:
        scratch.rises[passed:after], scratch.rises[after:] = 0.0, -1.0
        scratch.survival[:] /= k
        return
    early = (z + rates < -REACH - 0.5)[passed:]
    scratch.rises[passed:] = 0.5 * np.exp(z[passed:, None] + rates[passed:, None] * POINTS)
    scratch.survival[:] -= np.where(early[:, None], 0.0, scratch.rises[passed:]).sum(axis=0)
    scratch.survival[:] /= k
    scratch.rises[passed:][early, 0] = -1.0


@in_numpy(add_cell)
def _add_cell(
    law: Stopping, coefficients: FloatArray, left: float, right: float, extent: float, scratch: Scratch
) -> None:
    half, middle = 0.5 * (right - left), 0.5 * (right + left)
    row = int(np.searchsorted(CELL_WIDTHS, half * extent))
    count = CELL_NODES[row]
    basis = np.polynomial.legendre.legvander(middle + half * CELL_POINTS[row, :count], NODES - 1)
    survival = np.maximum(0.0, basis @ coefficients)
    masses = law.mean * np.exp(-(1.0 + law.eta) * np.log1p(law.odds * survival))
    scratch.moments[:] += (half * CELL_WEIGHTS[row, :count] * masses) @ basis


@in_numpy(add_coefficients)
def _add_coefficients(values: FloatArray, coefficients: FloatArray) -> None:
    coefficients += TO_COEFFICIENTS @ values


@in_numpy(fill_shared)
def _fill_shared(scratch: Scratch) -> None:
    scratch.shared[:] = scratch.moments @ TO_COEFFICIENTS


@in_numpy(add_shares)
def _add_shares(row: Row, panel: Panel, scratch: Scratch, pmf: FloatArray) -> None:
    branches = np.concatenate([scratch.falls[: panel.after], scratch.rises[panel.after :]])
    shares = np.where(branches[:, 0] >= 0.0, branches @ scratch.shared, 0.0)
    pmf[row.rising] += shares * panel.half / (row.scales[row.rising] * row.rising.size)
