"""Run a notebook without Jupyter: ``python -m experiments.notebooks docs/tutorial.ipynb`` renews its output.

Cells run from top to bottom in one namespace. As in Jupyter, a cell's output is what it prints, its open Matplotlib
figures, and the value of its last expression unless a semicolon follows.
"""

import argparse
import ast
import base64
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

__all__ = ["code_cells", "main", "read", "run", "write"]

Cell = dict[str, Any]
Output = dict[str, Any]


def read(path: Path) -> dict[str, Any]:
    """Return a notebook."""
    notebook: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return notebook


def write(path: Path, notebook: dict[str, Any]) -> None:
    """Write a notebook as Jupyter does."""
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


def code_cells(notebook: dict[str, Any]) -> list[Cell]:
    """Return the cells with code."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run(notebook: dict[str, Any]) -> list[list[Output]]:
    """Run the code of a notebook and return the outputs of each of its cells with code."""
    namespace: dict[str, Any] = {"__name__": "notebook"}
    with mpl.rc_context({**mpl.rcParamsDefault, "backend": "agg"}):
        return [
            _run_cell("".join(cell["source"]), place, namespace)
            for place, cell in enumerate(code_cells(notebook), start=1)
        ]


def _run_cell(source: str, place: int, namespace: dict[str, Any]) -> list[Output]:
    """Run one cell and return its outputs."""
    tree = ast.parse(source)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";"):
        last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {place}", "exec"), namespace)  # noqa: S102 - our own text
        value = None if last is None else eval(compile(last, f"cell {place}", "eval"), namespace)  # noqa: S307
    outputs: list[Output] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())})
    if value is not None:
        outputs.append(
            {"data": _shown(value), "execution_count": place, "metadata": {}, "output_type": "execute_result"}
        )
    outputs += [
        {"data": _picture(plt.figure(number)), "metadata": {}, "output_type": "display_data"}
        for number in plt.get_fignums()
    ]
    plt.close("all")
    return outputs


def _shown(value: object) -> dict[str, Any]:
    """Return a value as text and, if it can be shown so, as HTML."""
    shown = {"text/plain": _lines(repr(value))}
    as_html = getattr(value, "_repr_html_", None)
    return shown if as_html is None else {"text/html": _lines(as_html()), **shown}


def _picture(figure: Any) -> dict[str, Any]:  # noqa: ANN401 - pyplot's figures have no one type
    """Return a figure as a picture."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=110, metadata={"Software": None})
    return {"image/png": base64.b64encode(file.getvalue()).decode("ascii"), "text/plain": ["<Figure>"]}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> int:
    """Run a notebook and store its output in it."""
    parser = argparse.ArgumentParser(prog="python -m experiments.notebooks", description=__doc__)
    parser.add_argument("notebook", type=Path)
    path = parser.parse_args().notebook
    notebook = read(path)
    for place, (cell, outputs) in enumerate(zip(code_cells(notebook), run(notebook), strict=True), start=1):
        cell.update(execution_count=place, outputs=outputs)
    write(path, notebook)
    print(f"Ran {len(code_cells(notebook))} cells of {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
