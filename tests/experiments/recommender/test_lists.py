"""Private lists: their measures, the rows of the table, and the section that shows them."""

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import dpselect as dps
from experiments.drawing import look
from experiments.experiment import FAST
from experiments.recommender import list_section, lists, live, results, sections


@pytest.fixture(scope="module")
def rows(users):
    midpoints = users.scores.mean(axis=0) * np.ones_like(users.scores)
    return lists.list_rows(users, midpoints, seed=5, epsilons=(2.0, 2000.0), opendp_users=3)


def find(rows, mechanism, epsilon, delta=0.0):
    (row,) = (r for r in rows if (r["mechanism"], r["epsilon"], r["delta"]) == (mechanism, epsilon, delta))
    return row


def test_the_best_list_is_perfect_and_a_list_in_the_wrong_order_is_not():
    scores = np.array([[0.0, 3.0, 1.0, 2.0]])
    best, swapped, worst = (lists.measure(np.array([places]), scores) for places in ([1, 3], [3, 1], [0, 2]))
    assert (best.recall[0], best.ndcg[0], best.score[0], best.best[0]) == (1.0, 1.0, 5.0, 5.0)
    assert (swapped.recall[0], swapped.score[0]) == (1.0, 5.0)
    assert swapped.ndcg[0] == pytest.approx((2 + 3 / np.log2(3)) / (3 + 2 / np.log2(3)))
    assert (worst.recall[0], worst.score[0]) == (0.0, 1.0)


def test_a_tie_with_the_last_of_the_best_counts_as_found():
    found = lists.measure(np.array([[0, 3]]), np.array([[2.0, 1.0, 0.0, 1.0]]))
    assert found.recall[0] == 1.0


def test_drawn_lists_are_on_average_as_good_as_the_exact_law_says():
    scores, widths = np.array([0.1, 0.9, 0.4, 0.7, 0.2]), np.array([0.3, 1.0, 0.5, 0.4, 0.2])
    top = dps.TopK(dps.GEM(epsilon=4.0), count=3)
    many = np.tile(scores, (4000, 1))
    found = lists.measure(top.select(many, widths, randomness=dps.Randomness.seeded(2)), many)
    every = np.array(list(itertools.permutations(range(5), 3)))
    chances = top.probability(every, np.tile(scores, (60, 1)), widths)
    exact = lists.measure(every, np.tile(scores, (60, 1)))
    for name in lists.MEASURES:
        drawn, value = getattr(found, name), chances @ getattr(exact, name)
        assert drawn.mean() == pytest.approx(value, abs=5 * drawn.std() / 4000**0.5)


def test_the_score_of_a_row_is_the_sum_over_users_divided_by_the_best_sum():
    numbers = {"recall": np.array([0.2, 0.4]), "ndcg": np.array([0.5, 0.5])}
    row = lists.Measured(score=np.array([1.0, 3.0]), best=np.array([2.0, 6.0]), **numbers).row()
    assert (row["score"], row["score_error"]) == (0.5, 0.0)
    assert row["recall"] == pytest.approx(0.3)
    assert row["recall_error"] == pytest.approx(0.1)  # √0.02 / √2
    assert row["users"] == 2


def test_every_mechanism_finds_the_best_list_if_the_budget_is_large_and_random_lists_do_not(rows, users):
    for name in ("rnm", "heterogeneous-rnm", "krr", "tuned", "opendp"):
        assert find(rows, name, 2000.0)["recall"] > 0.9
    share = lists.COUNT / users.scores.shape[1]
    assert find(rows, "random", 2000.0)["recall"] == pytest.approx(share, abs=0.1)
    assert find(rows, "rnm", 2.0)["recall"] < 0.6


def test_the_picks_of_a_list_cost_its_total_and_a_delta_is_shown_only_where_it_allows_more(rows):
    for row in rows:
        if row["delta"] > 0:
            assert row["pick_epsilon"] > row["epsilon"] / lists.COUNT
        elif row["mechanism"] not in list_section.REFERENCES:
            spent = {2.0: 0.2, 2000.0: 1.0}[row["epsilon"]] if row["mechanism"] == "tuned" else 0.0
            assert lists.COUNT * row["pick_epsilon"] == pytest.approx(row["epsilon"] - spent)
    loose = find(rows, "rnm", 2.0, lists.DELTA)["pick_epsilon"]
    whole = dps.TopK(dps.NoisyMax(loose, noise="gumbel"), lists.COUNT).total(lists.DELTA)
    assert 1.99 < whole.epsilon <= 2.0
    assert not [row for row in rows if row["mechanism"] == "krr" and row["delta"] > 0]


def test_opendp_s_lists_cost_the_total_by_its_own_account():
    measurement = lists._opendp_top_k(0.3 * lists._opendp_scale(2.0, 0.0), 0.0)
    assert measurement.map(0.3) == pytest.approx(2.0)
    assert lists._opendp_scale(2.0, lists.DELTA) < lists._opendp_scale(2.0, 0.0)


