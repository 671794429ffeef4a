"""Slow, obvious twins of the mechanisms, independent of the library (neutral offsets, which are public, excepted).

Inputs are floats read as the rational numbers they are. Transformed scores ("levels") are exact fractions,
``None`` standing for −∞; probabilities are mpmath numbers of at least 40 digits. Only t, which the library
defines as a float, is computed as one.
"""

import math
from fractions import Fraction
from functools import cache
from itertools import pairwise, permutations

import numpy as np
from mpmath import mp
from mpmath.calculus.quadrature import GaussLegendre

import dpselect as dps
from dpselect.candidates import read_batch
from dpselect.laws.heterogeneous import HeterogeneousLaw

DIGITS = 45
REACH = 60
"""The number of scales over which noise is followed, plus the addition for random draws: e^−60 < 1e-26."""
FARTHEST = 900
"""The largest addition for a random number of draws: even 1e90 draws times e^−900 are less than 1e-300."""
STEEPEST = 60
"""The η of random stopping up to which the tails are followed."""
LEFT_REACH = {"exponential": 0, "laplace": REACH, "gumbel": 6}
"""The same to the left: exponential noise is positive, and Gumbel noise is below −6 with probability e^−e⁶."""


def fractions(numbers, size=None):
    """Return exact fractions; a single number is repeated ``size`` times."""
    if np.ndim(numbers) == 0:
        return [Fraction(float(numbers))] * size
    return [Fraction(float(number)) for number in numbers]


def real(fraction):
    """Return a fraction as an mpmath number of the current precision."""
    return mp.mpf(fraction.numerator) / fraction.denominator


def tilt_slope(tilt, size, beta, epsilon):
    """Return t = tilt · 2 log(k/β)/ε as the float it is defined to be."""
    return float(tilt * 2 * np.log(size / beta) / epsilon)


# --- Levels: transformed scores to which noise of scale one is added -------------------------------------


def tilted(scores, sensitivities, t=0.0, offsets=0.0):
    """Return q + o − tΔ."""
    q = fractions(scores)
    deltas, o = fractions(sensitivities, len(q)), fractions(offsets, len(q))
    slope = Fraction(float(t))
    return [score + offset - slope * delta for score, offset, delta in zip(q, o, deltas, strict=True)]


def global_levels(scores, sensitivities, budget, t=0.0, offsets=0.0):
    """Return budget · y/max Δ; if max Δ is zero, 0 for the leaders and −∞ for all others."""
    y = tilted(scores, sensitivities, t, offsets)
    widest = max(fractions(sensitivities, len(y)))
    if widest == 0:
        return [Fraction(0) if value == max(y) else None for value in y]
    return [Fraction(budget) * value / widest for value in y]


def gem_scores(scores, sensitivities, t=0.0, offsets=0.0):
    """Return min_b (y_a − y_b)/(Δ_a + Δ_b) over all pairs; two zero sensitivities give −∞, 0 or nothing."""
    y = tilted(scores, sensitivities, t, offsets)
    deltas = fractions(sensitivities, len(y))
    unit = max(number.denominator for number in [*y, *deltas])  # floats are dyadic: all become integers
    y = [int(value * unit) for value in y]
    deltas = [int(delta * unit) for delta in deltas]
    return [_least_quotient(y, deltas, a) for a in range(len(y))]


def _least_quotient(y, deltas, a):
    top, bottom = 0, 1
    for b in range(len(y)):
        rise, run = y[a] - y[b], deltas[a] + deltas[b]
        if run == 0:
            if rise < 0:
                return None
        elif rise * bottom < top * run:
            top, bottom = rise, run
    return Fraction(top, bottom)


def gem_levels(scores, sensitivities, epsilon, t, offsets=0.0):
    """Return (ε/2) q'."""
    half = Fraction(epsilon) / 2
    return [None if s is None else half * s for s in gem_scores(scores, sensitivities, t, offsets)]


# --- Noise of scale one -----------------------------------------------------------------------------------


