"""The citation file and the page of results name what exists."""

import re
import tomllib
from pathlib import Path

import pytest

import dpselect as dps
from experiments.__main__ import EXPERIMENTS

ROOT = Path(__file__).parent.parent
CITATION = (ROOT / "CITATION.cff").read_text("utf-8")
PAGE = (ROOT / "docs" / "results.md").read_text("utf-8")
RESULTS = re.findall(r"^### (Result \d+): .*?\n(.*?)(?=^##)", PAGE, flags=re.MULTILINE | re.DOTALL)


def test_the_citation_file_has_the_package_s_version_license_authors_and_keywords():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert f"\nversion: {dps.__version__}\n" in CITATION
    assert f"\nlicense: {project['license']}\n" in CITATION
    for author in project["authors"]:
        assert f'  - name: "{author["name"]}"\n' in CITATION
    keywords = re.search(r"^keywords:\n((?:  - .*\n)+)", CITATION, flags=re.MULTILINE)[1]
    assert re.findall(r"  - (.*)\n", keywords) == project["keywords"]


def test_the_citation_file_names_the_paper_and_all_its_authors():
    reference = CITATION.partition("references:")[2]
    assert 'title: "Private Selection with Heterogeneous Sensitivities"' in reference
    assert re.findall(r"family-names: (\w+)", reference) == ["Antonova", "Laro", "McMillan", "Wolf"]


def test_results_are_numbered_in_order():
    assert [name for name, _ in RESULTS] == [f"Result {number}" for number in range(1, len(RESULTS) + 1)]
    assert len(RESULTS) == PAGE.count("### Result")


@pytest.mark.parametrize(("name", "text"), RESULTS, ids=[name for name, _ in RESULTS])
def test_a_result_says_what_it_is_and_where_its_proof_code_and_figure_are(name, text):
    kinds = re.findall(r"\*\*(Theorem|Computed)\.\*\*", text)
    assert kinds, name
    if "Theorem" in kinds:
        assert re.search(r"Proof: \[theory\]\(theory/[\w-]+\.md", text)
    assert re.search(r"Code:\s+`(src|experiments|tests)/", text)
    figures = re.findall(r"Figure:\s+`([\w-]+)`", text)
    assert figures or "Numbers: [benchmarks]" in text
    assert set(figures) <= {experiment.name for experiment in EXPERIMENTS}
