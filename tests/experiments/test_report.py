from html.parser import HTMLParser
from pathlib import Path

import pytest
from jinja2 import Template

from experiments import report, tables
from experiments.__main__ import main
from experiments.experiment import FAST
from experiments.files import replacing
from experiments.scenarios import SCENARIOS_1_TO_3

FILES = {
    "report.html",
    "figures/scenarios-1-to-3.pdf",
    "figures/scenarios-1-to-3.png",
    "figures/scenarios-1-to-3.svg",
    "tables/scenarios-1-to-3-candidates.csv",
    "tables/scenarios-1-to-3-errors.csv",
}


def files_in(directory):
    return {path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    directory = tmp_path_factory.mktemp("run") / "output"
    assert main(["--fast", "--output", str(directory)]) == 0
    return directory


@pytest.fixture(scope="module")
def page(output):
    return (output / "report.html").read_text(encoding="utf-8")


class References(HTMLParser):
    """Collects what a page would load or link to, and the places that links can go to."""

    def __init__(self, page):
        super().__init__()
        self.addresses, self.places = [], set()
        self.feed(page)

    def handle_starttag(self, tag, attrs):  # noqa: ARG002 - the name is HTMLParser’s
        for name, value in attrs:
            if name in {"action", "data", "href", "poster", "src", "srcset", "xlink:href"}:
                self.addresses.append(value)
            if name == "id":
                assert value not in self.places
                self.places.add(value)


def test_a_fast_run_writes_report_figures_and_tables_and_leaves_nothing_else(output):
    assert files_in(output) == FILES


def test_the_report_refers_to_nothing_outside_itself(page):
    references = References(page)
    assert any(address.startswith("data:image/svg+xml") for address in references.addresses)
    for address in references.addresses:
        assert address.startswith("data:") or address[1:] in references.places, address
    assert "url(" not in page
    assert "@import" not in page
    assert "<script" not in page


def test_nothing_in_the_output_names_a_directory_of_this_machine(output):
    names = {str(output.parent), str(Path.home()), str(Path(__file__).resolve().parents[2])} - {"/"}
    for file in FILES:
        content = (output / file).read_bytes()
        assert not [name for name in names if name.encode() in content]


def test_the_report_shows_the_numbers_and_where_they_come_from(page):
    for text in ("1.453", "0.881", "3.447", "0.291", "RNMH (not private)", "Provenance", FAST.description):
        assert text in page


def test_tables_hold_every_computed_number_to_the_last_digit(output):
    task = next(task for task in SCENARIOS_1_TO_3.plan(FAST) if task.table == "errors")
    computed = task.compute()
    written = tables.read(output / "tables" / "scenarios-1-to-3-errors.csv").slice(0, computed.num_rows)
    assert written.to_pylist() == computed.to_pylist()


def test_figures_are_the_same_bytes_when_drawn_again(output, tmp_path):
    assert main(["--fast", "--output", str(tmp_path)]) == 0
    for file in FILES - {"report.html"}:
        assert (tmp_path / file).read_bytes() == (output / file).read_bytes(), file


def test_pictures_for_the_documentation_are_copies_of_figures(tmp_path):
    assert main(["--fast", "--output", str(tmp_path / "out"), "--pictures", str(tmp_path / "images")]) == 0
    assert files_in(tmp_path / "images") == {"scenarios.png"}


def test_a_report_that_fails_to_render_leaves_the_old_one_and_no_half_one(monkeypatch, tmp_path):
    def fail(*_arguments, **_names):
        raise RuntimeError("rendering failed")

    path = tmp_path / "report.html"
    path.write_text("old", encoding="utf-8")
    monkeypatch.setattr(Template, "render", fail)
    with pytest.raises(RuntimeError, match="rendering failed"):
        report.write(path, [], {})
    assert files_in(tmp_path) == {"report.html"}
    assert path.read_text(encoding="utf-8") == "old"


def test_an_interrupted_write_leaves_the_old_file_and_no_half_one(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old", encoding="utf-8")

    def write_half():
        with replacing(path) as temporary:
            temporary.write_text("ha", encoding="utf-8")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert files_in(tmp_path) == {"table.csv"}
    assert path.read_text(encoding="utf-8") == "old"


def test_markup_in_a_value_is_shown_and_not_obeyed(tmp_path):
    report.write(tmp_path / "report.html", [], {"commit": "<script>alert(1)</script>"})
    assert "<script" not in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_without_a_git_checkout_the_report_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(report, "HERE", tmp_path / "experiments")
    assert report.provenance(FAST, 1.0)["commit"] == "unknown (not a git checkout)"
