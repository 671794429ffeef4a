"""How good a list is: by hand on small rows, and drawn values within their standard errors."""

import itertools

import numpy as np
import pytest

import dpselect as dps
from dpselect.lists import list_quality
from dpselect.lists.quality import list_errors

SCORES = np.array([0.5, 3.0, 1.0, 2.0, -1.0])
SENSITIVITIES = np.array([1.0, 0.5, 2.0, 0.25, 1.0])


def by_hand(top, gains):
    """Return the expected recall, sum of scores and NDCG, from all lists."""
    lists = np.array(list(itertools.permutations(range(5), top.count)))
    weights = top.probability(lists, np.tile(SCORES, (len(lists), 1)), SENSITIVITIES)
    best = set(np.argsort(-SCORES)[: top.count].tolist())
    discount = 1 / np.log2(np.arange(2, top.count + 2))
    ideal = np.sort(gains)[::-1][: top.count] @ discount
    recall = [len(best & set(order)) / top.count for order in lists.tolist()]
    return weights @ recall, weights @ SCORES[lists].sum(axis=1), weights @ (gains[lists] @ discount / ideal)


@pytest.mark.parametrize("gains", [None, np.array([0.0, 1.0, 0.0, 1.0, 1.0])])
def test_exact_quality_is_the_mean_over_all_lists(gains):
    top = dps.TopK(dps.HeterogeneousNoisyMax(2.0), count=3)
    found = list_quality(top, SCORES, SENSITIVITIES, gains=gains)
    expected = by_hand(top, SCORES - SCORES.min() if gains is None else gains)
    assert (found.recall, found.score_sum, found.ndcg) == pytest.approx(expected)
    assert found.standard_errors == (0, 0, 0)


def test_drawn_quality_is_within_its_standard_errors():
    top = dps.TopK(dps.GEM(2.0), count=3)
    exact = list_quality(top, SCORES, SENSITIVITIES)
    drawn = list_quality(top, SCORES, SENSITIVITIES, draws=5000, randomness=dps.Randomness.seeded(2))
    for name, error in zip(("recall", "score_sum", "ndcg"), drawn.standard_errors, strict=True):
        assert abs(getattr(drawn, name) - getattr(exact, name)) < 6 * error  # false alarm: 1e-8 each
        assert 0 < error < 0.1


def test_a_list_without_noise_is_perfect_and_ties_count():
    top = dps.TopK(dps.NoisyMax(1e6), count=2)
    quality = list_quality(top, [[1.0, 1.0, 1.0, 0.0], [3.0, 2.0, 1.0, 0.0]], 1.0)
    assert quality.recall == pytest.approx([1.0, 1.0])
    assert quality.ndcg == pytest.approx([1.0, 1.0])
    assert list_quality(dps.TopK(dps.Uniform(), count=2), np.zeros(4), 1.0).ndcg == pytest.approx(1.0)


def test_bad_gains_and_missing_draws_are_named():
    top = dps.TopK(dps.GEM(1.0), count=10)
    with pytest.raises(ValueError, match="draws must be given for lists of this size"):
        list_quality(top, np.zeros(100), 1.0)
    with pytest.raises(ValueError, match="gains must be finite and ≥ 0"):
        list_quality(dps.TopK(dps.GEM(1.0), count=2), SCORES, 1.0, gains=-SCORES)


@pytest.mark.parametrize("power", [1, 2])
def test_the_error_of_a_list_depends_on_its_row_alone_and_is_about_its_mean(power):
    top = dps.TopK(dps.GEM(1.0), count=2)
    rows = np.random.default_rng(0).normal(size=(300, 5))
    errors = list_errors(top, top.read(rows, SENSITIVITIES), power)
    some = [250, 3, 77]
    assert (list_errors(top, top.read(rows[some], SENSITIVITIES), power) == errors[some]).all()
    lists = top.select(np.repeat(rows, 50, axis=0), SENSITIVITIES, randomness=dps.Randomness.seeded(5))
    picked = np.take_along_axis(np.repeat(rows, 50, axis=0), lists, axis=1).mean(axis=1)
    regrets = (np.repeat(np.sort(rows)[:, -2:].mean(axis=1), 50) - picked) ** power
    spread = regrets.reshape(300, 50).std(axis=1).mean()
    assert abs(errors.mean() - regrets.mean()) < 6 * spread / np.sqrt(300 * 8)


def test_ragged_rows_have_the_errors_of_dense_ones():
    top = dps.TopK(dps.NoisyMax(1.0), count=2)
    rows, bounds = np.random.default_rng(1).normal(size=(4, 5)), np.arange(5) * 5
    widths = np.tile(SENSITIVITIES, 4)
    dense = list_errors(top, top.read(rows, SENSITIVITIES), 2)
    assert (list_errors(top, top.read((rows.reshape(-1), bounds), (widths, bounds)), 2) == dense).all()
