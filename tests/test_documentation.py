"""Code in the documents must run, and links must lead somewhere."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import dpselect as dps

ROOT = Path(__file__).parent.parent
PAGES = sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md"))
CODE = re.compile(r"```python\n(.*?)```", flags=re.DOTALL)
WITH_CODE = [page for page in PAGES if page.name != "ARCHITECTURE.md" and CODE.search(page.read_text("utf-8"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def name_of(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_the_code_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "page"}
    for block in CODE.findall(page.read_text("utf-8")):
        exec(compile(block, name_of(page), "exec"), namespace)  # noqa: S102 - our own text


def test_the_readme_is_short_and_asks_first_whose_data_is_in_a_row(capsys):
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= 90
    for page in (text, (ROOT / "docs/index.md").read_text("utf-8")):
        assert page.index("whose data is in a row of scores?") < page.index("```")
        assert page.index("dps.TopShare(") < page.index("dps.HeterogeneousNoisyMax(")
    namespace = {}
    for block in CODE.findall(text):
        exec(compile(block, "README.md", "exec"), namespace)  # noqa: S102 - our own text
    assert list(namespace["picks"].columns) == ["user", "candidate"]
    assert namespace["pick"] in namespace["takings"]
    assert "many people's" in capsys.readouterr().out


def test_the_numbers_of_the_guides_first_table_are_true():
    lines = (ROOT / "docs/guide/choosing-a-mechanism.md").read_text("utf-8").splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("| mean squared error at ε = "))
    epsilons = [float(number) for number in re.findall(r"ε = (\d+)", lines[start])]
    scores = np.repeat([1.0, -1.0], 50)
    layouts = [np.repeat(widths, 25) for widths in ([1.8, 1.8, 1, 1], [1, 1, 1.8, 1.8], [1.8, 1, 1.8, 1])]
    for place, name in enumerate(["heterogeneous-rnm", "rnm", "gem", "mgem", "uniform"], start=start + 2):
        errors = [
            [
                f"{dps.expected_error(dps.MECHANISMS[name](epsilon=epsilon), scores, widths):.3f}"
                for epsilon in epsilons
            ]
            for widths in layouts
        ]
        shown = [cell.split(" / ") for cell in lines[place].strip("| ").split(" | ")[1:]]
        assert shown == errors, name


@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
def test_examples_run_and_print_what_they_picked(example, capsys):
    runpy.run_path(str(example), run_name="__main__")
    assert "ε = " in capsys.readouterr().out


def test_there_are_examples():
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_between_documents_lead_somewhere(page):
    prose = re.sub(r"```.*?```|`[^`]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)\)", prose):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_tests_and_modules_that_a_document_names_exist(page):
    for name in re.findall(r"`((?:tests|experiments|examples|src)/[\w/]+\.py)`", page.read_text("utf-8")):
        assert (ROOT / name).exists(), name


def test_every_page_of_the_documentation_is_in_its_contents():
    contents = (ROOT / "mkdocs.yml").read_text("utf-8")
    decisions = (ROOT / "docs/decisions/index.md").read_text("utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").as_posix()
        assert name in contents or (page.parent.name == "decisions" and page.name in decisions), name


def test_the_architecture_names_every_layer():
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    layers = text.split("```")[5]
    for module in (ROOT / "src/dpselect").iterdir():
        if not module.name.startswith("_") and module.suffix in {"", ".py"}:
            assert re.search(rf"\b{module.stem}\b", layers), module.name
