"""The integrands of :mod:`dpselect.kernels.pmf.noisy_argmax` at one point: G, and r_a for every candidate."""

import math
from typing import NamedTuple

import numpy as np

from dpselect.kernels.arrays import FloatArray
from dpselect.kernels.compilation import compiled, compiled_without_refcounts, in_numpy
from dpselect.kernels.instructions import fused_multiply_add

EXPONENTIAL, LAPLACE = np.arange(2, dtype=np.int64)  # not literals, or kernels are compiled for each
NO_ETA = 1e-30
"""Below this, |η| log(1/γ) makes no difference in float64, and formulas that divide by η lose their digits."""

TINY = 1e-290
"""If exp(−z) is below this, it is computed again together with √E[K]."""


class NoiseLaw(NamedTuple):
    """The law to compute: the noise, and how many candidates are drawn."""

    noise: int | np.int64
    stopping: bool
    """Whether K random candidates are drawn. If not, every candidate is drawn once and the other fields are
    unused.
    """
    gamma: float
    eta: float
    root: float
    """√E[K]. It is a factor of both G and r_a, so that neither underflows before their product does."""


class Row(NamedTuple):
    """The candidates of a row."""

    scores: FloatArray
    rates: FloatArray
    """1/b_a, or 0 for an atom."""
    ratios: FloatArray
    """Room for r_a at one point."""
    least: FloatArray
    """The logarithm of each least probability, once known; infinite for candidates that can be ignored."""


@compiled
def stopping_slope(gamma: float, eta: float, survival: float, root: float) -> float:
    """Return φ'(1 − survival)/√E[K]; φ' = E[K] · (γ/w)^(1+η), w/γ = 1 + (1−γ)/γ · survival, so nothing cancels."""
    return math.exp(math.log(root) - (1.0 + eta) * math.log1p((1.0 - gamma) / gamma * survival))


@compiled
def stopping_increment(gamma: float, eta: float, survival: float, jump: float) -> float:
    """Return φ(1 − survival) − φ(1 − survival − jump): the mass of an atom hit by a fraction ``jump`` of draws."""
    if gamma == 1.0:
        return jump
    ratio = 1.0 + (1.0 - gamma) / gamma * survival
    rise = math.log1p((1.0 - gamma) / gamma * jump / ratio)
    if abs(eta) * -math.log(gamma) < NO_ETA:
        return rise / -math.log(gamma)
    shares = math.expm1(-eta * rise) / math.expm1(eta * math.log(gamma))
    return math.exp(-eta * math.log(ratio)) * shares


@compiled_without_refcounts
def weigh_point(law: NoiseLaw, row: Row, base: float, delta: float) -> tuple[float, float]:
    """Fill r_a at x = base + delta; return G and the slope of its logarithm.

    The product carries its own rounding error along, so the errors of a million factors do not add up.
    """
    k = row.scores.size
    survival, slope = 0.0, 0.0
    product, correction = 1.0, 0.0
    for a in range(k):
        row.ratios[a] = 0.0
        distance = (base - row.scores[a]) + delta
        rate = row.rates[a]
        if rate == 0.0:
            if distance < 0.0:
                survival += 1.0
                product, correction = 0.0, 0.0
            continue
        z = distance * rate
        tail = math.exp(-abs(z))
        if law.noise == EXPONENTIAL:
            if z <= 0.0:
                survival += 1.0
                product, correction = 0.0, 0.0
                continue
            density = tail
            survival += tail
            below = 1.0 - tail if z > 0.5 else -math.expm1(-z)
            rounding = (1.0 - below) - tail if z > 0.5 else 0.0
        else:
            density = 0.5 * tail
            if z >= 0.0:
                survival += density
                below = 1.0 - density
                rounding = (1.0 - below) - density
            else:
                survival += 1.0 - density
                below = density
                rounding = 0.0
        if law.stopping:
            slope += density * rate
            row.ratios[a] = law.root * density
            if tail < TINY:
                row.ratios[a] = 0.5 * math.exp(math.log(law.root) - abs(z))
                row.ratios[a] *= 2.0 if law.noise == EXPONENTIAL else 1.0
            continue
        if below == 0.0:
            return 0.0, math.inf
        ratio = density / below
        row.ratios[a] = ratio
        slope += ratio * rate
        last = product
        product = last * below
        correction = correction * below + fused_multiply_add(last, below, -product) + last * rounding
    if law.stopping:
        odds = (1.0 - law.gamma) / law.gamma
        slope *= (1.0 + law.eta) * odds / (k + odds * survival)
        return stopping_slope(law.gamma, law.eta, survival / k, law.root) / k, slope
    return product + correction, slope if product > 0.0 else math.inf


@compiled_without_refcounts
def atom_mass(law: NoiseLaw, row: Row, base: float, atoms: int) -> float:
    """Return the probability that the largest noisy score is the atom at ``base``."""
    k = row.scores.size
    if not law.stopping:
        return weigh_point(law, row, base, 0.0)[0]
    survival = 0.0
    for a in range(k):
        distance = base - row.scores[a]
        if row.rates[a] == 0.0:
            survival += 1.0 if distance < 0.0 else 0.0
        elif law.noise == EXPONENTIAL:
            survival += math.exp(-max(0.0, distance * row.rates[a]))
        else:
            half = 0.5 * math.exp(-abs(distance * row.rates[a]))
            survival += half if distance >= 0.0 else 1.0 - half
    return stopping_increment(law.gamma, law.eta, survival / k, atoms / k)


# --- The same in NumPy ------------------------------------------------------------------------------------


def weigh_points(
    law: NoiseLaw, row: Row, base: float, deltas: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return G, the slope of its logarithm, and r_a, at several points."""
    k, noisy = row.scores.size, row.rates > 0.0
    distances = (base - row.scores) + deltas[:, None]
    ahead = (distances < 0.0) & ~noisy
    z = distances * row.rates
    tails = np.exp(-np.abs(z))
    if law.noise == EXPONENTIAL:
        ahead |= noisy & (z <= 0.0)
        density = np.where(noisy & (z > 0.0), tails, 0.0)
        survival = ahead.sum(axis=1) + density.sum(axis=1)
        below = np.where(noisy & (z > 0.0), -np.expm1(-z), 1.0)
    else:
        density = np.where(noisy, 0.5 * tails, 0.0)
        rising = noisy & (z < 0.0)
        survival = (ahead | rising).sum(axis=1) + np.where(rising, -density, density).sum(axis=1)
        below = np.where(rising, density, 1.0 - density)
    if law.stopping:
        ratios = law.root * density
        least = (0.5 if law.noise == LAPLACE else 1.0) * np.exp(math.log(law.root) - np.abs(z))
        ratios = np.where((density > 0.0) & (tails < TINY), least, ratios)
        odds = (1.0 - law.gamma) / law.gamma
        slopes = (density @ row.rates) * ((1.0 + law.eta) * odds / (k + odds * survival))
        shared = np.exp(math.log(law.root) - (1.0 + law.eta) * np.log1p(odds * (survival / k)))
        return shared / k, slopes, ratios
    product = np.where(ahead.any(axis=1), 0.0, np.prod(below, axis=1))
    ratios = density / below
    return product, np.where(product > 0.0, ratios @ row.rates, math.inf), ratios


@in_numpy(weigh_point)
def _weigh_point(law: NoiseLaw, row: Row, base: float, delta: float) -> tuple[float, float]:
    shared, slopes, ratios = weigh_points(law, row, base, np.array([delta]))
    row.ratios[:] = ratios[0]
    return shared[0], slopes[0]
