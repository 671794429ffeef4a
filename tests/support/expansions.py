"""The law of noisy max, term by term: exact at any probability, for a few candidates.

Between two scores every F_b with exponential or Laplace noise is a sum of at most two exponentials, so f_a ∏ F_b is
a sum of exponentials whose rates and offsets are fractions. Each is integrated in closed form.
"""

from fractions import Fraction
from itertools import pairwise

import numpy as np
from mpmath import mp
from reference import real

ONE = [(Fraction(1), Fraction(0), Fraction(0))]
"""Terms are (c, u, s), for c · exp(ux + s)."""


def noisy_max_by_terms(noise, locations, scales, digits=200):
    """Return the law of the largest q_a + b_a Z_a; terms cancel, more so the wider the range of scales."""
    mp.dps = digits
    q, b = list(map(Fraction, locations)), list(map(Fraction, scales))
    cuts = sorted(set(q))
    cells = list(pairwise([None, *cuts, None])) if noise == "laplace" else [(max(q), None)]
    law = [mp.zero] * len(q)
    for left, right in cells:
        cdfs = [_cdf(noise, at, scale, left) for at, scale in zip(q, b, strict=True)]
        for a, scale in enumerate(b):
            if scale:
                others = cdfs[:a] + cdfs[a + 1 :]
                law[a] += _integral(_product([_density(cdfs[a]), *others]), left, right)
    for a, scale in enumerate(b):
        if scale == 0:
            there = _product([_cdf(noise, at, width, q[a]) for at, width in zip(q, b, strict=True)])
            law[a] = mp.fsum(real(c) * _exp(u * q[a] + s) for c, u, s in there)
            law[a] /= sum(other == 0 and at == q[a] for at, other in zip(q, b, strict=True))
    return law


def _cdf(noise, at, scale, left):
    """Return F on the cell that begins at ``left`` (or at minus infinity)."""
    above = left is not None and left >= at
    if scale == 0:
        return ONE if above else []
    if noise == "exponential":
        return [*ONE, (Fraction(-1), -1 / scale, at / scale)] if above else []
    half = Fraction(1, 2)
    return [*ONE, (-half, -1 / scale, at / scale)] if above else [(half, 1 / scale, -at / scale)]


def _density(cdf):
    return [(c * u, u, s) for c, u, s in cdf if u]


def _product(factors):
    terms = {(Fraction(0), Fraction(0)): Fraction(1)}
    for factor in factors:
        old, terms = terms, {}
        for (u, s), c in old.items():
            for c2, u2, s2 in factor:
                key = (u + u2, s + s2)
                terms[key] = terms.get(key, 0) + c * c2
    return [(c, u, s) for (u, s), c in terms.items() if c]


def _integral(terms, left, right):
    total = mp.zero
    for c, u, s in terms:
        if u == 0:
            total += real(c) * _exp(s) * real(right - left)
        else:
            ends = [mp.zero if end is None else _exp(u * end + s) for end in (left, right)]
            total += real(c / u) * (ends[1] - ends[0])
    return total


def _exp(exponent):
    return mp.exp(real(exponent)) if exponent > -(10**5) else mp.zero


def assert_right(found, exact):
    """Check probabilities to a relative error of 1e-9 down to 1e-290, and that smaller ones are small."""
    assert np.isfinite(found).all()
    assert abs(found.sum() - 1) <= 1e-12
    for a, (probability, truth) in enumerate(zip(found.tolist(), exact, strict=True)):
        if truth > 1e-290:
            assert abs(probability / truth - 1) <= 1e-9, f"candidate {a}: {probability} for {float(truth)}"
        else:
            assert 0 <= probability <= 1.1e-290, f"candidate {a}: {probability}"
