"""From likes to matrices: which users are left out or held out, and which items are the targets.

This follows SANSA's paper: ratings of 4 and 5 are likes, users with fewer than 5 likes are left out, test users are
held out of training, and a fifth of a held-out user's items are targets. Datasets with their own split keep it:
every user's training part is for training, and the test part for testing.

Items are numbered by popularity in training, most popular first, so a lower number wins every tie.
"""

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from experiments.arrays import IndexArray
from experiments.recommender.interactions import Interactions

__all__ = ["Split", "hold_out_users", "like_matrix", "own_split"]

Likes: TypeAlias = sparse.csr_array

LEAST_RATING = 4.0
LEAST_LIKES = 5
TARGET_SHARE = 0.2


@dataclass(frozen=True, kw_only=True)
class Split:
    """Matrices of users × items with a 1 for each like."""

    train: Likes
    inputs: Likes
    """The model's input for each test user."""
    targets: Likes
    """The items to find, with the same rows as ``inputs``."""
    calibration: Likes | None = None
    """The model's input for users that are in neither training nor testing."""


def like_matrix(users: NDArray[np.int32], items: NDArray[np.int32], shape: tuple[int, int]) -> Likes:
    """Return the matrix of pairs. A repeated pair counts once."""
    matrix = sparse.csr_array((np.ones(users.size, np.float32), (users, items)), shape=shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    return matrix


def hold_out_users(
    likes: Interactions, *, test_users: int, calibration_users: int, seed: int, least_likes: int = LEAST_LIKES
) -> Split:
    """Hold random users out of training, and a random fifth of their items as targets.

    Args:
        likes: The interactions; a split of their own is ignored.
        test_users: The number of test users.
        calibration_users: The number of users to keep out of training and testing.
        seed: The seed of the random choices.
        least_likes: Users with fewer likes are left out.
    """
    matrix = _compact(likes)
    matrix = _rows(matrix, np.flatnonzero(np.diff(matrix.indptr) >= least_likes))
    users = matrix.shape[0]
    if test_users + calibration_users >= users:
        raise ValueError(
            f"test_users + calibration_users must be below the number of users with at least {least_likes} likes, "
            f"{users}"
        )
    random = np.random.default_rng(seed)
    order = random.permutation(users)
    test, calibration, train = np.split(order, [test_users, test_users + calibration_users])
    inputs, targets = _draw_targets(_rows(matrix, np.sort(test)), random)
    calibrated, _ = _draw_targets(_rows(matrix, np.sort(calibration)), random)
    return _by_popularity(
        Split(train=_rows(matrix, np.sort(train)), inputs=inputs, targets=targets, calibration=calibrated)
    )


def own_split(likes: Interactions) -> Split:
    """Keep the dataset's own split: train on all users, and test those with test items."""
    if likes.test is None:
        raise ValueError("likes must have their own split; use hold_out_users for likes without one")
    shape = (int(likes.users.max()) + 1, int(likes.items.max()) + 1)
    train = like_matrix(likes.users[~likes.test], likes.items[~likes.test], shape)
    test = like_matrix(likes.users[likes.test], likes.items[likes.test], shape)
    tested = np.flatnonzero((np.diff(test.indptr) > 0) & (np.diff(train.indptr) > 0))
    return _by_popularity(Split(train=train, inputs=_rows(train, tested), targets=_rows(test, tested)))


def _compact(likes: Interactions) -> Likes:
    """Number users and items consecutively."""
    users, rows = np.unique(likes.users, return_inverse=True)
    items, columns = np.unique(likes.items, return_inverse=True)
    return like_matrix(rows.astype(np.int32), columns.astype(np.int32), (users.size, items.size))


def _draw_targets(matrix: Likes, random: np.random.Generator) -> tuple[Likes, Likes]:
    """Split off a random fifth of each row's entries, rounded down."""
    sizes = np.diff(matrix.indptr)
    owners = np.repeat(np.arange(sizes.size), sizes)
    # A random order within each row: sort by owner, then by a random number.
    order = np.lexsort((random.random(owners.size), owners))
    rank = np.arange(owners.size) - matrix.indptr[owners]
    chosen = np.zeros(owners.size, dtype=bool)
    chosen[order] = rank < np.floor(TARGET_SHARE * sizes)[owners]
    rows, items = owners.astype(np.int32), matrix.indices.astype(np.int32)
    return (
        like_matrix(rows[~chosen], items[~chosen], matrix.shape),
        like_matrix(rows[chosen], items[chosen], matrix.shape),
    )


def _by_popularity(split: Split) -> Split:
    order = np.argsort(-np.bincount(split.train.indices, minlength=split.train.shape[1]), kind="stable")
    calibration = None if split.calibration is None else _columns(split.calibration, order)
    return replace(
        split,
        train=_columns(split.train, order),
        inputs=_columns(split.inputs, order),
        targets=_columns(split.targets, order),
        calibration=calibration,
    )


def _rows(matrix: Likes, rows: IndexArray) -> Likes:
    return sparse.csr_array(matrix[rows])


def _columns(matrix: Likes, order: IndexArray) -> Likes:
    new = np.empty(order.size, dtype=np.int32)
    new[order] = np.arange(order.size, dtype=np.int32)
    renamed = sparse.csr_array((matrix.data, new[matrix.indices], matrix.indptr), shape=matrix.shape)
    renamed.sort_indices()
    return renamed
