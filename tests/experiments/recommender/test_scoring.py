"""Percentiles, candidates and recall, against slow twins."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from experiments.recommender.models import DenseModel, SparseModel, fit_ease
from experiments.recommender.preprocessing import like_matrix
from experiments.recommender.scoring import CONSTANT, find_candidates, find_ranges, recall, score_items


def some_model(seed, items, share):
    random = np.random.default_rng(seed)
    # Few distinct values: ties are the rule.
    weights = random.choice([-1.0, 0.5, 1.0, 2.0], (items, items)) * (random.random((items, items)) < share)
    decoder = sparse.csr_array(weights.astype(np.float32))
    eye = sparse.eye_array(items, format="csr", dtype=np.float32)
    by_item = sparse.csc_array(decoder)
    return SparseModel(encoder=eye, decoder=decoder, by_item=by_item, description=""), weights


def some_likes(seed, users, items):
    random = np.random.default_rng(seed)
    chosen = np.nonzero(random.random((users, items)) < 0.15)
    return like_matrix(*(axis.astype(np.int32) for axis in chosen), (users, items))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), share=st.sampled_from([0.02, 0.2, 1.0]), blocks=st.sampled_from([1, 400, 10**6]))
def test_percentiles_in_blocks_are_those_of_the_whole_matrix_without_seen_items(seed, share, blocks):
    model, weights = some_model(seed, 23, share)
    likes = some_likes(seed, 31, 23)
    ranges = find_ranges(model, likes, block_bytes=blocks)
    scores = np.where(likes.toarray() > 0, np.nan, likes.toarray() @ weights)
    for item in range(23):
        column = scores[:, item][~np.isnan(scores[:, item])]
        expected = np.percentile(column, [1, 99]) if column.size else [0, 0]
        np.testing.assert_allclose([ranges.lower[item], ranges.upper[item]], expected, rtol=1e-6, atol=1e-6)
    widths = ranges.upper - ranges.lower
    np.testing.assert_allclose(ranges.sensitivities, np.where(widths > 0, widths, CONSTANT), rtol=1e-6)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    share=st.sampled_from([0.02, 0.2, 1.0]),
    blocks=st.sampled_from([1, 900, 10**6]),
    size=st.sampled_from([1, 5, 10]),
)
def test_candidates_are_the_best_unseen_items_and_ties_go_to_the_more_popular(seed, share, blocks, size):
    model, weights = some_model(seed, 23, share)
    likes = some_likes(seed, 31, 23)
    found = find_candidates(model, likes, size=size, block_bytes=blocks)
    for user, liked in enumerate(likes.toarray()):
        scores = (liked @ weights).astype(np.float32)
        order = sorted(np.flatnonzero(liked == 0), key=lambda item: (-scores[item], item))[:size]
        np.testing.assert_array_equal(found.items[user], order)
        np.testing.assert_array_equal(found.scores[user], scores[order])
        assert found.nonzero[user] == np.count_nonzero(scores[liked == 0])


def test_more_candidates_than_unseen_items_are_refused():
    model, _ = some_model(1, 23, 0.5)
    for size in (23, 24):
        with pytest.raises(ValueError, match="size"):
            find_candidates(model, some_likes(1, 31, 23), size=size)


def test_scores_of_chosen_items_are_those_of_the_whole_matrix_and_seen_ones_have_none(split):
    model = fit_ease(split.train, l2=5.0)
    items = np.array([70, 3, 11], np.int32)
    expected = np.where(split.inputs.toarray() > 0, -np.inf, split.inputs.toarray() @ model.weights)[:, items]
    np.testing.assert_allclose(score_items(model, split.inputs, items, block_bytes=2000), expected, atol=1e-5)


def test_memory_is_bounded_by_the_block_and_not_by_users_times_items():
    users, items = 2000, 4000
    random = np.random.default_rng(1)
    chosen = random.integers(0, users, 20_000).astype(np.int32), random.integers(0, items, 20_000).astype(np.int32)
    likes = like_matrix(*chosen, (users, items))
    weights = sparse.random_array((items, items), density=0.002, rng=random, dtype=np.float32, format="csr")
    eye = sparse.eye_array(items, format="csr", dtype=np.float32)
    model = SparseModel(encoder=eye, decoder=weights, by_item=weights.tocsc(), description="")
    whole = 4 * users * items
    tracemalloc.start()
    find_ranges(model, likes, block_bytes=1 << 20)
    find_candidates(model, likes, block_bytes=1 << 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The candidates themselves take 2,000 · 500 · 8 bytes; a whole matrix would take 32 MB.
    assert peak < 8 * users * 500 + whole / 3


def test_recall_counts_targets_among_the_first_candidates():
    targets = like_matrix(np.int32([0, 0, 0, 1]), np.int32([0, 1, 2, 4]), (3, 5))
    model = DenseModel(weights=np.diag(np.arange(5.0, 0.0, -1.0)).astype(np.float32), description="")
    nothing = like_matrix(np.int32([]), np.int32([]), (3, 5))
    found = find_candidates(model, nothing, size=5)
    # All scores are 0: the first two candidates are items 0 and 1 for everybody; the third user has no targets.
    assert recall(found, targets, cutoff=2, capped=False) == pytest.approx((2 / 3 + 0) / 2)
    assert recall(found, targets, cutoff=2, capped=True) == pytest.approx((2 / 2 + 0) / 2)
