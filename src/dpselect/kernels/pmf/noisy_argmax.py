"""The law of the largest of noisy scores whose noise differs between candidates.

Candidate a's noisy score is q_a + b_a Z with Z exponential, Laplace or Gumbel; F_a and f_a are its
distribution function and density. Two mechanisms report the candidate of the largest noisy score:

- *every* candidate is drawn once (noisy max):     Pr[a] = ∫ f_a(x) ∏_{b≠a} F_b(x) dx
- K random candidates are drawn (random stopping): Pr[a] = (1/k) ∫ f_a(x) φ'(F̄(x)) dx, where F̄ is the mean
  of all F_b and φ the generating function of K, truncated negative binomial with parameters γ and η:
  φ(s) = (w^−η − 1) / (γ^−η − 1) with w = 1 − (1 − γ)s, and log(w)/log(γ) for η = 0.

A scale b_a = 0 puts an atom at q_a; candidates that tie there share its probability equally.

Panels. The integrand is analytic between scores, so the line is cut at every score and half-way between
neighbours, and x is kept as (nearest score) + δ: differences x − q_a stay accurate whatever the scores'
magnitude. Inside such a cell a panel is at most FINE scales wide for every candidate whose noise lives
there. With z = (x − q)/b, the nearest complex singularities (zeros of w, or of 1 − exp(−z)/2 raised to a
power) and the region where a product of many F_b grows are at least π/2 scales from the real line, so 16
Gauss–Legendre nodes on 2 scales err by less than (π/2 + √(π²/4 + 1))^−32 < 1e-17; shorter panels take 8 or
4 nodes for the same bound. The largest of n noises is typically log n scales up; beyond FAR scales more a noise
is a plain exponential and COARSE steps do; beyond REACH scales more it is worth less than 1e-26, and left out.
"""

import math
from typing import NamedTuple

import numpy as np

from dpselect.kernels.arrays import FloatArray, Table
from dpselect.kernels.blocks import row_of
from dpselect.kernels.compilation import compiled, compiled_without_refcounts
from dpselect.kernels.instructions import fused_multiply_add
from dpselect.kernels.pmf.random_stopping import fill_stopping_pmf

EXPONENTIAL, LAPLACE, GUMBEL = 0, 1, 2
ONCE, STOPPING = False, True

FINE, COARSE = 2.0, 8.0
FAR, REACH = 40.0, 60.0
NEGLIGIBLE = 1e-40
NO_ETA = 1e-30
"""Where η makes no difference to float64, and formulas that divide by it lose their digits."""

NODES_16, WEIGHTS_16 = np.polynomial.legendre.leggauss(16)
NODES_8, WEIGHTS_8 = np.polynomial.legendre.leggauss(8)
NODES_4, WEIGHTS_4 = np.polynomial.legendre.leggauss(4)


class Law(NamedTuple):
    """Whose law is computed: the noise, and how many candidates are drawn."""

    noise: int
    stopping: bool
    """Whether K random candidates are drawn; if not, every candidate once, and the rest is unused."""
    gamma: float
    eta: float
    mean: float
    """E[K]."""


SURE = 1e-13
"""Panels of random stopping that hold many scores are trusted if they add up to 1 so well; else the line is cut at
every score. No row is known that needs it.
"""


@compiled
def mean_draws(gamma: float, eta: float) -> float:
    """Return E[K] = η(1−γ)/(γ(1−γ^η)), which is (1/γ − 1)/log(1/γ) for η = 0."""
    if gamma == 1.0:
        return 1.0
    decay = -math.log(gamma)
    if abs(eta) * decay < NO_ETA:
        return (1.0 - gamma) / gamma / decay
    return (1.0 - gamma) / gamma * (eta / -math.expm1(-eta * decay))


@compiled
def stopping_slope(gamma: float, eta: float, survival: float, mean: float) -> float:
    """Return φ'(1 − survival) = E[K] · (γ/w)^(1+η), w/γ = 1 + (1−γ)/γ · survival: nothing cancels."""
    return mean * math.exp(-(1.0 + eta) * math.log1p((1.0 - gamma) / gamma * survival))