def exponential_noise(levels):
    """Return p_a ∫₀¹ ∏_{b≠a} (1 − u p_b) du, by expanding the polynomial."""
    mp.dps = DIGITS + len(levels) // 2  # coefficients alternate in sign and reach 2^k
    chances = _relative_to_best(levels)
    coefficients = [mp.one]
    for p in chances:
        padded = [mp.zero, *coefficients, mp.zero]
        coefficients = [after - p * before for before, after in pairwise(padded)]
    integrals = {p: _integrate_without(coefficients, p) for p in set(chances)}
    return [p * integrals[p] for p in chances]


def _integrate_without(coefficients, p):
    quotient, total = mp.zero, mp.zero
    for power, coefficient in enumerate(coefficients[:-1], start=1):
        quotient = coefficient + p * quotient
        total += quotient / power
    return total


def gumbel_noise(levels):
    """Return the softmax."""
    mp.dps = DIGITS
    chances = _relative_to_best(levels)
    total = mp.fsum(chances)
    return [p / total for p in chances]


def laplace_noise(levels):
    """Return the law of the largest level plus Laplace noise of scale one."""
    best = max(level for level in levels if level is not None)
    kept = [level is not None and best - level < 2 * REACH for level in levels]
    law = largest_noisy("laplace", [v for v, keep in zip(levels, kept, strict=True) if keep], [1] * sum(kept))
    found = iter(law)
    return [next(found) if keep else mp.zero for keep in kept]


def _relative_to_best(levels):
    best = max(level for level in levels if level is not None)
    kept = [level is not None and best - level < 10**5 for level in levels]  # others: less than 1e-43000
    return [mp.exp(real(level - best)) if keep else mp.zero for level, keep in zip(levels, kept, strict=True)]


NOISES = {"exponential": exponential_noise, "gumbel": gumbel_noise, "laplace": laplace_noise}


def permute_and_flip(levels):
    """Return the law of visiting candidates in a random order until one passes, over all orders."""
    mp.dps = DIGITS
    chances = _relative_to_best(levels)
    law = [mp.zero] * len(levels)
    for order in permutations(range(len(levels))):
        left = mp.one
        for a in order:
            law[a] += left * chances[a]
            left *= 1 - chances[a]
    return [mass / mp.factorial(len(levels)) for mass in law]


# --- Noise of each candidate's own scale ------------------------------------------------------------------


def _cdf_and_density(noise, distance, scale, reach):
    if scale == 0:
        return mp.mpf(distance >= 0), mp.zero
    z = distance / scale
    if z > reach:
        return mp.one, mp.zero
    if z < -LEFT_REACH[noise] or (z == 0 and noise == "exponential"):
        return mp.zero, mp.zero
    if noise == "gumbel":
        cdf = mp.exp(-mp.exp(-z))
        return cdf, mp.exp(-z) * cdf / scale
    tail = mp.exp(-abs(z))
    if noise == "exponential":
        return 1 - tail, tail / scale
    return (tail / 2 if z < 0 else 1 - tail / 2), tail / 2 / scale


def largest_noisy(noise, locations, scales, stopping=None):
    """Return the law of the largest q_a + b_a Z_a: each drawn once, or random stopping with (γ, η)."""
    pairs = list(zip(map(Fraction, locations), map(Fraction, scales), strict=True))
    law = largest_noisy_of_groups(noise, {pair: pairs.count(pair) for pair in set(pairs)}, stopping)
    return [law[pair] for pair in pairs]


def largest_noisy_of_groups(noise, counts, stopping=None):
    """Return one candidate's probability for each (q, b), given how many candidates share it."""
    mp.dps = DIGITS if stopping is None else DIGITS - int(np.log10(stopping[0]))  # w is as small as γ
    finest = min((b for _, b in counts if b), default=1)
    mp.dps += len(str(int(max(abs(q) + b for q, b in counts) / finest)))  # x − q, in scales
    groups = [(real(q), real(b), n) for (q, b), n in counts.items()]
    rule = _Everyone(groups) if stopping is None else _Stopping(groups, *stopping)
    mass = [mp.zero] * len(groups)
    nodes = _nodes(mp.prec)
    for left, right in _panels(noise, groups, rule):
        half = (right - left) / 2
        for node, weight in nodes:
            x = left + half * (1 + node)
            laws = [_cdf_and_density(noise, x - q, b, rule.reach) for q, b, _ in groups]
            share = half * weight
            for g, value in enumerate(rule.densities(laws)):
                if value:  # most candidates' noise does not reach most places
                    mass[g] += share * value
    for tied, (at, scale, ties) in enumerate(groups):
        if scale == 0:
            laws = [_cdf_and_density(noise, at - q, b, rule.reach) for q, b, _ in groups]
            mass[tied] = rule.atom(laws, ties)
    return dict(zip(counts, mass, strict=True))


