"""The distribution of the largest noisy score, with noise that differs between candidates.

Candidate a's noisy score is q_a + b_a Z with Z exponential or Laplace; F_a and f_a are its distribution
function and density. Two mechanisms report the candidate of the largest noisy score:

- *every* candidate is drawn once (noisy max):     Pr[a] = ∫ f_a(x) ∏_{b≠a} F_b(x) dx
- K random candidates are drawn (random stopping): Pr[a] = (1/k) ∫ f_a(x) φ'(F̄(x)) dx, where F̄ is the mean
  of all F_b and φ the generating function of K, truncated negative binomial with parameters γ and η:
  φ(s) = (w^−η − 1) / (γ^−η − 1) with w = 1 − (1 − γ)s, and log(w)/log(γ) for η = 0.

A scale b_a = 0 puts an atom at q_a. Candidates that tie there share its probability equally.

Both integrands are G(x) r_a(x)/b_a. The factor G is the same for all candidates and never decreases (∏ F, or
φ'(F̄)/k); r_a is b_a f_a/F_a, or b_a f_a. Probabilities have a relative error of at most 1e-12 down to 1e-290
(random stopping with more than 1e10 draws: 1e-250). For every y and every panel from l to r,

    Pr[a] ≥ G(y) r_a(y)        and        the panel adds at most G(r) Pr[noisy score a > l] to Pr[a].

A first pass takes the largest G(y) r_a(y) over all scores and some points right of them, the candidate's *least*
probability. A panel can be skipped for a candidate if it adds less than e^−MARGIN of that.

Panels. The integrand is analytic between scores, so the line is cut at every score and half-way between
neighbours. The position x is kept as (nearest score) + δ: differences x − q_a stay accurate whatever the scores'
magnitude. Singularities and the region where a product of many F_b grows are at least π/2 scales from the real
line. So 16 Gauss–Legendre nodes on FINE = 2 scales err by less than (π/2 + √(π²/4 + 1))^−32 < 1e-17; shorter panels
take 8 or 4 nodes for the same bound. Beyond log n scales, the typical largest of n noises, a noise is soon a plain
exponential, and panels widen to COARSE scales. Where G is steep, errors are measured against G itself: its
logarithm may rise by STEEP over a panel, since 16 nodes integrate exp(x) over 12 to 1e-17 of its largest value.
"""

import math

import numpy as np

from dpselect.kernels.arrays import FloatArray, IndexArray, Rows
from dpselect.kernels.blocks import row_of
from dpselect.kernels.compilation import compiled, compiled_without_refcounts, in_numpy
from dpselect.kernels.pmf.integrands import (
    EXPONENTIAL,
    LAPLACE,
    NoiseLaw,
    Row,
    atom_mass,
    weigh_point,
    weigh_points,
)
from dpselect.kernels.pmf.random_stopping import fill_stopping_pmf
from dpselect.kernels.pmf.stopping_panels import ONE_SIDED, TWO_SIDED

FINE, COARSE = 2.0, 8.0
FAR = 40.0
"""F is 1 this many scales beyond the typical largest noise."""
MARGIN = 40.0
STEEP = 12.0
FLAT = 5.0
"""Up to this η, panels are never steep: the logarithm of φ' rises by at most 1 + η in one scale."""
FLOOR = 1e-305
"""The smallest value of a candidate's least probability."""
HOPELESS = 712.0
"""A candidate this many scales behind the leader has a probability below 1e-300."""
NODES_16, WEIGHTS_16 = np.polynomial.legendre.leggauss(16)
NODES_8, WEIGHTS_8 = np.polynomial.legendre.leggauss(8)
NODES_4, WEIGHTS_4 = np.polynomial.legendre.leggauss(4)


SURE = 1e-13
"""Random stopping's panels with many scores are accepted if the probabilities sum to 1 within this. Otherwise the
line is cut at every score. No row is known that needs it.
"""
RARE, RARE_IF_STEEP = 1e-60, 1e-12
"""Such panels are also rejected if a probability is below this fraction of 1/k, where they lose digits. The second
value is for η above FLAT.
"""