@compiled
def stopping_increment(gamma: float, eta: float, survival: float, jump: float) -> float:
    """Return φ(1 − survival) − φ(1 − survival − jump): the mass of an atom that a share ``jump`` of draws hits."""
    if gamma == 1.0:
        return jump
    ratio = 1.0 + (1.0 - gamma) / gamma * survival
    rise = math.log1p((1.0 - gamma) / gamma * jump / ratio)
    if abs(eta) * -math.log(gamma) < NO_ETA:
        return rise / -math.log(gamma)
    shares = math.expm1(-eta * rise) / math.expm1(eta * math.log(gamma))
    return math.exp(-eta * math.log(ratio)) * shares


@compiled_without_refcounts
def weigh_point(
    law: Law,
    scores: FloatArray,
    scales: FloatArray,
    base: float,
    delta: float,
    densities: FloatArray,
) -> float:
    """Evaluate the integrand at x = base + delta.

    Fills ``densities`` with f_a (random stopping) or f_a/F_a (noisy max) and returns the factor all
    candidates share: φ'(F̄)/k or ∏ F. The product carries its own rounding error along, so that a million
    factors do not add theirs up.
    """
    k = scores.size
    survival = 0.0
    product, correction = 1.0, 0.0
    exponent = 0.0
    for a in range(k):
        densities[a] = 0.0
        distance = (base - scores[a]) + delta
        if scales[a] == 0.0:
            if distance < 0.0:
                survival += 1.0
                product, correction = 0.0, 0.0
            continue
        z = distance / scales[a]
        if law.noise == GUMBEL:
            tail = math.exp(-z)
            exponent += tail
            densities[a] = tail / scales[a]
            continue
        tail = math.exp(-abs(z))
        if law.noise == EXPONENTIAL:
            if z <= 0.0:
                survival += 1.0
                product, correction = 0.0, 0.0
                continue
            survival += tail
            below = 1.0 - tail if z > 0.5 else -math.expm1(-z)
            rounding = (1.0 - below) - tail if z > 0.5 else 0.0
            density = tail / scales[a]
        else:
            density = 0.5 * tail / scales[a]
            if z >= 0.0:
                survival += 0.5 * tail
                below = 1.0 - 0.5 * tail
                rounding = (1.0 - below) - 0.5 * tail
            else:
                below = 0.5 * tail
                survival += 1.0 - below
                rounding = 0.0
        if law.stopping:
            densities[a] = density
            continue
        if below == 0.0:
            return 0.0
        densities[a] = density / below
        last = product
        product = last * below
        correction = correction * below + fused_multiply_add(last, below, -product) + last * rounding
    if law.stopping:
        return stopping_slope(law.gamma, law.eta, survival / k, law.mean) / k
    if law.noise == GUMBEL:
        return math.exp(-exponent) * product
    return product + correction


@compiled_without_refcounts
def next_panel(
    scores: FloatArray, scales: FloatArray, height: float, base: float, delta: float, direction: float
) -> tuple[float, float]:
    """Return how far a panel starting at base + delta may reach, and the smallest scale alive there."""
    step = math.inf
    finest = math.inf
    for a in range(scores.size):
        scale = scales[a]
        if scale == 0.0:
            continue
        z = direction * ((base - scores[a]) + delta) / scale
        if z < -height - REACH - COARSE:
            step = min(step, (-z - height - REACH) * scale)  # stop where this candidate's noise begins
        elif z < height + REACH:
            finest = min(finest, scale)
            step = min(step, (FINE if abs(z) < height + FAR else COARSE) * scale)
    return step, finest