@cache
def _nodes(precision):
    """Return 24 Gauss–Legendre nodes and weights; they take as long as a small integral."""
    return GaussLegendre(mp).calc_nodes(4, precision)


class _Everyone:
    """Each candidate is drawn once: f_a ∏_{b≠a} F_b."""

    reach = REACH
    step = 3

    def __init__(self, groups):
        self.counts = [n for _, _, n in groups]

    def densities(self, laws):
        product = mp.fprod(cdf**n for (cdf, _), n in zip(laws, self.counts, strict=True))
        return [density * product / cdf if product and density else mp.zero for cdf, density in laws]

    def atom(self, laws, ties):
        return mp.fprod(cdf**n for (cdf, _), n in zip(laws, self.counts, strict=True)) / ties


class _Stopping:
    """K random candidates are drawn, K truncated negative binomial: f_a φ'(F̄)/k."""

    def __init__(self, groups, gamma, eta):
        self.counts = [n for _, _, n in groups]
        self.size = sum(self.counts)
        self.gamma, self.eta = mp.mpf(gamma), mp.mpf(eta)
        self.norm = self._power(self.gamma)
        # How much likelier a high score is picked; for a large η only what the largest probabilities need.
        lowest = self._slope(mp.zero) if self.eta <= STEEPEST else 1
        self.reach = REACH + max(0, min(mp.log(self._slope(mp.one) / lowest), FARTHEST))
        self.step = 3 / max(1, (1 + self.eta) / 8) if self.eta <= STEEPEST else 3

    def _power(self, w):
        """Return w^−η − 1, and its limit for η → 0 per η: −log w."""
        return -mp.log(w) if self.eta == 0 else mp.expm1(-self.eta * mp.log(w))

    def _slope(self, s):
        if self.gamma == 1:
            return mp.one
        w = 1 - (1 - self.gamma) * s
        return (self.eta or 1) * (1 - self.gamma) * w ** (-self.eta - 1) / self.norm

    def _generating(self, s):
        if self.gamma == 1:
            return s
        return self._power(1 - (1 - self.gamma) * s) / self.norm

    def _mean(self, laws):
        return mp.fsum(cdf * n for (cdf, _), n in zip(laws, self.counts, strict=True)) / self.size

    def densities(self, laws):
        shared = self._slope(self._mean(laws)) / self.size
        return [density * shared if density else density for _, density in laws]

    def atom(self, laws, ties):
        after = self._mean(laws)
        return (self._generating(after) - self._generating(after - mp.mpf(ties) / self.size)) / ties


def _panels(noise, groups, rule):
    """Yield intervals no wider than three scales of any noise alive there, cut at all scores.

    Singularities of φ' are at least log 2 scales off a panel's end, and regions of growth π/2 scales off the
    real line, so 24 Gauss–Legendre nodes err by about 2.5^−48 < 1e-19 of the integrand. φ' grows by at most
    e^(1+η) in a scale: for a large η panels are narrower.
    """
    reach = rule.reach
    noisy = [(q, b) for q, b, _ in groups if b]
    left_reach = LEFT_REACH[noise]
    cuts = {q for q, _, _ in groups} | {q - left_reach * b for q, b in noisy} | {q + reach * b for q, b in noisy}
    for start, stop in pairwise(sorted(cuts)):
        middle = (start + stop) / 2
        alive = [b for q, b in noisy if q - left_reach * b <= middle <= q + reach * b]
        if not alive:
            continue
        parts = int(mp.ceil((stop - start) / (rule.step * min(alive))))
        for part in range(parts):
            yield start + (stop - start) * part / parts, start + (stop - start) * (part + 1) / parts


# --- Mechanisms -------------------------------------------------------------------------------------------


