"""Private lists for the price of one pick: their measure, and what public users choose."""

import numpy as np
import pytest

from experiments.recommender import private_lists
from experiments.recommender.private import COUNT


@pytest.fixture(scope="module")
def rows(held_out):
    found = [row for e in (2.0, 40.0) for row in private_lists.list_rows(held_out, e, seed=3, opendp_users=4)]
    return {(row["mechanism"], row["epsilon"]): row for row in found}


def test_no_list_is_better_than_the_best_ten(rows):
    assert all(row["score"] <= 1 + 1e-6 for row in rows.values())


def test_one_pick_among_public_lists_beats_the_best_public_list_and_grows_with_the_budget(rows):
    small, large, free = (
        rows[key]["score"] for key in (("public-lists", 2.0), ("public-lists", 40.0), ("popular", 2.0))
    )
    assert large > small
    assert large > free > rows["random", 2.0]["score"]


def test_a_large_budget_finds_the_best_public_list(held_out, rows):
    people = held_out.private_people
    values = np.where(people.seen, 0.0, people.worth)
    best = values[:, held_out.lists].sum(axis=2).max(axis=1).sum() / people.best.sum()
    assert rows["public-lists", 40.0]["score"] == pytest.approx(best, abs=0.03)


def test_an_item_that_the_user_has_seen_adds_nothing(held_out):
    people = held_out.private_people
    seen = np.array([np.flatnonzero(row)[:2] for row in people.seen])
    np.testing.assert_array_equal(private_lists._drawn(people, seen), 0.0)


def test_a_random_list_is_worth_ten_times_the_mean_of_the_candidates(held_out, rows):
    people = held_out.private_people
    values = np.where(people.seen, 0.0, people.worth)[:, held_out.shared]
    expected = COUNT * values.mean(axis=1).sum() / people.best.sum()
    assert rows["random", 2.0]["score"] == pytest.approx(expected)


def test_opendp_peels_the_shortlist_that_suits_peeling(rows):
    length = rows["peeling", 40.0]["setting"].rpartition(" ")[2]
    assert rows["opendp-shortlist", 40.0]["setting"] == f"of {length}"
    assert rows["opendp", 40.0]["setting"] == "of 500"
    assert rows["opendp", 40.0]["users"] == 4