@compiled_without_refcounts
def integrate_cell(
    law: Law,
    scores: FloatArray,
    scales: FloatArray,
    base: float,
    direction: float,
    length: float,
    densities: FloatArray,
    pmf: FloatArray,
) -> bool:
    """Add the integral over ``length`` from ``base`` in ``direction``; tell whether anything lies beyond."""
    done = 0.0
    height = math.log(max(law.mean, 1.0 * scores.size))
    while done < length:
        step, finest = next_panel(scores, scales, height, base, direction * done, direction)
        if step == math.inf:
            return False
        end = min(length, done + step)
        step = end - done
        if finest < math.inf:
            if step <= FINE / 40.0 * finest:
                nodes, weights = NODES_4, WEIGHTS_4
            elif step <= FINE / 4.0 * finest:
                nodes, weights = NODES_8, WEIGHTS_8
            else:
                nodes, weights = NODES_16, WEIGHTS_16
            largest = 0.0
            for j in range(nodes.size):
                delta = direction * (done + 0.5 * step * (nodes[j] + 1.0))
                shared = weigh_point(law, scores, scales, base, delta, densities)
                largest = max(largest, shared)
                mass = 0.5 * step * weights[j] * shared
                if mass > 0.0:
                    for a in range(scores.size):
                        pmf[a] += mass * densities[a]
            if direction < 0.0 and not law.stopping and largest < NEGLIGIBLE:
                return False  # ∏ F only falls further to the left
        done = end
    return True


@compiled
def fill_largest_noisy_pmf(
    noise: int,
    scores: FloatArray,
    scales: FloatArray,
    stopping: bool,  # noqa: FBT001
    gamma: float,
    eta: float,
    pmf: FloatArray,
) -> None:
    """Fill Pr[a] of the module's docstring: random stopping if ``stopping``, else noisy max."""
    k = scores.size
    if stopping and noise == LAPLACE and scales.min() > 0.0:
        fill_stopping_pmf(scores, scales, gamma, eta, mean_draws(gamma, eta), pmf)
        if abs(pmf.sum() - 1.0) <= SURE:
            return
    densities = np.empty(k)
    law = Law(noise, stopping, gamma, eta, mean_draws(gamma, eta) if stopping else 1.0)
    pmf[:] = 0.0
    falling = np.argsort(-scores)
    i = 0
    while i < k:  # one turn for each distinct score, from the largest down
        base = scores[falling[i]]
        after = i
        atoms = 0
        while after < k and scores[falling[after]] == base:
            atoms += scales[falling[after]] == 0.0
            after += 1
        to_right = 0.5 * (scores[falling[i - 1]] - base) if i > 0 else math.inf
        to_left = 0.5 * (base - scores[falling[after]]) if after < k else math.inf
        integrate_cell(law, scores, scales, base, 1.0, to_right, densities, pmf)
        if atoms > 0:
            share = atom_mass(law, scores, scales, base, atoms, densities) / atoms
            for j in range(i, after):
                if scales[falling[j]] == 0.0:
                    pmf[falling[j]] = share
        if not stopping and (atoms > 0 or noise == EXPONENTIAL):
            return  # ∏ F is zero below an atom, and below any score if noise is positive
        more = integrate_cell(law, scores, scales, base, -1.0, to_left, densities, pmf)
        if not more and not stopping:
            return
        i = after


@compiled_without_refcounts
def atom_mass(
    law: Law,
    scores: FloatArray,
    scales: FloatArray,
    base: float,
    atoms: int,
    densities: FloatArray,
) -> float:
    """Return the probability that the largest noisy score is the atom at ``base``."""
    k = scores.size
    if not law.stopping:
        return weigh_point(law, scores, scales, base, 0.0, densities)
    survival = 0.0
    for a in range(k):
        distance = base - scores[a]
        if scales[a] == 0.0:
            survival += 1.0 if distance < 0.0 else 0.0
        elif law.noise == EXPONENTIAL:
            survival += math.exp(-max(0.0, distance / scales[a]))
        else:
            half = 0.5 * math.exp(-abs(distance / scales[a]))
            survival += half if distance >= 0.0 else 1.0 - half
    return stopping_increment(law.gamma, law.eta, survival / k, atoms / k)


@compiled
def fill_rows(
    first: int,
    last: int,
    table: Table,
    noise: int,
    scale: float,
    stopping: bool,  # noqa: FBT001
    gamma: float,
    eta: float,
    pmf: FloatArray,
) -> None:
    """Fill the probabilities of each row of a block, candidate a's noise being scale · Δ_a."""
    for row in range(first, last):
        scores = row_of(table.scores, table.bounds, row)
        scales = row_of(table.sensitivities, table.bounds, row) * scale
        target = pmf[table.bounds[row] : table.bounds[row + 1]]
        fill_largest_noisy_pmf(noise, scores, scales, stopping, gamma, eta, target)