def noisy_max(
    scores,
    sensitivities,
    *,
    epsilon,
    noise="exponential",
    monotone=False,
    tilt=0.0,
    beta=0.05,
    offsets=0.0,
):
    t = tilt_slope(tilt, len(scores), beta, epsilon)
    budget = Fraction(epsilon) / (1 if monotone else 2)
    return NOISES[noise](global_levels(scores, sensitivities, budget, t, offsets))


def gem(scores, sensitivities, *, epsilon, beta=0.05, tilt=1.0, noise="exponential", offsets=0.0):
    t = tilt_slope(tilt, len(scores), beta, epsilon)
    return NOISES[noise](gem_levels(scores, sensitivities, epsilon, t, offsets))


def modified_gem(scores, sensitivities, *, epsilon, beta=0.05, offsets=0.0):
    return gem(scores, sensitivities, epsilon=epsilon, beta=beta, tilt=-1.0, offsets=offsets)


def random_stopping(scores, sensitivities, *, epsilon, gamma=0.05, eta=1.0, noise="laplace"):
    q = fractions(scores)
    scale = (2 + Fraction(eta)) / Fraction(epsilon)
    return largest_noisy(noise, q, [scale * d for d in fractions(sensitivities, len(q))], (gamma, eta))


def neutral_offsets(mechanism, sensitivities):
    """Return the library's own neutral offsets of one row, in units of the scores; the largest is 0."""
    widths = np.asarray(sensitivities, dtype=np.float64)
    first, second = np.r_[0.0, np.sort(widths)][-1:-3:-1]
    if not mechanism.neutral or first + second == 0:
        return np.zeros(widths.size)
    law = HeterogeneousLaw(mechanism.epsilon, np.zeros(1), neutral=True)
    offsets = law.neutral_offsets(read_batch(np.zeros(widths.size), widths), 0) * (
        (first + second) / mechanism.epsilon
    )
    return offsets - offsets.max()


def heterogeneous_noisy_max(
    scores,
    sensitivities,
    *,
    epsilon,
    keep=(0.0, 1.0),
    tilt=0.0,
    beta=0.05,
    neutral=True,
    offsets=0.0,
):
    """Draw all kept candidates once. Neutral offsets are public numbers: the library's own, tested elsewhere."""
    t = tilt_slope(tilt, len(scores), beta, epsilon)
    y = tilted(scores, sensitivities, t, offsets)
    widths = fractions(sensitivities, len(y))
    ordered = sorted(widths)
    quantiles = [Fraction(i, max(1, len(widths) - 1)) for i in range(len(widths))]
    low, high = (Fraction(end).limit_denominator(10**6) for end in keep)
    between = [width for width, at in zip(ordered, quantiles, strict=True) if low <= at <= high or len(widths) == 1]
    if not between:
        between = [ordered[math.floor((low + high) / 2 * (len(widths) - 1) + Fraction(1, 2))]]
    kept = [a for a, width in enumerate(widths) if between[0] <= width <= between[-1]]
    mechanism = dps.HeterogeneousNoisyMax(epsilon=epsilon, neutral=neutral)
    added = neutral_offsets(mechanism, [float(widths[a]) for a in kept])
    means = []
    for a in kept:
        rivals = [widths[b] for b in kept if b != a]
        means.append((widths[a] + max(rivals, default=Fraction(0))) / Fraction(epsilon))
    law = largest_noisy("exponential", [y[a] + Fraction(n) for a, n in zip(kept, added, strict=True)], means)
    chances = dict(zip(kept, law, strict=True))
    return [chances.get(a, mp.zero) for a in range(len(y))]


def naive_noisy_max(scores, sensitivities, *, epsilon, noise="exponential"):
    q = fractions(scores)
    scale = Fraction(1 if noise == "laplace" else 2) / Fraction(epsilon)
    return largest_noisy(noise, q, [scale * d for d in fractions(sensitivities, len(q))])


def spearman_sign(x, y):
    """Return the sign of the covariance of average ranks, 0 where one of the two is constant."""
    pairs = zip(_centred_ranks(fractions(x)), _centred_ranks(fractions(y, len(x))), strict=True)
    covariance = sum(a * b for a, b in pairs)
    return (covariance > 0) - (covariance < 0)


