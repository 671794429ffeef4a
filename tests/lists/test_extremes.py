"""Lists at the ends of what is accepted: kernels give what exact arithmetic gives, and no candidate comes twice."""

import numpy as np
import pytest

import dpselect as dps
from dpselect.laws import base

MECHANISMS = [
    dps.NoisyMax(1.0),
    dps.NoisyMax(1.0, noise="gumbel"),
    dps.NoisyMax(1.0, tilt=-1.0),
    dps.GEM(1.0),
    dps.GEM(1.0, noise="gumbel"),
    dps.HeterogeneousNoisyMax(1.0),
]
SHAPE = (12, 6)


def rows(kind):
    """Return scores and sensitivities."""
    rng = np.random.default_rng(1)
    equal = np.full(SHAPE, 0.5)
    return {
        "huge scores": (rng.choice([2.0**300, -(2.0**300), 0.0, 1.0], SHAPE), equal),
        "tiny sensitivities": (rng.choice([0.0, 1e-90, 1.0], SHAPE), np.full(SHAPE, 2.0**-300)),
        "subnormal scores": (rng.choice([5e-324, 0.0, 1e-310], SHAPE), np.full(SHAPE, 2.0**-300)),
        "ties": (rng.choice([0.0, 1.0], SHAPE), equal),
        "last bits": (1e15 + rng.integers(0, 8, SHAPE) * 0.125, equal),
        "some zero sensitivities": (rng.choice([0.0, 1.0], SHAPE), rng.choice([0.0, 1.0], SHAPE)),
        "all zero sensitivities": (rng.choice([0.0, 1.0], SHAPE), np.zeros(SHAPE)),
        "forty decades": (
            rng.normal(size=SHAPE) * 10.0 ** rng.integers(-20, 20, SHAPE),
            10.0 ** rng.integers(-20, 20, SHAPE),
        ),
    }[kind]


@pytest.mark.parametrize(
    "kind",
    [
        *("huge scores", "tiny sensitivities", "subnormal scores", "ties", "last bits"),
        *("some zero sensitivities", "all zero sensitivities", "forty decades"),
    ],
)
def test_lists_are_those_of_exact_arithmetic(kind, monkeypatch):
    scores, sensitivities = rows(kind)
    seed = dps.Randomness.seeded(5)
    for mechanism in MECHANISMS:
        top = dps.TopK(mechanism, count=4)
        lists = top.select(scores, sensitivities, randomness=seed)
        with monkeypatch.context() as patch:
            patch.setattr(base, "FILTER_ERROR", 1e300)  # floats decide nothing
            exact = top.select(scores, sensitivities, randomness=seed)
        assert (lists == exact).all(), mechanism
        assert all(len(set(row)) == 4 for row in lists.tolist()), mechanism
