"""Users' lists, splits and a model that are small enough for slow twins."""

import numpy as np
import pytest

from experiments.recommender import private
from experiments.recommender.generated import generate
from experiments.recommender.models import fit_ease
from experiments.recommender.preprocessing import hold_out_users
from experiments.recommender.protocol import Lists


@pytest.fixture(scope="session")
def users():
    random = np.random.default_rng(8)
    sensitivities = random.uniform(0.1, 1.0, (30, 40))
    return Lists(scores=sensitivities * random.uniform(0, 1, (30, 40)), sensitivities=sensitivities)


@pytest.fixture(scope="session")
def split():
    return hold_out_users(generate(users=300, items=80, seed=3), test_users=40, calibration_users=30, seed=1)


@pytest.fixture(scope="session")
def large_split():
    """More items than a list has."""
    return hold_out_users(generate(users=600, items=760, seed=3), test_users=25, calibration_users=40, seed=1)


@pytest.fixture(scope="session")
def model(large_split):
    return fit_ease(large_split.train, l2=20.0)


@pytest.fixture(scope="session")
def held_out(large_split, model):
    return private.prepare(model, large_split, seed=1)
