"""Kernels give the same answers in plain Python as compiled, and are compiled where that pays."""

import itertools
import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from routes import in_plain_python
from variants import EVERY, candidates, every_mechanism

import dpselect as dps
from dpselect.kernels import compilation, instructions
from dpselect.kernels.arrays import Column, Table, Units

FLOOR = 1e-250
"""Smaller probabilities are not promised to be precise."""


def both(call):
    """Return what a call returns on each route."""
    with in_plain_python():
        plain = call()
    return plain, call()


@every_mechanism
@pytest.mark.parametrize("shape", [(30, 7), (6, 200), (1, 1000)], ids=str)
def test_both_routes_pick_the_same(mechanism, shape):
    scores, sensitivities, public = candidates(mechanism, shape, 11)
    wide = np.maximum(sensitivities, 0.25) ** 3
    for widths in (sensitivities, wide, wide[0]):
        seed = dps.Randomness.seeded(5)
        plain, compiled = both(lambda: mechanism.select(scores, widths, randomness=seed, **public))  # noqa: B023
        np.testing.assert_array_equal(plain, compiled)


@every_mechanism
@pytest.mark.parametrize("shape", [(5, 3), (2, 60), (1, 300)], ids=str)
def test_both_routes_give_the_same_probabilities(mechanism, shape):
    scores, sensitivities, public = candidates(mechanism, shape, 12)
    for widths in (sensitivities, np.maximum(sensitivities, 0.25), np.full(shape, 2.0**-7)):
        plain, compiled = both(lambda: mechanism.pmf(scores, widths, **public))  # noqa: B023
        assert plain[compiled > FLOOR] == pytest.approx(compiled[compiled > FLOOR], rel=1e-12)
        assert (plain[compiled <= FLOOR] <= 2 * FLOOR).all()
