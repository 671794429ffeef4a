"""The section on tuning, from its table alone."""

import pytest

from experiments import tables
from experiments.drawing import look
from experiments.experiment import FAST, FULL
from experiments.scenarios import SCENARIOS
from experiments.trials import epsilon_grid
from experiments.tuning import TUNING
from experiments.tuning.fleets import MOVIELENS
from experiments.tuning.measuring import WITHIN
from experiments.tuning.section import KEPT


def test_the_kept_results_on_movielens_cover_the_grid_and_hold_the_claim():
    kept = tables.read(KEPT)
    assert kept["epsilon"].to_numpy() == pytest.approx(epsilon_grid(FULL))
    assert set(kept["fleet"].to_pylist()) == {MOVIELENS}
    assert (kept["tuned_error"].to_numpy() <= WITHIN * kept["paper_error"].to_numpy()).all()


def test_the_section_is_drawn_and_told_from_its_table_alone(monkeypatch):
    monkeypatch.delenv("DPSELECT_DATA", raising=False)
    plan = TUNING.plan(FAST)
    assert len(plan) == len(SCENARIOS) + 1
    parts = [task.compute() for task in (plan[2], plan[-1])]  # scenario 3 and what was kept
    data = {"errors": tables.pa.concat_tables([part.cast(parts[1].schema) for part in parts])}
    with look():
        figure = TUNING.draw(data)
    (panel,) = figure.axes
    assert [label.get_text() for label in panel.get_yticklabels()] == [SCENARIOS[3]().title, MOVIELENS]
    (image,) = panel.images
    assert image.get_array().size == len(panel.texts)  # a text in every cell
    assert panel.get_xticklabels()[-1].get_text() == "10"
    kept = {round(row["epsilon"], 9): row for row in parts[1].to_pylist()}
    assert panel.texts[-1].get_text().startswith(f"{kept[10.0]['tuned_error'] / kept[10.0]['paper_error']:.2f}\n")
    assert TUNING.caption.format_map(TUNING.numbers(data))
    (listing,) = TUNING.listings(data)
    assert [row[0] for row in listing.rows] == [SCENARIOS[3]().title, MOVIELENS]
    assert all(len(row) == len(listing.columns) for row in listing.rows)
    assert listing.rows[1][2] == "25 of 25 ε"
