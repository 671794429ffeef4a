"""EASE, against ridge regressions."""

import numpy as np
import pytest
from scipy import sparse

from experiments.recommender.models import LARGEST_DENSE, fit_ease


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