@compiled_without_refcounts
def widest_panel(
    law: NoiseLaw, row: Row, height: float, margin: float, base: float, delta: float, direction: float
) -> tuple[float, float]:
    """Return the largest width of a panel from base + delta, and the largest 1/b_a that matters there.

    ``margin`` is MARGIN + log G at the right end of the panel, ``height`` the typical largest noise.
    """
    widest = math.inf
    fastest = 0.0
    for a in range(row.scores.size):
        rate = row.rates[a]
        z = ((base - row.scores[a]) + delta) * rate
        if rate == 0.0 or (z < 0.0 and not law.stopping and law.noise == LAPLACE):
            continue  # F_a is a plain exponential here, and so are all f_b F_a: only G is steep
        leaving = direction * z >= 0.0
        z = abs(z)
        reach = max(margin - row.least[a], height + FAR)
        if z >= reach + (0.0 if leaving else COARSE):
            if not leaving:
                widest = min(widest, (z - reach) / rate)  # stop where this candidate starts to matter
            continue
        room = (2.0 if leaving else 0.7) * (z - height)
        widest = min(widest, max(FINE, min(room, COARSE)) / rate)
        fastest = max(fastest, rate)
    return widest, fastest


@in_numpy(widest_panel)
def _widest_panel(
    law: NoiseLaw, row: Row, height: float, margin: float, base: float, delta: float, direction: float
) -> tuple[float, float]:
    z = ((base - row.scores) + delta) * row.rates
    relevant = row.rates > 0.0
    if not law.stopping and law.noise == LAPLACE:
        relevant &= z >= 0.0
    z, rates, reach = z[relevant], row.rates[relevant], np.maximum(margin - row.least[relevant], height + FAR)
    leaving = direction * z >= 0.0
    z = np.abs(z)
    far = z >= reach + np.where(leaving, 0.0, COARSE)
    near = np.maximum(FINE, np.minimum(np.where(leaving, 2.0, 0.7) * (z - height), COARSE))
    limits = np.where(far, np.where(leaving, math.inf, z - reach), near) / rates
    return limits.min(initial=math.inf), rates[~far].max(initial=0.0)


@compiled_without_refcounts
def add_panel(
    law: NoiseLaw,
    row: Row,
    base: float,
    direction: float,
    done: float,
    step: float,
    nodes: FloatArray,
    weights: FloatArray,
    pmf: FloatArray,
) -> float:
    """Add the integral from ``done`` over ``step``; return the largest value of G."""
    largest = 0.0
    for j in range(nodes.size):
        shared, _ = weigh_point(law, row, base, direction * (done + 0.5 * step * (nodes[j] + 1.0)))
        largest = max(largest, shared * law.root)
        if shared > 0.0:
            for a in range(pmf.size):
                # In this order nothing that matters underflows. Where a panel spans too many scales, r_a is zero.
                pmf[a] += shared * row.ratios[a] * (weights[j] * min(0.5 * step * row.rates[a], 1e300))
    return largest


@in_numpy(add_panel)
def _add_panel(
    law: NoiseLaw,
    row: Row,
    base: float,
    direction: float,
    done: float,
    step: float,
    nodes: FloatArray,
    weights: FloatArray,
    pmf: FloatArray,
) -> float:
    shared, _, ratios = weigh_points(law, row, base, direction * (done + 0.5 * step * (nodes + 1.0)))
    factors = weights[:, None] * np.minimum(0.5 * step * row.rates, 1e300)
    pmf += np.where(shared[:, None] > 0.0, shared[:, None] * ratios * factors, 0.0).sum(axis=0)
    largest: float = max(0.0, (shared * law.root).max())
    return largest


