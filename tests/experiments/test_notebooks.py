"""Notebooks run from top to bottom, and the output that is committed is what they give."""

from pathlib import Path

import pytest

from experiments import notebooks

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))


def readable(outputs):
    """Return the text of a cell's outputs, without pictures, whose bytes depend on fonts."""
    return ["".join(output.get("text", output.get("data", {}).get("text/plain", ""))) for output in outputs]


def cells_of(*sources):
    return {"cells": [{"cell_type": "code", "source": source.splitlines(keepends=True)} for source in sources]}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_gives_the_output_that_is_committed(path):
    notebook = notebooks.read(path)
    outputs = notebooks.run(notebook)
    for cell, found in zip(notebooks.code_cells(notebook), outputs, strict=True):
        assert readable(found) == readable(cell["outputs"]), "".join(cell["source"])


def test_the_tutorial_shows_pictures_and_tables():
    notebook = notebooks.read(ROOT / "docs/tutorial.ipynb")
    kinds = [set(output.get("data", ())) for cell in notebooks.code_cells(notebook) for output in cell["outputs"]]
    assert sum("image/png" in kind for kind in kinds) >= 2
    assert sum("text/html" in kind for kind in kinds) >= 4


def test_cells_share_a_namespace_and_show_what_they_print_and_their_last_value():
    outputs = notebooks.run(cells_of("x = 2\nprint('a')", "x + 1", "x + 1;", "None"))
    assert [readable(each) for each in outputs] == [["a\n"], ["3"], [], []]


def test_open_figures_become_pictures_of_their_cell_only():
    drawing = "import matplotlib.pyplot as plt\nfigure, panel = plt.subplots()\npanel.plot([1, 2]);"
    outputs = notebooks.run(cells_of(drawing, "1"))
    assert [[set(output["data"]) for output in each] for each in outputs] == [
        [{"image/png", "text/plain"}],
        [{"text/plain"}],
    ]


def test_running_a_notebook_stores_its_output_in_it(tmp_path, monkeypatch, capsys):
    path = tmp_path / "a.ipynb"
    notebooks.write(path, cells_of("1 + 1"))
    monkeypatch.setattr("sys.argv", ["notebooks", str(path)])
    assert notebooks.main() == 0
    assert "1 cells" in capsys.readouterr().out
    (cell,) = notebooks.code_cells(notebooks.read(path))
    assert readable(cell["outputs"]) == ["2"]
    assert cell["execution_count"] == 1
