"""The kept layouts, and the search that found them."""

import pytest

from experiments.synthetic.layout_search import LAYOUTS, correlations, file, search
from experiments.tables import read


@pytest.mark.parametrize("name", LAYOUTS)
def test_kept_layouts_match_the_printed_correlations(name):
    table = read(file(name))
    scores, sensitivities = table["score"].to_numpy(), table["sensitivity"].to_numpy()
    found = correlations(scores, sensitivities)
    for measure, printed in LAYOUTS[name].printed.items():
        assert found[measure] == pytest.approx(printed, abs=0.02), measure
    assert scores.size == 100


def test_eighteen_candidates_lie_on_one_point_on_the_left():
    table = read(file("layout-left")).to_pylist()
    assert sum(row == {"score": 1.0, "sensitivity": 0.1} for row in table) == 18


def test_the_search_finds_the_layouts_that_are_kept():
    for name, layout in LAYOUTS.items():
        scores, sensitivities = search(layout)
        assert scores.tolist() == read(file(name))["score"].to_pylist()
        assert sensitivities.tolist() == read(file(name))["sensitivity"].to_pylist()
