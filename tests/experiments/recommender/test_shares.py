"""Top share under the private protocol: fitted, taught, over all items, and beside what it dominates."""

import math

import numpy as np
import pytest

import dpselect as dps
from experiments.recommender import private, shares

EPSILON = 4.0


@pytest.fixture(scope="module")
def rows(held_out):
    return {row["mechanism"]: row for row in shares.share_rows(held_out, EPSILON, seed=3)}


def test_weights_from_public_users_help_private_ones(held_out, rows):
    plain = {
        (row["protocol"], row["mechanism"]): row["mean_squared_error"]
        for row in private.side_rows(held_out, EPSILON, gamma=0.008)
    }
    rule = plain["private", "top-share"]
    assert rows["top-share-fitted"]["mean_squared_error"] < rule < plain["private", "uniform"]
    assert rows["top-share-fitted"]["mean_squared_error"] < rows["best-public"]["mean_squared_error"]
    assert rule < plain["private", "rnm"]


def test_the_error_over_all_items_is_that_of_the_mechanism_on_all_scores(held_out, rows):
    mechanism, weights = shares.popular(held_out, EPSILON)
    chances = mechanism.pmf(held_out.private_people.worth.astype(float), weights=weights)
    expected = (chances * shares.losses(held_out.private_people)).sum(axis=1).mean()
    assert rows["top-share-popular"]["mean_squared_error"] == pytest.approx(expected)


def test_power_and_share_are_the_best_for_calibration_users(held_out):
    mechanism, weights = shares.popular(held_out, EPSILON)
    people = held_out.public_people

    def error(power, share):
        chances = dps.TopShare(EPSILON, share=share).pmf(
            people.worth.astype(float), weights=(held_out.likes + 0.5) ** power
        )
        return (chances * shares.losses(people)).sum(axis=1).mean()

    power = math.log(weights[0] / weights[-1]) / math.log((held_out.likes[0] + 0.5) / (held_out.likes[-1] + 0.5))
    assert round(power, 6) in shares.POWERS
    best = error(power, mechanism.share)
    others = [error(p, share) for p in shares.POWERS for share in shares.SHARES[10::6]]
    assert best <= min(others) * (1 + 1e-6)


def test_no_one_is_taught_by_their_own_half(held_out):
    scores = held_out.private_people.worth[:, held_out.shared].astype(float)
    changed = scores.copy()
    changed[0] = scores[0, ::-1]
    before, after = (shares.taught(each, EPSILON, seed=3) for each in (scores, changed))
    np.testing.assert_array_equal(before[2::2], after[2::2])


@pytest.fixture(scope="module")
def dominated(held_out):
    return shares.dominated_rows(held_out, EPSILON, gamma=0.008, users=6)


def test_every_mechanism_is_dominated_for_every_user(dominated):
    assert {row["mechanism"] for row in dominated} >= {"rnm", "gem", "mgem", "rs", "krr", "heterogeneous-rnm"}
    for row in dominated:
        assert row["within"] == 1.0, row["mechanism"]
        assert row["largest_ratio"] <= 1 + 1e-6, row["mechanism"]
        assert row["dominating"] <= row["mean_squared_error"]


def test_randomised_response_is_its_own_dominating_top_share(dominated):
    (row,) = (row for row in dominated if row["mechanism"] == "krr")
    assert row["share"] == pytest.approx(1 / 500)


@pytest.mark.parametrize("name", sorted(shares.MONOTONE - {"uniform"}))
def test_where_a_higher_score_never_helps_others_no_row_has_a_lower_probability_than_the_corner(name):
    mechanism = private.mechanisms(EPSILON, gamma=0.008)[name]
    random = np.random.default_rng(7)
    lower, upper = np.zeros(5), random.uniform(0.2, 1.0, 5)
    corners = np.where(np.eye(5, dtype=bool), lower, upper)
    least = np.diagonal(mechanism.pmf(corners, upper))
    rows = np.where(random.random((60, 5)) < 0.5, lower, random.uniform(lower, upper, (60, 5)))
    assert (mechanism.pmf(rows, upper) >= least * (1 - 1e-9)).all()