@compiled_without_refcounts
def integrate_cell(
    law: NoiseLaw,
    row: Row,
    base: float,
    direction: float,
    length: float,
    ceiling: float,
    steepest: float,
    cut: float,
    pmf: FloatArray,
) -> bool:
    """Add the integral over ``length`` from ``base`` in ``direction``; return whether the next cell can matter.

    ``ceiling`` bounds G in the cell. ``steepest`` bounds the slope of log G right of ``base``, and is its slope at
    ``base``. A G below ``cut`` does not matter.
    """
    done = 0.0
    odds = (1.0 - law.gamma) / law.gamma * (1.0 + law.eta)
    height = math.log(max(1.0 + law.eta, odds, 1.0)) if law.stopping else math.log(row.scores.size)
    margin = MARGIN + math.log(ceiling)
    while done < length:
        step, fastest = widest_panel(law, row, height, margin, base, direction * done, direction)
        if step == math.inf and law.stopping:
            return False
        step = min(step, length - done)
        if direction < 0.0:
            if (done > 0.0 and not law.stopping) or steepest == math.inf:
                _, slope = weigh_point(law, row, base, -done)
            else:
                slope = steepest
            step = min(step, STEEP / slope)
        else:
            slope = steepest
            shared = 1.0
            while math.inf > step > STEEP / slope:
                shared, here = weigh_point(law, row, base, done + step)
                shared *= law.root
                if shared < cut or here * step <= STEEP:
                    steepest = min(steepest, here) if not law.stopping else steepest
                    break
                step *= 0.5
            if shared < cut:
                done += step
                continue
        if step == math.inf:
            return False
        if step * fastest <= FINE / 40.0 and step * slope <= 0.3:
            largest = add_panel(law, row, base, direction, done, step, NODES_4, WEIGHTS_4, pmf)
        elif step * fastest <= FINE / 4.0 and step * slope <= 2.5:
            largest = add_panel(law, row, base, direction, done, step, NODES_8, WEIGHTS_8, pmf)
        else:
            largest = add_panel(law, row, base, direction, done, step, NODES_16, WEIGHTS_16, pmf)
        if direction < 0.0 and largest < cut:
            return False  # ∏ F only decreases further to the left
        done += step
    return True


@compiled_without_refcounts
def scout(law: NoiseLaw, row: Row, base: float, delta: float) -> tuple[float, float, float]:
    """Raise least probabilities to the bound from base + delta; return G, its slope, and the smallest of them."""
    shared, slope = weigh_point(law, row, base, delta)
    smallest = 1.0
    for a in range(row.least.size):
        if shared > 0.0:
            row.least[a] = max(row.least[a], shared * row.ratios[a])
        smallest = min(smallest, row.least[a])
    return shared * law.root, slope, smallest


@in_numpy(scout)
def _scout(law: NoiseLaw, row: Row, base: float, delta: float) -> tuple[float, float, float]:
    [shared], [slope], [ratios] = weigh_points(law, row, base, np.array([delta]))
    if shared > 0.0:
        np.maximum(row.least, shared * ratios, out=row.least)
    return shared * law.root, slope, min(1.0, row.least.min())


@compiled_without_refcounts
def start_least(law: NoiseLaw, row: Row, leader: int) -> None:
    """Fill in FLOOR, or infinity for atoms and for candidates whose probability is below 1e-300."""
    for a in range(row.least.size):
        gap = row.scores[leader] - row.scores[a]
        slowest = min(row.rates[a], row.rates[leader]) if row.rates[leader] > 0.0 else row.rates[a]
        hopeless = not law.stopping and gap * slowest > HOPELESS
        row.least[a] = math.inf if row.rates[a] == 0.0 or hopeless else FLOOR


@compiled_without_refcounts
def rarest_atom(law: NoiseLaw, row: Row, falling: IndexArray) -> float:
    """Return the smallest probability of any atom that can be picked; 1 if there is none."""
    rarest = 1.0
    for i in range(falling.size):
        if row.rates[falling[i]] > 0.0:
            continue
        base, atoms = row.scores[falling[i]], 0
        for j in range(falling.size):
            atoms += row.rates[j] == 0.0 and row.scores[j] == base
        share = atom_mass(law, row, base, atoms) / atoms
        if not law.stopping:
            return share if share >= FLOOR else 1.0  # nothing below the highest atom can be picked
        rarest = min(rarest, max(share, FLOOR))
    return rarest


