"""Weights for top share: fitted to public rows, against linear programs, and from released picks."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog

import dpselect as dps


def least_error(losses, epsilon):
    """Return the least mean error of any ε-DP mechanism for these rows: a linear program over c and all p."""
    rows, size = losses.shape
    ratio = math.exp(epsilon)
    upper, lower = [], []
    for row in range(rows):
        own = np.zeros((size, rows * size))
        own[:, row * size : (row + 1) * size] = np.eye(size)
        lower.append(np.hstack([np.eye(size), -own]))  # c ≤ p
        upper.append(np.hstack([-ratio * np.eye(size), own]))  # p ≤ e^ε c
    sums = np.hstack([np.zeros((rows, size)), np.kron(np.eye(rows), np.ones(size))])
    costs = np.concatenate([np.zeros(size), losses.ravel() / rows])
    bounds = np.concatenate([*lower, *upper])
    found = linprog(costs, A_ub=bounds, b_ub=np.zeros(len(bounds)), A_eq=sums, b_eq=np.ones(rows), method="highs")
    assert found.success
    return found.fun


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 7.0])
@pytest.mark.parametrize(("rows", "size"), [(1, 3), (30, 5), (60, 5), (25, 12)])
def test_the_fit_is_as_good_as_the_linear_program_up_to_its_gap(epsilon, rows, size):
    source = np.random.default_rng(rows + size)
    scores = np.round(source.normal(size=size) + source.normal(size=(rows, size)), 1)
    fit = dps.advice.fit_top_share(scores, epsilon=epsilon)
    least = least_error((scores.max(axis=1, keepdims=True) - scores) ** 2, epsilon)
    assert fit.expected_error - fit.gap <= least * (1 + 1e-7) + 1e-12
    assert least <= fit.expected_error * (1 + 1e-7) + 1e-9
    assert fit.expected_error <= 1.02 * least + 1e-6
    assert fit.expected_error <= fit.rule_error * (1 + 1e-12)
    assert fit.weights.sum() == pytest.approx(1.0)


def test_the_errors_of_a_fit_are_those_of_its_mechanisms():
    source = np.random.default_rng(5)
    scores = source.normal(size=(40, 8))
    losses = (
        source.random((40, 1)) * (scores.max(axis=1, keepdims=True) - scores) + 1.0
    )  # the loss depends on the row
    fit = dps.advice.fit_top_share(scores, epsilon=2.0, losses=losses)
    for mechanism, error in (
        (dps.TopShare(2.0), fit.rule_error),
        (dps.RandomizedResponse(2.0), fit.randomized_response_error),
    ):
        assert error == pytest.approx((mechanism.pmf(scores) * losses).sum(axis=1).mean())
    found = (fit.mechanism.pmf(scores, weights=fit.weights) * losses).sum(axis=1).mean()
    assert fit.expected_error == pytest.approx(found)
    assert fit.expected_error <= 1.01 * least_error(losses, 2.0)
    assert fit.mechanism.epsilon == 2.0


def test_rows_without_anything_to_choose_are_fitted():
    constant = dps.advice.fit_top_share(np.ones((5, 4)), epsilon=1.0)
    assert constant.expected_error == constant.gap == 0
    single = dps.advice.fit_top_share(np.arange(5.0)[:, np.newaxis], epsilon=1.0)
    assert single.weights.tolist() == [1.0]
    far = dps.advice.fit_top_share(np.eye(4), epsilon=500.0)
    assert far.mechanism.epsilon == 500.0
    assert far.expected_error < 1e-9


BAD = {
    "flat": ({"public_scores": [1.0, 2.0]}, "public_scores must have rows and candidates"),
    "not finite": ({"public_scores": [[1.0, np.nan]]}, "public_scores must be finite"),
    "losses of another shape": ({"public_scores": [[1.0, 2.0]], "losses": [[1.0]]}, "losses must have the shape"),
    "growing losses": (
        {"public_scores": [[1.0, 2.0]], "losses": [[0.0, 1.0]]},
        "losses must not grow with the score",
    ),
    "ties": ({"public_scores": [[1.0, 1.0]], "losses": [[0.0, 1.0]]}, "equal for equal scores"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD)
def test_bad_public_rows_are_refused_by_name(arguments, message):
    with pytest.raises(ValueError, match=message):
        dps.advice.fit_top_share(**arguments, epsilon=1.0)


def test_weights_from_picks_are_counts_without_what_the_coin_explains():
    mechanism, size = dps.TopShare(2.0, share=0.25), 4
    coin = 1 / (1 + 0.25 * math.expm1(2.0))
    learned = np.maximum(np.array([6, 0, 3, 1]) - 10 * coin / size, 0) + 0.5
    expected = 0.9 * learned / learned.sum() + 0.1 / size
    found = dps.advice.weights_from_picks([0] * 6 + [2] * 3 + [3], mechanism, candidates=size)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    weights = [1.0, 1.0, 2.0, 0.0]
    learned = np.maximum(np.array([0, 5, 5, 0]) - 10 * coin * np.array([1, 1, 2, 0]) / 4, 0) + 0.5
    found = dps.advice.weights_from_picks([1, 2] * 5, mechanism, candidates=size, weights=weights)
    np.testing.assert_allclose(found, 0.9 * learned / learned.sum() + 0.1 / size, rtol=1e-12)
    np.testing.assert_allclose(dps.advice.weights_from_picks([], mechanism, candidates=size), 0.25)


def test_early_picks_teach_later_ones():
    source = np.random.default_rng(6)
    likes = np.sort(source.normal(size=100))
    early, late = (likes + source.normal(size=(400, 100)) for _ in range(2))
    mechanism = dps.TopShare(6.0)
    picks = mechanism.select(early, randomness=dps.Randomness.seeded(1))
    weights = dps.advice.weights_from_picks(picks, mechanism, candidates=100)
    taught, untaught = (
        dps.expected_error(mechanism, late, **public).mean() for public in ({"weights": weights}, {})
    )
    assert taught < 0.7 * untaught


def test_bad_picks_are_refused_by_name():
    with pytest.raises(ValueError, match="mechanism must be a TopShare"):
        dps.advice.weights_from_picks([0], dps.Uniform(), candidates=2)
    with pytest.raises(ValueError, match="picks must be positions: whole numbers from 0 to 1"):
        dps.advice.weights_from_picks([2], dps.TopShare(1.0), candidates=2)
    with pytest.raises(ValueError, match="picks must be positions: whole numbers"):
        dps.advice.weights_from_picks([0.5], dps.TopShare(1.0), candidates=2)
