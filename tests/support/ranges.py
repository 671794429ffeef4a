"""Rows over the whole accepted range: sensitivities 0 and 2^-300 to 2^300, scores down to subnormals.

Numbers are small integers times a few powers of two, so that they coincide, cancel and lie on a line.
"""

import numpy as np
from hypothesis import strategies as st

STEEP = st.sampled_from([2.0**60, -(2.0**-60), 2.0**300, -(2.0**300), 2.0**-300, 1e-310])
TILTS = st.one_of(st.just(0.0), st.sampled_from([1.0, -1.0, 0.3, -7.7]), STEEP)


def frozen(numbers):
    """Return numbers in the form that the kernels get: read-only arrays."""
    array = np.array(numbers, dtype=float)
    array.flags.writeable = False
    return array


def _powers(exponents):
    return 2.0 ** np.clip(exponents, -1074, 300).astype(float)


def _scattered(rng, least_public):
    """Return scores that are zero, small multiples of their sensitivities' unit, or have digits far apart."""
    size = int(rng.integers(1, 9))
    units = rng.choice([-300, -140, -60, 0, 60, 300, int(rng.integers(-300, 300))], 2)
    fine = np.array([*units, rng.integers(-1074, 300), rng.integers(-300, 300)])
    own = rng.choice(units, size)

    def multiples(exponents):
        return rng.integers(-3, 4, size) * _powers(exponents)

    kinds = [np.zeros(size), multiples(own - 1), multiples(rng.choice(fine, size))]
    kinds.append(kinds[2] + multiples(rng.choice(fine, size)))
    public = multiples(rng.choice(fine[fine >= least_public], size)) * rng.integers(0, 2)
    return np.choose(rng.integers(0, 4, size), kinds), public, rng.integers(0, 5, size) * _powers(own)


def _clustered(rng, _):
    """Return a hull of tiny sensitivities beside large ones, whose tilts hide its steps."""
    minute, wide = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    unit = _powers(rng.integers(-300, -90))
    steps = -np.sort(-rng.integers(0, 7, minute)) / 2
    scores = np.r_[np.cumsum(steps) * unit, rng.choice([0, 0, unit, 1], wide)]
    return scores, np.zeros(minute + wide), np.r_[(1 + np.arange(minute)) * unit, rng.integers(1, 11, wide)]


def _drowned(rng, _):
    """Return a hull of tiny sensitivities whose last step is lost when public numbers are added to its scores."""
    wide = int(rng.integers(1, 4))
    scores = np.r_[-0.5, 0.0, _powers(rng.integers(-200, -90)), rng.choice([-1.0, 1.0, 1000.0], wide)]
    public = np.r_[np.zeros(3), rng.choice([-1, 1], wide) * _powers(rng.integers(-80, -40, wide))]
    return scores, public, np.r_[_powers(rng.integers(-300, -210) + np.arange(3)), rng.integers(1, 4, wide)]


def _rows(least_public):
    def row(seed):
        rng = np.random.default_rng(seed)
        family = (_scattered, _clustered, _drowned)[rng.integers(3)]
        return tuple(np.clip(column, -(2.0**300), 2.0**300).tolist() for column in family(rng, least_public))

    return st.integers(0, 2**64 - 1).map(row)


def offset_rows():
    """Return a strategy for (scores, offsets, sensitivities)."""
    return _rows(-1074)