@compiled
def scout_row(
    law: NoiseLaw, row: Row, falling: IndexArray, firsts: IndexArray, shares: FloatArray, slopes: FloatArray
) -> tuple[int, float]:
    """Fill in least probabilities, and G and its slope at each distinct score; return (cells to visit, cut)."""
    start_least(law, row, falling[0])
    top = row.scores[falling[0]]
    fastest, slowest = row.rates.max(), math.inf
    for rate in row.rates:
        slowest = min(slowest, rate) if rate > 0.0 else slowest
    if fastest > 0.0:
        delta, last = 1.0 / fastest, (1.0 + math.log(row.scores.size)) / slowest
        while delta < 2.0 * last:
            scout(law, row, top, delta)
            delta *= 2.0
    rarest = rarest_atom(law, row, falling)
    cells, cut = 0, 0.0
    while cells < shares.size and (cells == 0 or shares[cells - 1] >= cut):
        shares[cells], slopes[cells], smallest = scout(law, row, row.scores[falling[firsts[cells]]], 0.0)
        if law.stopping:
            slopes[cells] = math.inf if law.eta > FLAT else 0.0
        cut = math.exp(-MARGIN) * min(smallest, rarest)
        cells += 1
    for a in range(row.least.size):
        row.least[a] = math.log(row.least[a])
    return cells, cut


@compiled
def fill_by_cells(law: NoiseLaw, scores: FloatArray, scales: FloatArray, pmf: FloatArray) -> None:
    """Fill Pr[a] by cutting the line at every score and half-way between neighbours."""
    k = scores.size
    rates = np.zeros(k)
    for a in range(k):
        rates[a] = 1.0 / scales[a] if scales[a] > 0.0 else 0.0
    row = Row(scores, rates, np.empty(k), np.empty(k))
    pmf[:] = 0.0
    falling = np.argsort(-scores)
    firsts = np.empty(k + 1, np.int64)  # where the candidates of each distinct score start in ``falling``
    cells = 0
    for i in range(k):
        if i == 0 or scores[falling[i]] != scores[falling[i - 1]]:
            firsts[cells] = i
            cells += 1
    firsts[cells] = k
    shares, slopes = np.zeros(cells), np.zeros(cells)
    visited, cut = scout_row(law, row, falling, firsts[: cells + 1], shares, slopes)
    for cell in range(visited):
        base = scores[falling[firsts[cell]]]
        right = 0.5 * (scores[falling[firsts[cell] - 1]] - base) if cell > 0 else math.inf
        left = 0.5 * (base - scores[falling[firsts[cell + 1]]]) if cell + 1 < cells else math.inf
        ceiling = shares[cell - 1] if cell > 0 else (law.root * law.root / k if law.stopping else 1.0)
        integrate_cell(law, row, base, 1.0, right, ceiling, slopes[cell], cut, pmf)
        atoms = 0
        for j in range(firsts[cell], firsts[cell + 1]):
            atoms += rates[falling[j]] == 0.0
        if atoms > 0:
            share = atom_mass(law, row, base, atoms) / atoms
            for j in range(firsts[cell], firsts[cell + 1]):
                if rates[falling[j]] == 0.0:
                    pmf[falling[j]] = share
        if not law.stopping and (atoms > 0 or law.noise == EXPONENTIAL):
            return  # ∏ F is zero below an atom, and below any score if the noise is positive
        more = integrate_cell(law, row, base, -1.0, left, shares[cell], slopes[cell], cut, pmf)
        if not more and not law.stopping:
            return


@compiled
def fill_largest_noisy_pmf(law: NoiseLaw, scores: FloatArray, scales: FloatArray, pmf: FloatArray) -> None:
    """Fill in Pr[a] as the module's docstring defines it."""
    if law.stopping and scales.min() > 0.0:
        peak = ONE_SIDED if law.noise == EXPONENTIAL else TWO_SIDED
        fill_stopping_pmf(peak, scores, scales, law.gamma, law.eta, law.root * law.root, pmf)
        rare = RARE_IF_STEEP if law.eta > FLAT else RARE
        if abs(pmf.sum() - 1.0) <= SURE and pmf.min() * pmf.size >= rare:
            return
    fill_by_cells(law, scores, scales, pmf)


@compiled
def fill_rows(first: int, last: int, table: Rows, law: NoiseLaw, scale: float, pmf: FloatArray) -> None:
    """Fill in the probabilities for each row of a block; candidate a's noise has scale ``scale`` · Δ_a."""
    for row in range(first, last):
        scores = row_of(table.scores, table.bounds, row).copy()  # writable, as in all calls: compiled only once
        scales = row_of(table.sensitivities, table.bounds, row) * scale
        fill_largest_noisy_pmf(law, scores, scales, pmf[table.bounds[row] : table.bounds[row + 1]])