def table(**recalls):
    """Return a table in which each mechanism has one score and recall at ε = 10 and another at ε = 100."""
    return pa.Table.from_pylist(
        [
            {
                "run": run,
                "mechanism": name,
                "epsilon": epsilon,
                "delta": 0.0,
                "pick_epsilon": epsilon / 10,
                **dict.fromkeys(lists.MEASURES, value),
                "users": 7,
                "chosen": "GEM (9%)" if name == "tuned" else "",
            }
            for run in ("Gowalla", live.TITLE)
            for name in list_section.SHOWN
            for epsilon, value in zip((10.0, 100.0), recalls.get(name.replace("-", "_"), (0.1, 0.2)), strict=True)
        ]
    )


def test_the_take_away_follows_the_table():
    found = list_section.take_away(table(krr=(0.0, 0.95), gem=(0.45, 0.3), public=(0.31, 0.31)))
    assert "From a total ε of 100 on" in found
    assert (
        "if kRR makes it: it has 0.95 of their score (recall@10 0.95), but 0.20 by heterogeneous noisy max" in found
    )
    assert "With less, lists are worse: at ε = 10 the best list, by GEM, has 0.45" in found
    assert "public midpoints have 0.31" in found
    assert "Even at a total ε of 100, no list has 90% of the best 10’s score" in list_section.take_away(table())
    close = list_section.take_away(table(krr=(0.0, 0.95), gem=(0.33, 0.3), public=(0.31, 0.31)))
    assert "With less, private scores add little to public ranges: at ε = 10" in close
    assert "From a total ε of 10 on" in list_section.take_away(table(krr=(0.91, 0.95)))


def test_the_take_away_is_about_real_data_if_there_are_some():
    made_up = table(krr=(0.0, 0.95)).to_pylist()
    for row in made_up:
        if row["run"] == live.TITLE:
            row["score"] = 0.0
    assert "From a total ε of 100 on" in list_section.take_away(pa.Table.from_pylist(made_up))


def test_the_figure_has_a_panel_for_each_data_set_and_the_listings_a_column():
    data = {"lists": table()}
    with look():
        figure = list_section.draw(data)
    assert [panel.get_title() for panel in figure.axes] == ["Gowalla", live.TITLE]
    assert all(len(panel.lines) == len(list_section.DRAWN) == 5 for panel in figure.axes)
    numbers, origins = list_section.listings(data)  # without a row at δ > 0 there is nothing to say about it
    assert numbers.columns == ["", "Gowalla", live.TITLE]
    assert len(numbers.rows) == len(list_section.SHOWN)
    assert origins.rows[0][:4] == ["Gowalla", "GEM (9%)", "GEM (9%)", "7"]


def test_the_figure_of_lists_has_six_panels_at_most_and_its_caption_a_number():
    many = pa.concat_tables(
        table(krr=(0.1, 0.9)).filter(pc.field("run") == "Gowalla").set_column(0, "run", pa.array([f"Set {n}"] * 22))
        for n in range(8)
    )
    with look():
        figure = list_section.draw({"lists": many})
    assert [panel.get_title() for panel in figure.axes] == [f"Set {n}" for n in range(6)]
    said = sections.LISTS.caption.format_map(list_section.numbers({"lists": many}))
    assert "At a total ε of 100, so 10 for a pick, kRR’s lists have 0.90 of the best list’s score" in said


def test_without_results_on_real_data_the_synthetic_lists_are_shown(monkeypatch, tmp_path):
    monkeypatch.setattr(results, "COMMITTED", tmp_path)
    monkeypatch.delenv(results.VARIABLE, raising=False)
    assert [(task.table, task.label) for task in sections.LISTS.plan(FAST)] == [("lists", live.TITLE)]


def test_what_a_delta_buys_is_listed(rows):
    named = pa.Table.from_pylist([{"run": "Gowalla", **row} for row in rows])
    (deltas,) = list_section._deltas(named)
    assert [row[0] for row in deltas.rows] == ["2"]
    assert float(deltas.rows[0][2]) == pytest.approx(0.27, abs=0.01)  # TopK.within's own example


def test_committed_lists_are_of_a_thousand_users_at_most_and_say_what_made_them():
    for folder in results.COMMITTED.iterdir():
        found = results.read_tables(folder)["lists"].to_pylist()
        assert {row["epsilon"] for row in found} == set(lists.EPSILONS)
        assert {row["mechanism"] for row in found} == set(list_section.SHOWN)
        assert max(row["users"] for row in found) <= 1000
        assert {"lists_commit", "lists_date", "lists_opendp"} <= set(results.read_summary(folder))


def test_users_may_be_a_sample_of_a_fleet_which_makes_tuning_surer(users):
    alone, fleet = (lists._tuned_row(users, 200.0, 5, copies)["chosen"].partition("(")[2] for copies in (1, 1000))
    assert float(fleet.rstrip("%)")) > float(alone.rstrip("%)"))