def correlation(x, y, weights=None):
    """Return the weighted Pearson correlation, as a float; None where the variance of one is zero."""
    x, y = fractions(x), fractions(y, len(x))
    w = [Fraction(1)] * len(x) if weights is None else weights
    x_mean, y_mean = (sum(a * b for a, b in zip(w, v, strict=True)) / sum(w) for v in (x, y))
    x, y = [v - x_mean for v in x], [v - y_mean for v in y]
    xx, xy, yy = (sum(a * b * c for a, b, c in zip(w, u, v, strict=True)) for u, v in ((x, x), (x, y), (y, y)))
    mp.dps = DIGITS
    return float(real(xy) / mp.sqrt(real(xx) * real(yy))) if xx * yy else None


def spearman(x, y):
    """Return the Pearson correlation of average ranks."""
    return correlation(_centred_ranks(fractions(x)), _centred_ranks(fractions(y, len(x))))


def weighted_correlation(scores, sensitivities, buckets=5):
    """Return the correlation under weights Δ_a / (largest Δ in the bucket), 1 where that is 0/0."""
    q = fractions(scores)
    deltas = fractions(sensitivities, len(q))
    if max(q) == min(q):
        return None
    places = [min(buckets - 1, (score - min(q)) * buckets // (max(q) - min(q))) for score in q]
    tops = [max(d for d, other in zip(deltas, places, strict=True) if other == place) for place in places]
    return correlation(q, deltas, [d / top if top else Fraction(1) for d, top in zip(deltas, tops, strict=True)])


def _centred_ranks(values):
    below = [sum(other < value for other in values) for value in values]
    ties = [values.count(value) for value in values]
    return [b + Fraction(t + 1, 2) - Fraction(len(values) + 1, 2) for b, t in zip(below, ties, strict=True)]


def combined_gem(scores, sensitivities, *, epsilon, beta=0.05, correlation_share=0.6):
    question = Fraction(correlation_share) * Fraction(epsilon)
    rest = float(Fraction(epsilon) - question)
    modified = modified_gem(scores, sensitivities, epsilon=rest, beta=beta)
    original = gem(scores, sensitivities, epsilon=rest, beta=beta)
    truth = 1 / (1 + mp.exp(-real(question)))
    weight = truth if spearman_sign(scores, sensitivities) >= 0 else 1 - truth
    return [weight * m + (1 - weight) * o for m, o in zip(modified, original, strict=True)]


def randomized_response(scores, sensitivities, *, epsilon):  # noqa: ARG001
    mp.dps = DIGITS
    q = fractions(scores)
    odds, ties = mp.exp(mp.mpf(epsilon)), q.count(max(q))
    return [(((odds - 1) / ties if v == max(q) else 0) + 1) / (odds + len(q) - 1) for v in q]


def top_share(scores, sensitivities, *, epsilon, share=None, weights=None):  # noqa: ARG001
    """Fill from the best score down, with weights that are whole multiples of 2⁻²⁸ of the largest."""
    mp.dps = DIGITS
    q = fractions(scores)
    w = np.broadcast_to(1.0 if weights is None else weights, len(q)).tolist()
    w = [math.ceil(x / max(w) * 2**28) for x in w]
    total, rule = sum(w), share is None
    share = 1 / (1 + math.exp(min(epsilon / 2, 700.0))) if rule else share
    room = min(total, max(math.ceil(share * float(total)), -(-total // np.count_nonzero(w)) if rule else 1))
    s = 1 / (1 + (mp.exp(mp.mpf(epsilon)) - 1) * room / total)
    law = [mp.zero] * len(q)
    for level in sorted(set(q), reverse=True):
        tied = [a for a in range(len(q)) if q[a] == level]
        weight = sum(w[a] for a in tied)
        inside = min(weight, room)
        room -= inside
        for a in tied:
            part = mp.mpf(inside) / weight if weight else mp.zero
            law[a] = s * w[a] / total * (1 + (mp.exp(mp.mpf(epsilon)) - 1) * part)
    return law


def uniform(scores, sensitivities):  # noqa: ARG001
    return [mp.one / len(scores)] * len(scores)
