"""Noise that fits each candidate, and the public offsets that make it neutral.

Candidate a's noise has mean (Δ_a + max_{b≠a} Δ_b)/ε. The means of a row differ by a factor of two at most. Larger
noise wins more often, so *neutral* offsets n_a lower it: with equal scores, every candidate is picked with
probability 1/k. They depend on the sensitivities alone. In units of the largest mean, with c_a = (mean of
a)/(largest mean), they solve

    log(k p_a) = 0,    p_a = ∫ f_a(x)/F_a(x) ∏_b F_b(x) dx,    F_a and f_a: the law of n_a + c_a Z,

by the iteration n_a ← n_a − c_a log(k p_a). It starts within a few percent, at the limit for many
candidates. There, the number of noisy scores beyond x is a Poisson variable of mean exp(−x/M), with M the mean of
those that exceed 0, and ∫ e^(−x/c) exp(−e^(−x/M)) dx/c = Γ(1 + M/c). So n_a = −c_a (log k + log Γ(1 + M/c_a)).

n_a is a smooth function of c_a, and so are log F_a and f_a/F_a. The function is known from its values at ATOMS
Chebyshev points, and Σ_b log F_b = Σ_j W_j log F(c_j), where W_j is the sum of the j-th interpolating polynomial
over all candidates. The extreme means are among the points, which makes rows with two distinct means exact. Rows of
at most FEW candidates use the candidates themselves. A row costs O(k) and a few microseconds.

|k p_a − 1| stays below 1e-6. Privacy never depends on it: any public offsets are private.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.polynomial import Polynomial, chebyshev, legendre
from numpy.polynomial.polynomial import polyval

from dpselect.kernels.arrays import FloatArray
from dpselect.kernels.blocks import row_extent
from dpselect.kernels.compilation import compiled, compiled_in_any_order, compiled_without_refcounts
from dpselect.kernels.instructions import fused_multiply_add
from dpselect.kernels.shares import Extremes, share_of
from dpselect.kernels.vectorised import exponential, logarithm, product_sum

ATOMS = 11
FEW = 16

LEFT, RIGHT = -3.0, 0.9
"""The product of all F is below 1e-8 left of LEFT. Right of RIGHT, it is smooth in exp(−x/STRETCH)."""
STRETCH = 4.0
PANELS = 4
SMALL = 0.05
NODES, WEIGHTS = legendre.leggauss(8)
PANEL_POINTS = (np.arange(PANELS)[:, None] + 0.5 * (NODES + 1.0)).reshape(-1)
PANEL_WEIGHTS = np.tile(0.5 * WEIGHTS, PANELS)
TAIL_POINTS = RIGHT - STRETCH * np.log(0.5 * (1 - NODES))  # rising, like all points
TAIL_WEIGHTS = STRETCH * WEIGHTS / (1 - NODES)
POINTS = (PANELS + 1) * NODES.size

_ANGLES = np.arange(ATOMS) * np.pi / (ATOMS - 1)
CHEBYSHEV = np.cos(np.outer(np.arange(ATOMS), _ANGLES))
"""T_n at the j-th Chebyshev point, which is CHEBYSHEV[1, j]."""
HALVES = np.array([0.5] + [1.0] * (ATOMS - 2) + [0.5])
TRANSFORM = 2.0 / (ATOMS - 1) * HALVES[:, None] * CHEBYSHEV * HALVES
"""Turns values at the points into coefficients."""
SQUARES = (0.5 * (CHEBYSHEV[1] + 1)) ** 2
"""Where the points lie between the smallest c and the largest: closer to the smallest, where F is steepest."""
POWERS_TO_COUNTS = np.array([chebyshev.cheb2poly(column) for column in TRANSFORM.T]).T.copy()
"""Turns sums of powers into the weights W_j: the coefficients of the interpolating polynomials."""
_SPAN = np.linspace(0.5, 2.0, 40)
LOG_GAMMA = Polynomial.fit(_SPAN, [math.lgamma(1 + z) for z in _SPAN], 5).convert().coef
"""log Γ(1 + z) for z between 1/2 and 2, within 1e-5."""
LOG_SERIES = np.array([0.0] + [-1.0 / n for n in range(1, 7)])
"""log(1 − x) for 0 ≤ x < SMALL, as in :func:`log_series`."""


class Room(NamedTuple):
    """Work arrays for one row."""

    places: FloatArray
    """c_j of each atom."""
    counts: FloatArray
    """W_j of each atom."""
    values: FloatArray
    """n_j of each atom, then the coefficients of the interpolating polynomial."""
    masses: FloatArray
    """k p_j of each atom."""
    steps: FloatArray
    """log(k p_j) of each atom, one iteration before."""
    factors: FloatArray
    """exp(n_j/c_j) of each atom."""
    points: FloatArray
    weights: FloatArray
    product: FloatArray
    """log ∏ F at each point, then ∏ F times the weight."""
    decays: FloatArray
    """exp(−x/c_j) at each point."""
    ratios: FloatArray
    """f/F of each atom at each point."""


def new_room() -> Room:
    """Return work arrays for any row."""
    return Room(*map(np.ones, [FEW] * 6 + [POINTS] * 3 + [(FEW, POINTS)] * 2))


@compiled_without_refcounts
def fill_neutral(sensitivities: FloatArray, extremes: Extremes, room: Room, offsets: FloatArray) -> None:
    """Fill neutral offsets, in units of the largest mean."""
    k = sensitivities.size
    if extremes.least == 1.0:
        offsets[:] = 0.0
        return
    if k <= FEW:
        for a in range(k):
            room.places[a] = share_of(extremes, sensitivities[a])
            room.counts[a] = 1.0
        solve(k, k, room)
        for a in range(k):
            offsets[a] = room.values[a]
        return
    for j in range(ATOMS):
        room.places[j] = extremes.least + (1.0 - extremes.least) * SQUARES[j]
    fill_places(sensitivities, extremes, offsets)
    fill_counts(offsets, room)
    solve(k, SQUARES.size, room)  # ATOMS, but not as a literal, for which it would be compiled again
    interpolate(room, offsets)


@compiled_without_refcounts
def fill_places(sensitivities: FloatArray, extremes: Extremes, places: FloatArray) -> None:
    """Fill where each c_a lies between the points: x in [−1, 1], with c = least + (1 − least)((x + 1)/2)²."""
    inverse, scale = 1.0 / extremes.largest, 1.0 / (1.0 - extremes.least)
    for a in range(sensitivities.size):
        rival = extremes.widest if sensitivities[a] < extremes.widest else extremes.second
        share = (sensitivities[a] + rival) * inverse
        places[a] = 2.0 * math.sqrt(min(1.0, max(0.0, (share - extremes.least) * scale))) - 1.0


@compiled_in_any_order
def add_powers(places: FloatArray, sums: FloatArray) -> None:
    """Fill the sums of the powers of all places."""
    s1, s2, s3, s4, s5 = 0.0, 0.0, 0.0, 0.0, 0.0
    s6, s7, s8, s9, s10 = 0.0, 0.0, 0.0, 0.0, 0.0
    for a in range(places.size):
        x = places[a]
        square = x * x
        cube = square * x
        fourth = square * square
        fifth = fourth * x
        s1 += x
        s2 += square
        s3 += cube
        s4 += fourth
        s5 += fifth
        s6 += cube * cube
        s7 += fourth * cube
        s8 += fourth * fourth
        s9 += fifth * fourth
        s10 += fifth * fifth
    sums[0] = np.float64(places.size)
    sums[1], sums[2], sums[3], sums[4], sums[5] = s1, s2, s3, s4, s5
    sums[6], sums[7], sums[8], sums[9], sums[10] = s6, s7, s8, s9, s10


@compiled_without_refcounts
def fill_counts(places: FloatArray, room: Room) -> None:
    """Fill W_j from the sums of powers."""
    add_powers(places, room.masses)
    room.counts[:ATOMS] = 0.0
    for n in range(ATOMS):
        for j in range(ATOMS):
            room.counts[j] += POWERS_TO_COUNTS[n, j] * room.masses[n]


@compiled_without_refcounts
def interpolate(room: Room, places: FloatArray) -> None:
    """Replace every place by the value there of the polynomial through the atoms."""
    coefficients = room.masses
    for n in range(ATOMS):
        coefficients[n] = product_sum(TRANSFORM[n], room.values)
    for a in range(places.size):
        x, b1, b2 = places[a], 0.0, 0.0
        for n in range(ATOMS - 1, 0, -1):
            b1, b2 = coefficients[n] + 2.0 * x * b1 - b2, b1
        places[a] = coefficients[0] + x * b1 - b2


@compiled_without_refcounts
def solve(k: int, atoms: int, room: Room) -> None:
    """Fill the neutral offsets of the atoms."""
    start(math.log(1.0 * k), atoms, room)
    left = max(LEFT, row_extent(room.values[:atoms])[0])  # F is zero left of an offset
    fill_points(left, room)
    fill_decays(atoms, room)
    room.steps[:] = 0.0
    for _ in range(steps_of(k)):
        fill_masses(k, atoms, room)
        along, length, total = 0.0, 0.0, 0.0
        for j in range(atoms):
            total += room.counts[j] * room.masses[j]
        total /= k  # 1, up to errors of the quadrature
        for j in range(FEW):
            room.masses[j] = logarithm(room.masses[j] / total)
        for j in range(atoms):
            along += room.masses[j] * room.steps[j]
            length += room.steps[j] * room.steps[j]
            room.steps[j] = room.masses[j]
        ratio = max(-0.5, min(0.5, along / length)) if length > 0.0 else 0.0
        further = 1.0 / (1.0 - ratio)  # this step and all further ones, if each is ``ratio`` of the last
        for j in range(FEW):
            room.values[j] -= room.places[j] * room.steps[j] * further
        if left > LEFT:  # move all offsets, so that the largest stays where the points start
            shift = left - row_extent(room.values[:atoms])[0]
            for j in range(FEW):
                room.values[j] += shift


@compiled
def steps_of(k: int) -> int:
    """Return how many steps bring |k p − 1| below 1e-6.

    It depends on k alone: a rule that looked at the error could stop at another step on another processor.
    """
    return 3 if k > 64 else 5 if k > FEW else 8 if k > 6 else 14


@compiled_without_refcounts
def start(log_size: float, atoms: int, room: Room) -> None:
    """Fill the limit for many candidates."""
    total, mean = 0.0, 0.0
    for j in range(atoms):
        total += room.counts[j]
        mean += room.counts[j] * room.places[j]
    mean /= total
    for _ in range(2):
        for j in range(FEW):
            room.masses[j] = log_gamma(mean / room.places[j])
        for j in range(FEW):
            room.values[j] = -room.places[j] * (log_size + room.masses[j])
            room.masses[j] = exponential(-room.masses[j])
        total, inverse = 0.0, 0.0
        for j in range(atoms):
            weight = room.counts[j] * room.masses[j]
            total += weight
            inverse += weight / room.places[j]
        mean = total / inverse


@compiled
def log_gamma(z: float) -> float:
    """Return log Γ(1 + z) for z between 1/2 and 2, within 1e-5."""
    value = 0.0
    for n in range(LOG_GAMMA.size - 1, -1, -1):
        value = value * z + LOG_GAMMA[n]
    return value


@compiled_without_refcounts
def fill_points(left: float, room: Room) -> None:
    """Fill Gauss–Legendre points and weights: PANELS up to RIGHT, and one beyond in exp(−(x − RIGHT)/STRETCH)."""
    length, panels = (RIGHT - left) / PANELS, PANEL_POINTS.size
    for i in range(panels):
        room.points[i] = left + length * PANEL_POINTS[i]
        room.weights[i] = length * PANEL_WEIGHTS[i]
    for i in range(NODES.size):
        room.points[panels + i] = TAIL_POINTS[i]
        room.weights[panels + i] = TAIL_WEIGHTS[i]


@compiled_without_refcounts
def fill_decays(atoms: int, room: Room) -> None:
    """Fill exp(−x/c_j) at each point."""
    for j in range(atoms):
        rate, decays = 1.0 / room.places[j], room.decays[j]
        for i in range(POINTS):
            decays[i] = exponential(-room.points[i] * rate)


@compiled_without_refcounts
def fill_masses(k: int, atoms: int, room: Room) -> None:
    """Fill k p_j of each atom."""
    product, factors = room.product, room.factors
    product[:] = 0.0
    for j in range(FEW):
        factors[j] = exponential(room.values[j] / room.places[j])
    for j in range(atoms):
        add_atom(factors[j], room.counts[j], room.decays[j], room.ratios[j], product)
    for i in range(POINTS):
        product[i] = room.weights[i] * exponential(max(product[i], -600.0))
    for j in range(atoms):
        room.masses[j] = k * product_sum(room.ratios[j], product) / room.places[j]


@compiled_without_refcounts
def add_atom(factor: float, count: float, decays: FloatArray, ratios: FloatArray, product: FloatArray) -> None:
    """Fill f/F of one atom at each point, and add ``count`` · log F to ``product``.

    F is 1 − ``factor`` · decay. The decays fall, so what needs a logarithm comes first.
    """
    near = 0
    while near < POINTS and factor * decays[near] >= SMALL:
        near += NODES.size
    for i in range(near):
        tail = factor * decays[i]
        ratios[i] = tail / (1.0 - tail)
        level = log_series(tail) if tail < SMALL else logarithm(1.0 - tail)
        product[i] = fused_multiply_add(count, level, product[i])
    for i in range(near, POINTS):
        tail = factor * decays[i]
        ratios[i] = tail / (1.0 - tail)
        product[i] = fused_multiply_add(count, log_series(tail), product[i])


@compiled
def log_series(x: float) -> float:
    """Return log(1 − x) for 0 ≤ x < SMALL, with an error below 1e-8 · x."""
    series = 0.0
    for n in range(6, 0, -1):
        series = fused_multiply_add(x, series, 1.0 / n)
    return -x * series


# --- The same in NumPy, for many rows at once -------------------------------------------------------------


def neutral_offsets(sensitivities: FloatArray) -> FloatArray:
    """Return the neutral offsets of rows of the same size, in units of each row's largest mean.

    They agree with those of :func:`fill_neutral` to about 1e-12, and do not depend on the other rows.
    """
    k = sensitivities.shape[1]
    offsets = np.zeros(sensitivities.shape)
    if k == 1:
        return offsets
    second, widest = np.partition(sensitivities, k - 2, axis=1)[:, -2:].T
    smallest = sensitivities.min(axis=1)
    least = np.where(smallest < second, (smallest + widest) / (widest + second), 1.0)
    unequal = np.flatnonzero(least < 1.0)
    rows, second, widest, least = (array[unequal] for array in (sensitivities, second, widest, least))
    widest, second, least = widest[:, None], second[:, None], least[:, None]
    shares = (rows + np.where(rows < widest, widest, second)) / (widest + second)
    if k <= FEW:
        offsets[unequal] = solve_rows(k, shares, np.ones(shares.shape))
        return offsets
    x = 2.0 * np.sqrt(np.clip((shares - least) / (1.0 - least), 0.0, 1.0)) - 1.0
    sums, power = np.empty((len(x), ATOMS)), np.ones(x.shape)
    for n in range(ATOMS):
        sums[:, n] = power.sum(axis=1)
        power *= x
    # Not by matrix products: their last bits depend on the number of rows.
    counts = np.einsum("rn,nj->rj", sums, POWERS_TO_COUNTS)
    values = solve_rows(k, least + (1.0 - least) * SQUARES, counts)
    offsets[unequal] = chebyshev.chebval(x.T, np.einsum("nj,rj->nr", TRANSFORM, values), tensor=False).T
    return offsets


def solve_rows(k: int, places: FloatArray, counts: FloatArray) -> FloatArray:
    """Return the neutral offsets of the atoms of each row: :func:`start` and :func:`solve`."""
    mean = (counts * places).sum(axis=1, keepdims=True) / counts.sum(axis=1, keepdims=True)
    for _ in range(2):
        correction = polyval(mean / places, LOG_GAMMA)
        values: FloatArray = -places * (math.log(k) + correction)
        weights = counts * np.exp(-correction)
        mean = weights.sum(axis=1, keepdims=True) / (weights / places).sum(axis=1, keepdims=True)
    left = np.maximum(LEFT, values.max(axis=1, keepdims=True))
    length = (RIGHT - left) / PANELS
    points = np.concatenate([left + length * PANEL_POINTS, np.tile(TAIL_POINTS, (len(left), 1))], axis=1)
    weights = np.concatenate([length * PANEL_WEIGHTS, np.tile(TAIL_WEIGHTS, (len(left), 1))], axis=1)
    decays = np.exp(-points[:, None] / places[:, :, None])
    last = np.zeros(places.shape)
    for _ in range(steps_of(k)):
        tails = np.exp(values / places)[:, :, None] * decays
        logarithms = np.where(tails < SMALL, polyval(tails, LOG_SERIES), np.log1p(-tails))
        product = np.einsum("rj,rji->ri", counts, logarithms)
        product = weights * np.exp(np.maximum(product, -600.0))
        masses = k * np.einsum("rji,ri->rj", tails / (1.0 - tails), product) / places
        steps = np.log(masses / ((counts * masses).sum(axis=1, keepdims=True) / k))
        length = (last * last).sum(axis=1, keepdims=True)
        ratio = np.clip((steps * last).sum(axis=1, keepdims=True) / np.where(length > 0.0, length, 1.0), -0.5, 0.5)
        values = values - places * steps / (1.0 - ratio)
        values += np.where(left > LEFT, left - values.max(axis=1, keepdims=True), 0.0)
        last = steps
    return values
