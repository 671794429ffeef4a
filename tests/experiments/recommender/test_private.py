"""The private protocol is private."""

import numpy as np
import pytest

from experiments.recommender import private
from experiments.recommender.preprocessing import Split, like_matrix


def test_a_private_users_history_changes_nothing_but_scores_within_public_ranges(large_split, model):
    random = np.random.default_rng(5)
    items = large_split.train.shape[1]
    other = like_matrix(
        np.repeat(np.arange(25, dtype=np.int32), 30), random.integers(0, items, 750).astype(np.int32), (25, items)
    )
    changed = Split(
        train=large_split.train, inputs=other, targets=large_split.targets, calibration=large_split.calibration
    )
    one, two = (private.prepare_sides(model, part).private.users for part in (large_split, changed))
    np.testing.assert_array_equal(one.sensitivities, two.sensitivities)
    assert (np.abs(one.scores - two.scores) <= one.sensitivities * (1 + 1e-6)).all()
    assert (one.scores != two.scores).any()
    for mechanism in private.fast_mechanisms(2.0, gamma=0.008).values():
        before, after = (mechanism.pmf(side.scores, side.sensitivities) for side in (one, two))
        assert np.abs(np.log(before) - np.log(after)).max() <= 2.0 + 1e-9


def test_the_papers_protocol_does_depend_on_private_users(large_split, model):
    fewer = Split(
        train=large_split.train,
        inputs=large_split.inputs[:20],
        targets=large_split.targets[:20],
        calibration=large_split.calibration,
    )
    one, two = (private.prepare_sides(model, part).paper.users for part in (large_split, fewer))
    assert (one.sensitivities[:20] != two.sensitivities).any()


def test_both_protocols_are_measured_against_the_best_unseen_item(large_split, model):
    sides = private.prepare_sides(model, large_split)
    scores = np.where(large_split.inputs.toarray() > 0, -np.inf, large_split.inputs.toarray() @ model.weights)
    np.testing.assert_allclose(sides.best, scores.max(axis=1), rtol=1e-5)
    for side in (sides.paper, sides.private):
        assert (side.worth[~side.seen] <= np.repeat(sides.best[:, None], 500, axis=1)[~side.seen] + 1e-6).all()
    rows = private.side_rows(sides, 1.0, gamma=0.008)
    uniform = next(row for row in rows if (row["protocol"], row["mechanism"]) == ("private", "uniform"))
    expected = np.mean((sides.best[:, None] - sides.private.worth) ** 2)
    assert uniform["mean_squared_error"] == pytest.approx(expected)
    assert uniform["seen_share"] == pytest.approx(sides.private.seen.mean())
