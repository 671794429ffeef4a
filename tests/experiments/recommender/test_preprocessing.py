"""Splits of users and items."""

import numpy as np
import pytest

from experiments.recommender.generated import generate
from experiments.recommender.interactions import Counts, Interactions
from experiments.recommender.preprocessing import hold_out_users, own_split


def interactions(pairs, test=None):
    users, items = np.array(pairs, np.int32).T
    counts = Counts(rows=len(pairs), users=len(set(users)), items=len(set(items)))
    return Interactions(users=users, items=items, test=None if test is None else np.array(test), counts=counts)


def test_held_out_users_are_in_no_other_part_and_lose_a_fifth_of_their_items():
    likes = generate(users=60, items=50, seed=2)
    split = hold_out_users(likes, test_users=10, calibration_users=5, seed=4)
    assert split.train.shape[0] == 45
    assert (split.inputs.shape[0], split.calibration.shape[0]) == (10, 5)
    together = np.diff(split.inputs.indptr) + np.diff(split.targets.indptr)
    np.testing.assert_array_equal(np.diff(split.targets.indptr), together // 5)
    assert split.inputs.multiply(split.targets).nnz == 0
    # Every user is somewhere: rows of likes are a fingerprint of the user, up to the order of items.
    found = sorted([*np.diff(split.train.indptr).tolist(), *together.tolist()])
    sizes = sorted(np.bincount(likes.users).tolist())
    assert not set(found) - set(sizes)


def test_users_with_fewer_than_five_likes_are_left_out_and_repeated_likes_count_once():
    pairs = [(user, item) for user in range(4) for item in range(6)] + [(9, item) for item in (0, 0, 1, 1, 2, 3)]
    split = hold_out_users(interactions(pairs), test_users=1, calibration_users=1, seed=0)
    assert split.train.shape[0] + 2 == 4
    assert set(split.train.data) == {1.0}


def test_the_same_seed_gives_the_same_split_and_another_seed_another():
    likes = generate(users=60, items=50, seed=2)
    one, two, other = (hold_out_users(likes, test_users=9, calibration_users=9, seed=seed) for seed in (1, 1, 2))
    assert (one.inputs != two.inputs).nnz == 0
    assert (one.inputs != other.inputs).nnz > 0


def test_too_many_held_out_users_are_refused():
    with pytest.raises(ValueError, match="test_users"):
        hold_out_users(generate(users=20, items=30, seed=1), test_users=15, calibration_users=5, seed=1)


def test_items_are_numbered_by_popularity_in_training(split):
    counts = np.bincount(split.train.indices, minlength=split.train.shape[1])
    assert (np.diff(counts) <= 0).all()


def test_a_split_of_its_own_trains_on_everybody_and_tests_who_has_both_parts():
    pairs = [(0, 0), (0, 1), (0, 2), (1, 0), (2, 1)]
    split = own_split(interactions(pairs, test=[False, False, True, False, True]))
    assert split.train.shape == (3, 3)
    assert split.train.nnz == 3
    assert split.inputs.shape[0] == split.targets.shape[0] == 1
    assert (split.inputs.nnz, split.targets.nnz) == (2, 1)
