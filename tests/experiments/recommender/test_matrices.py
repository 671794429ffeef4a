"""Splits, models and scores, against slow and obvious twins."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from experiments.recommender.generated import generate
from experiments.recommender.interactions import Counts, Interactions
from experiments.recommender.models import LARGEST_DENSE, DenseModel, SparseModel, fit_ease
from experiments.recommender.preprocessing import hold_out_users, like_matrix, own_split
from experiments.recommender.sansa import SANSA_MISSING, fit_sansa, sansa_is_installed
from experiments.recommender.scoring import CONSTANT, find_candidates, find_ranges, recall, score_items


def interactions(pairs, test=None):
    users, items = np.array(pairs, np.int32).T
    counts = Counts(rows=len(pairs), users=len(set(users)), items=len(set(items)))
    return Interactions(users=users, items=items, test=None if test is None else np.array(test), counts=counts)


@pytest.fixture(scope="module")
def split():
    return hold_out_users(generate(users=300, items=80, seed=3), test_users=40, calibration_users=30, seed=1)


def test_held_out_users_are_in_no_other_part_and_lose_a_fifth_of_their_items():
    likes = generate(users=60, items=50, seed=2)
    split = hold_out_users(likes, test_users=10, calibration_users=5, seed=4)
    assert split.train.shape[0] == 45
    assert (split.inputs.shape[0], split.calibration.shape[0]) == (10, 5)
    together = np.diff(split.inputs.indptr) + np.diff(split.targets.indptr)
    np.testing.assert_array_equal(np.diff(split.targets.indptr), together // 5)
    assert split.inputs.multiply(split.targets).nnz == 0
    # Every user is in one part: a row of likes identifies the user, up to the order of items.
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


def test_a_given_split_trains_on_all_users_and_tests_users_with_both_parts():
    pairs = [(0, 0), (0, 1), (0, 2), (1, 0), (2, 1)]
    split = own_split(interactions(pairs, test=[False, False, True, False, True]))
    assert split.train.shape == (3, 3)
    assert split.train.nnz == 3
    assert split.inputs.shape[0] == split.targets.shape[0] == 1
    assert (split.inputs.nnz, split.targets.nnz) == (2, 1)


def test_ease_solves_its_least_squares_problem_column_by_column(split):
    # With B_jj = 0 each column is a ridge regression of item j on all other items.
    dense, l2 = split.train.toarray().astype(float), 7.0
    weights = fit_ease(split.train, l2=l2).weights
    for column in (0, 17, 79):
        others = np.delete(np.arange(80), column)
        left = dense[:, others].T @ dense[:, others] + l2 * np.eye(79)
        expected = np.linalg.solve(left, dense[:, others].T @ dense[:, column])
        np.testing.assert_allclose(weights[others, column], expected, atol=1e-6)
        assert weights[column, column] == 0


def test_ease_refuses_what_it_cannot_hold_and_says_what_to_use():
    too_wide = sparse.csr_array((2, LARGEST_DENSE + 1), dtype=np.float32)
    with pytest.raises(ValueError, match="SANSA"):
        fit_ease(too_wide, l2=1.0)
    with pytest.raises(ValueError, match="l2"):
        fit_ease(too_wide, l2=0.0)


@pytest.mark.skipif(sansa_is_installed(), reason="SANSA is installed")
def test_without_sansa_one_sentence_says_how_to_install_it(split):
    with pytest.raises(ModuleNotFoundError, match="libsuitesparse-dev"):
        fit_sansa(split.train, l2=1.0, density=1.0, factorisation="cholmod")


@pytest.mark.skipif(not sansa_is_installed(), reason=SANSA_MISSING)
def test_sansa_at_full_density_scores_like_ease_except_that_seen_items_score_one_less(split):
    ease = fit_ease(split.train, l2=20.0)
    sansa = fit_sansa(split.train, l2=20.0, density=1.0, factorisation="cholmod", scans=5)
    expected = ease.decode(ease.encode(split.inputs), 0, 80)
    found = sansa.decode(sansa.encode(split.inputs), 0, 80)
    np.testing.assert_allclose(found, expected - split.inputs.toarray(), atol=1e-5)
    np.testing.assert_array_equal(sansa.decode_all(sansa.encode(split.inputs)).toarray(), found)


@pytest.mark.skipif(not sansa_is_installed(), reason=SANSA_MISSING)
@pytest.mark.parametrize("factorisation", ["cholmod", "icf"])
def test_a_sparse_sansa_finds_nearly_what_ease_finds(split, factorisation):
    sansa = fit_sansa(split.train, l2=20.0, density=0.3, factorisation=factorisation)
    assert sansa.encoder.nnz <= 0.3 * 80 * 80 * 1.05
    found = [
        recall(find_candidates(model, split.inputs, size=20), split.targets, cutoff=20, capped=True)
        for model in (sansa, fit_ease(split.train, l2=20.0))
    ]
    assert found[0] > 0.8 * found[1] > 0


def some_model(seed, items, share):
    random = np.random.default_rng(seed)
    # With few distinct values, most scores tie.
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
    # All scores are 0, so the first two candidates are items 0 and 1 for all users. The third user has no targets.
    assert recall(found, targets, cutoff=2, capped=False) == pytest.approx((2 / 3 + 0) / 2)
    assert recall(found, targets, cutoff=2, capped=True) == pytest.approx((2 / 2 + 0) / 2)


def test_generated_likes_have_popular_items_and_tastes():
    likes = generate(users=2000, items=300, seed=5)
    counts = np.bincount(likes.items, minlength=300)
    assert counts[:30].mean() > 3 * counts[150:].mean() > 0
    matrix = like_matrix(likes.users, likes.items, (2000, 300)).toarray()
    assert (np.diff(np.sort(likes.users * 300 + likes.items)) > 0).all()  # no pair twice
    # Tastes: people who share an item share more of the others than popularity alone explains.
    pairs = np.triu_indices(300, 1)
    together = np.corrcoef(matrix.T)[pairs]
    shuffled = np.corrcoef(np.random.default_rng(0).permuted(matrix, axis=0).T)[pairs]
    assert together.std() > 1.5 * shuffled.std()
