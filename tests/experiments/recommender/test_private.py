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
    one, two = (private.prepare(model, part, seed=1).private.users for part in (large_split, changed))
    np.testing.assert_array_equal(one.sensitivities, two.sensitivities)
    assert (np.abs(one.scores - two.scores) <= one.sensitivities * (1 + 1e-6)).all()
    assert (one.scores != two.scores).any()
    for mechanism in private.mechanisms(2.0, gamma=0.008).values():
        before, after = (mechanism.pmf(side.scores[:5], side.sensitivities[:5]) for side in (one, two))
        assert np.abs(np.log(before) - np.log(after)).max() <= 2.0 + 1e-9


def test_the_papers_protocol_does_depend_on_private_users(large_split, model):
    fewer = Split(
        train=large_split.train,
        inputs=large_split.inputs[:20],
        targets=large_split.targets[:20],
        calibration=large_split.calibration,
    )
    one, two = (private.prepare(model, part, seed=1).paper.users for part in (large_split, fewer))
    assert (one.sensitivities[:20] != two.sensitivities).any()


def test_both_protocols_are_measured_against_the_best_unseen_item(large_split, model):
    sides = private.prepare(model, large_split, seed=1)
    scores = np.where(large_split.inputs.toarray() > 0, -np.inf, large_split.inputs.toarray() @ model.weights)
    np.testing.assert_allclose(sides.best, scores.max(axis=1), rtol=1e-5)
    for side in (sides.paper, sides.private):
        assert (side.worth[~side.seen] <= np.repeat(sides.best[:, None], 500, axis=1)[~side.seen] + 1e-6).all()
    rows = private.side_rows(sides, 1.0, gamma=0.008)
    uniform = next(row for row in rows if (row["protocol"], row["mechanism"]) == ("private", "uniform"))
    expected = np.mean((sides.best[:, None] - sides.private.worth) ** 2)
    assert uniform["mean_squared_error"] == pytest.approx(expected)
    assert uniform["seen_share"] == pytest.approx(sides.private.seen.mean())


def test_random_stopping_is_computed_for_some_users_relative_to_a_random_pick(held_out, monkeypatch):
    monkeypatch.setattr(private, "SLOW_USERS", 10)
    rows = {(row["protocol"], row["mechanism"]): row for row in private.side_rows(held_out, 0.001, gamma=0.008)}
    slow, random = (rows["private", name] for name in ("rs", "uniform"))
    assert (slow["users"], random["users"]) == (10, 25)
    assert rows["private", "rnm"]["mean_squared_error"] == pytest.approx(random["mean_squared_error"], rel=0.01)
    # Ten users' own errors differ from those of all.
    some = (held_out.best[:10, None] - held_out.private.worth[:10]) ** 2
    assert some.mean() != pytest.approx(random["mean_squared_error"], rel=0.01)
    side = held_out.private
    chances = private.mechanisms(0.001, gamma=0.008)["rs"].pmf(
        side.users.scores[:10], side.users.sensitivities[:10]
    )
    ratio = (chances * some).sum(axis=1).mean() / some.mean()
    assert slow["mean_squared_error"] == pytest.approx(ratio * random["mean_squared_error"])


def test_what_is_kept_comes_back(held_out, tmp_path):
    held_out.save(tmp_path / "kept.npz")
    again = private.HeldOut.load(tmp_path / "kept.npz")
    for name in ("worth", "seen", "best"):
        for people in ("private_people", "public_people"):
            np.testing.assert_array_equal(
                getattr(getattr(again, people), name), getattr(getattr(held_out, people), name)
            )
    for name in ("shared", "likes", "lists"):
        np.testing.assert_array_equal(getattr(again, name), getattr(held_out, name))
    np.testing.assert_array_equal(again.private.users.scores, held_out.private.users.scores)
    np.testing.assert_array_equal(again.paper.users.sensitivities, held_out.paper.users.sensitivities)
    np.testing.assert_array_equal(again.ranges.upper, held_out.ranges.upper)


def test_of_many_users_some_are_measured_and_their_own_rows_belong_together(large_split, model):
    found = private.prepare(model, large_split, seed=1, most=7)
    assert found.private.users.scores.shape == found.paper.users.scores.shape == (7, 500)
    assert found.public_people.worth.shape[0] == 7
    np.testing.assert_allclose(found.best, found.paper.worth.max(axis=1), rtol=1e-6)
    assert not np.take_along_axis(
        found.private_people.seen, found.private_people.worth.argmax(axis=1)[:, None], 1
    ).any()


def test_public_lists_are_training_users_best_unseen_items(large_split, model, held_out):
    likes = large_split.train.toarray() > 0
    scores = np.where(likes, -np.inf, large_split.train.toarray() @ model.weights)
    best = {tuple(sorted(row)) for row in np.argsort(-scores, axis=1, kind="stable")[:, : private.COUNT].tolist()}
    kept = {tuple(row) for row in held_out.lists.tolist()}
    assert len(kept) == len(held_out.lists)
    assert len(kept & best) > 0.95 * len(best)  # float32 may break near ties otherwise
