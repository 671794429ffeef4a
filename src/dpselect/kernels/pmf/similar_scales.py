"""The largest of height + share · Z, with exponential Z and all shares between 1/2 and 1.

With gaps g_a = (top − height)/share, rates ρ_a = 1/share between 1 and 2, and λ_a(t) = exp(−g_a − ρ_a t),

    Pr[a] = ∫₀^∞ ρ_a λ_a(t)/(1 − λ_a(t)) ∏_b (1 − λ_b(t)) dt.

Let Λ = Σ λ_b. The product is below exp(−Λ), so the integral may start at the time when Λ is DEPTH, or at 0. With
s the time since the start, λ_a is its value at the start times exp(−ρ_a s). In v = exp(−s/STRETCH) that is a power
of v, between STRETCH and 2 · STRETCH. So the integrand is smooth even at v = 0, and the same 48 Gauss–Legendre
nodes serve all rows: their relative error is below 1e-14 whatever the rates.

A row costs O(k): one exponential for each candidate and node in the product, and another in the integrals.
"""

import math

import numpy as np

from dpselect.kernels.arrays import FloatArray
from dpselect.kernels.compilation import compiled, compiled_without_refcounts, in_numpy
from dpselect.kernels.instructions import fused_multiply_add
from dpselect.kernels.vectorised import exponential

DEPTH, DEEPEST = 40.0, 44.0
"""Λ at the start lies between these, unless the start is at time 0."""
STRETCH = 6.0
_X, _W = np.polynomial.legendre.leggauss(24)
_V = np.concatenate([0.35 + 0.35 * _X, 0.85 + 0.15 * _X])  # two panels: from 0 to 0.7 to 1
TIMES = -STRETCH * np.log(_V)
WEIGHTS = STRETCH * np.concatenate([0.35 * _W, 0.15 * _W]) / _V

GROUPS, BLOCK = 256, 64
"""Products are taken over blocks, over groups of blocks, and over at most GROUPS groups."""
CHUNK = 512
"""The number of candidates whose integrals are computed together, in the processor's first cache."""


@compiled_without_refcounts
def fill_tails(gaps: FloatArray, rates: FloatArray, time: float, tails: FloatArray) -> tuple[float, float]:
    """Fill λ_a(time); return Λ and −dΛ/dt."""
    for a in range(gaps.size):
        tails[a] = exponential(-gaps[a] - time * rates[a])
    total, slope = 0.0, 0.0
    for a in range(gaps.size):
        total += tails[a]
        slope += tails[a] * rates[a]
    return total, slope


@compiled
def fill_masses(gaps: FloatArray, rates: FloatArray, masses: FloatArray) -> None:
    """Fill ∏ (1 − λ_b), times the weight, at each node.

    Each factor and each product is rounded, and the errors of a million factors may add up. Where factors are close
    to 1, 1 − ∏ has far smaller errors. So it is computed for blocks, and from these for groups.
    """
    block, group = np.empty(TIMES.size), np.empty(TIMES.size)
    size = BLOCK * math.ceil(gaps.size / (GROUPS * BLOCK)) if gaps.size > GROUPS else 1
    masses[:] = WEIGHTS
    for start in range(0, gaps.size, size):
        group[:] = 0.0
        for first in range(start, min(start + size, gaps.size), BLOCK):
            block[:] = 0.0
            for a in range(first, min(first + BLOCK, start + size, gaps.size)):
                for j in range(TIMES.size):
                    tail = exponential(fused_multiply_add(-TIMES[j], rates[a], -gaps[a]))
                    block[j] += tail * (1.0 - block[j])
            for j in range(TIMES.size):
                group[j] += block[j] * (1.0 - group[j])
        for j in range(TIMES.size):
            masses[j] *= 1.0 - group[j]


@compiled_without_refcounts
def add_integrals(masses: FloatArray, gaps: FloatArray, rates: FloatArray, pmf: FloatArray) -> None:
    """Add ∫ λ_a/(1 − λ_a) ∏ (1 − λ_b) for the candidates of a chunk."""
    for j in range(TIMES.size):
        for a in range(gaps.size):
            tail = exponential(fused_multiply_add(-TIMES[j], rates[a], -gaps[a]))
            pmf[a] += masses[j] * tail / (1.0 - tail)


@compiled
def fill(heights: FloatArray, top: float, shares: FloatArray, pmf: FloatArray) -> None:
    """Fill the probabilities of one row, given the highest height."""
    k = heights.size
    rates, gaps = np.empty(k), np.empty(k)
    for a in range(k):
        rates[a] = 1.0 / shares[a]
        gaps[a] = (top - heights[a]) / shares[a]
    start = 0.0
    total, slope = fill_tails(gaps, rates, start, pmf)
    while total > DEEPEST:  # Newton's method: log Λ is convex, so it never passes DEPTH
        start += total / slope * math.log(total / DEPTH)
        total, slope = fill_tails(gaps, rates, start, pmf)
    for a in range(k):
        gaps[a] += start * rates[a]
    masses = np.empty(TIMES.size)
    fill_masses(gaps, rates, masses)
    pmf[:] = 0.0
    for first in range(0, k, CHUNK):
        part = slice(first, min(first + CHUNK, k))
        add_integrals(masses, gaps[part], rates[part], pmf[part])
    for a in range(k):
        pmf[a] *= rates[a]


@in_numpy(fill_tails)
def _fill_tails(gaps: FloatArray, rates: FloatArray, time: float, tails: FloatArray) -> tuple[float, float]:
    tails[:] = np.exp(-gaps - time * rates)
    return float(tails.sum()), float(tails @ rates)


@in_numpy(fill_masses)
def _fill_masses(gaps: FloatArray, rates: FloatArray, masses: FloatArray) -> None:
    tails = np.exp(-TIMES[:, None] * rates - gaps)
    masses[:] = WEIGHTS * np.exp(np.log1p(-tails).sum(axis=1))


@in_numpy(add_integrals)
def _add_integrals(masses: FloatArray, gaps: FloatArray, rates: FloatArray, pmf: FloatArray) -> None:
    tails = np.exp(-TIMES[:, None] * rates - gaps)
    pmf += (masses[:, None] * tails / (1.0 - tails)).sum(axis=0)
