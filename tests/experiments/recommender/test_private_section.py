"""The sections that are private from end to end, read from made-up tables."""

import numpy as np
import pyarrow as pa
import pytest

from experiments.drawing import look
from experiments.ledger import Verdict
from experiments.mechanisms import PAPER
from experiments.recommender import private_section, sections

RUNS = ("Small", "Large")
FOUND = {"uniform": 0.4, "gem": 0.2, "rnm": 0.3, "heterogeneous-rnm": 0.25, "top-share": 0.1}
FURTHER = {"top-share-taught": 0.08, "top-share-fitted": 0.05, "top-share-popular": 0.04, "best-public": 0.3}


@pytest.fixture
def data():
    errors = dict.fromkeys(PAPER, 0.35) | FOUND | FURTHER
    picks = [
        {
            "run": run,
            "protocol": protocol,
            "mechanism": name,
            "epsilon": epsilon,
            "mean_squared_error": error,
            "standard_error": 0.001,
            "seen_share": 0.1,
            "users": 7,
        }
        for run in RUNS
        for protocol in ("paper", "private")
        for name, error in errors.items()
        if protocol == "private" or name not in FURTHER
        for epsilon in (1.0, 4.0, 8.0)
    ]
    dominated = [
        {
            "run": run,
            "mechanism": name,
            "epsilon": 4.0,
            "mean_squared_error": 0.3,
            "dominating": 0.2,
            "within": 1.0,
            "largest_ratio": 0.9,
        }
        for run in RUNS
        for name in ("rnm", "gem")
    ]
    lists = [
        {
            "run": run,
            "mechanism": name,
            "epsilon": epsilon,
            "score": score,
            "score_error": 0.01,
            "users": 7,
            "setting": "of 12",
        }
        for run in RUNS
        for name, score in zip((*private_section.LIST_STYLES, "opendp-shortlist", "random"), SCORES, strict=True)
        for epsilon in (1.0, 4.0, 30.0)
    ]
    names = ("private", "dominated", "private_lists")
    return {name: pa.Table.from_pylist(rows) for name, rows in zip(names, (picks, dominated, lists), strict=True)}


SCORES = (0.5, 0.45, 0.35, 0.15, 0.33, 0.34, 0.14)


def test_the_best_of_the_paper_s_mechanisms_is_the_least_error_at_each_epsilon(data):
    small = data["private"].filter(np.array(data["private"]["run"].to_pylist()) == "Small")
    epsilons, values = private_section.over_random(small, private_section.BEST)
    np.testing.assert_array_equal(epsilons, [1.0, 4.0, 8.0])
    np.testing.assert_allclose(values, 0.5)
    np.testing.assert_allclose(private_section.over_random(small, "top-share-fitted")[1], 0.125)


def test_captions_state_the_numbers_of_the_tables(data):
    said = sections.END_TO_END.caption.format_map(private_section.pick_numbers(data))
    assert "At ε = 4 on Small a random pick’s error is 0.4" in said
    assert "mechanisms 0.2, of the default 0.25, and of top share 0.1 by its rule, 0.08 taught" in said
    assert "4.0 times on Small, 4.0 times on Large" in said
    said = sections.END_TO_END_LISTS.caption.format_map(private_section.list_numbers(data))
    assert "lists has 0.50 of it" in said
    assert "have 0.35, and OpenDP’s ten picks from 500 items 0.15" in said
    assert "best public list has 0.33" in said


def test_figures_have_a_panel_for_each_dataset_and_at_most_five_curves(data):
    with look():
        for draw in (private_section.draw_picks, private_section.draw_lists):
            figure = draw(data)
            assert [panel.get_title() for panel in figure.axes] == list(RUNS)
            assert all(len(panel.lines) <= 6 for panel in figure.axes)  # five curves and a level


def test_tables_have_a_column_for_each_dataset(data):
    errors, protocols, dominated = private_section.pick_listings(data)
    assert errors.columns == protocols.columns == dominated.columns == ["", *RUNS]
    assert ["top share, fitted on public users", *["0.05 / 0.05 / 0.05"] * 2] in errors.rows
    assert dominated.rows[0][1] == "0.3 → 0.2 (at most 0.90)"
    scores, choices = private_section.list_listings(data)
    assert scores.rows[0] == ["top share among public lists", *["0.50 / 0.50 / 0.50"] * 2]
    assert len(choices.rows) == 9


def test_new_findings_are_rows_of_their_own(data):
    claims = (*private_section.CLAIMS, *private_section.LIST_CLAIMS)
    assert [claim.id for claim in claims] == ["N1", "N2", "N3"]
    found = [claim.check(data) for claim in claims]
    assert {finding.verdict for finding in found} == {Verdict.NEW}
    assert "fitted 0.05, 0.05, 0.05" in found[0].measured
    assert "is better than fitted weights" not in found[0].comment
    assert "no user’s error is more than 0.900 times" in found[1].measured
    assert "top share among public lists 0.50, 0.50, 0.50" in found[2].measured
