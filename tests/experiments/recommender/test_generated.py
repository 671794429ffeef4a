"""Synthetic interactions."""

import numpy as np

from experiments.recommender.generated import generate
from experiments.recommender.preprocessing import like_matrix


def test_generated_likes_have_popular_items_and_tastes():
    likes = generate(users=2000, items=300, seed=5)
    counts = np.bincount(likes.items, minlength=300)
    assert counts[:30].mean() > 3 * counts[150:].mean() > 0
    matrix = like_matrix(likes.users, likes.items, (2000, 300)).toarray()
    assert (np.diff(np.sort(likes.users * 300 + likes.items)) > 0).all()  # no pair twice
    # Tastes: people who share an item share more of the others than popularity alone would have them do.
    pairs = np.triu_indices(300, 1)
    together = np.corrcoef(matrix.T)[pairs]
    shuffled = np.corrcoef(np.random.default_rng(0).permuted(matrix, axis=0).T)[pairs]
    assert together.std() > 1.5 * shuffled.std()
