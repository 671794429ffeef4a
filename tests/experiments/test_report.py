"""One fast run of all experiments: its files, its page and its verdicts."""

import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from browsers import CHROMIUM, NO_CHROMIUM, chromium, opened
from jinja2 import Template

from experiments import report, tables
from experiments.__main__ import EXPERIMENTS, copy_pictures, main
from experiments.default.scenarios import CORRELATIONS
from experiments.experiment import FAST, FULL
from experiments.ledger import WORDS, Verdict
from experiments.mechanisms import STYLES
from experiments.recommender import results, sections
from experiments.runner import run
from experiments.summary import COUNTERPARTS, PAPER_FIGURES
from experiments.synthetic.bimodal import BIMODAL

# One run, of all figures, is looked at from all sides: by one worker, so that it is one run.
pytestmark = pytest.mark.xdist_group("report")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)
PHONE = (390, 844)


def files_in(directory):
    return {path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    directory = tmp_path_factory.mktemp("run")
    assert main(["--fast", "--output", str(directory / "output"), "--ledger", str(directory / "ledger.md")]) == 0
    return directory


@pytest.fixture(scope="module")
def output(place):
    return place / "output"


@pytest.fixture(scope="module")
def page(output):
    return (output / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


def pixels_of(locator):
    """Return what an element looks like: rows of pixels with red, green and blue."""
    picture = matplotlib.image.imread(io.BytesIO(locator.screenshot()), format="png")
    return np.asarray(picture)[..., :3] * 255


def luminance(pixels):
    """Return the relative luminance of each pixel, as WCAG defines it."""
    shares = pixels / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


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


def test_a_fast_run_writes_the_report_all_figures_and_their_tables_and_nothing_else(output):
    files = {file for file in files_in(output) if not file.startswith("parts/")}
    drawn = {f"figures/{each.name}.{suffix}" for each in EXPERIMENTS for suffix in FAST.formats}
    written = {
        f"tables/{each.name}-{name}.csv"
        for each in EXPERIMENTS
        for name in {task.table for task in each.plan(FAST)}
    }
    assert files == {"report.html", "claims.md", "tables/claims.csv"} | drawn | written


def test_every_figure_is_shown_and_in_the_contents(page):
    for experiment in EXPERIMENTS:
        assert re.search(rf'<(section|figure) id="{experiment.name}">', page)
        assert f'<a href="#{experiment.name}">' in page
    assert page.count("data:image/svg+xml;base64,") == len(EXPERIMENTS)


def test_every_claim_has_a_line_with_numbers_a_verdict_and_its_figure(output, page):
    claims = {claim.id: each.name for each in EXPERIMENTS for claim in each.claims}
    lines = tables.read(output / "tables" / "claims.csv").to_pylist()
    assert {line["id"]: line["figure"] for line in lines} == claims
    for line in lines:
        assert re.search(r"\d", line["measured"]), line["id"]
        assert f'<tr id="claim-{line["id"]}" ' in page
        if line["verdict"] != "holds":
            assert line["comment"], line["id"]
    for verdict in {Verdict(line["verdict"]) for line in lines}:
        count = sum(line["verdict"] == verdict for line in lines)
        assert re.search(rf"> ?{count} ({verdict}|{WORDS[verdict]})</label>", page)


def test_figures_come_in_the_paper_s_order_and_then_ours(page):
    shown = re.findall(r'<section id="([\w-]+)">\n  <h3>', page)
    assert shown[: len(PAPER_FIGURES)] == list(PAPER_FIGURES)
    ours = shown[len(PAPER_FIGURES) :]
    claiming = {each.name for each in EXPERIMENTS if each.claims}
    judged = [name in claiming for name in ours]
    assert judged == sorted(judged, reverse=True)
    assert page.index('id="summary"') < page.index(f'id="{shown[0]}"') < page.index('id="claims"')


def test_the_first_page_has_findings_corrections_and_a_recommendation_with_links(page):
    first = page[page.index('id="summary"') : page.index("<nav")]
    for title in ("What was reproduced", "Findings", "Corrections to the paper", "Recommendation"):
        assert title in first
    sentences = re.findall(r"<li><b>.*?</li>", first)
    assert len(sentences) >= 6  # a fast run leaves out what it cannot judge
    for sentence in sentences:
        assert re.search(r'<a href="#[\w-]+">Figure \d+</a>', sentence)
    assert "mGEM 0.291, RNM 1.45" in first.replace("\u00a0", " ")


def test_the_paper_s_figures_have_a_table_of_counterparts_and_differences(page):
    table = page[page.index("<details>") : page.index("</details>")].replace("\n", " ")
    for number, each in COUNTERPARTS.items():
        assert f'<th scope="row">Figure {number}</th><td>{each.shows}</td><td><a href="#' in table
        assert each.differs in table
    assert "MovieLens-20M and Netflix are missing" in table
    assert "not in this run" not in table


@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_cut_on_a_phone(browser, output, scheme):
    with opened(browser, (output / "report.html").as_uri(), scheme=scheme, size=PHONE) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE[0]
        # What is wider than the window must be in a box that scrolls.
        wide = page.evaluate(
            """width => [...document.querySelectorAll('body *')]
                .filter(node => !node.closest('.scroll') && node.getBoundingClientRect().right > width + 0.5)
                .map(node => node.outerHTML.slice(0, 80))""",
            PHONE[0],
        )
        assert wide == []
        small = page.evaluate(
            "[...document.querySelectorAll('.card img')].filter(i => i.width < 0.99 * i.naturalWidth * 0.75).length"
        )
        assert small == 0  # letters of 10 points are at least 10 pixels high


@needs_chromium
def test_dark_mode_has_dark_figures_and_light_mode_light_ones(browser, output):
    for scheme, is_dark in (("light", False), ("dark", True)):
        with opened(browser, (output / "report.html").as_uri(), scheme=scheme) as page:
            for name in ("scenarios-1-to-3", "two-candidates", "default-everywhere"):
                pixels = pixels_of(page.locator(f"#{name} .card"))
                assert (np.median(pixels) < 64) == is_dark, name
                # The writing is readable: some of it is at the other end.
                assert (np.quantile(pixels, 0.999) > 200) if is_dark else (np.quantile(pixels, 0.001) < 60), name


@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_mechanisms_have_readable_colours_on_both_grounds(browser, output, scheme):
    with opened(browser, (output / "report.html").as_uri(), scheme=scheme) as page:
        swatches = page.locator("#mechanisms .swatch")
        assert swatches.count() == len(STYLES)
        for style, swatch in zip(STYLES.values(), swatches.all(), strict=True):
            lights = luminance(pixels_of(swatch))
            ground = np.median(lights)
            line = lights.max() if scheme == "dark" else lights.min()
            contrast = (max(line, ground) + 0.05) / (min(line, ground) + 0.05)
            # On white, orange and sky blue cannot reach 3; dashes and markers tell them apart as well.
            assert contrast >= (3 if scheme == "dark" else 2), style.label


@needs_chromium
def test_the_ledger_is_filtered_by_verdict_without_a_script(browser, output):
    lines = tables.read(output / "tables" / "claims.csv").to_pylist()
    with opened(browser, (output / "report.html").as_uri()) as page:
        rows = page.locator("#claims tbody tr:visible")
        assert rows.count() == len(lines)
        for verdict in {Verdict(line["verdict"]) for line in lines}:
            page.locator(f"#only-{verdict.name.lower()}").check()
            assert rows.locator("th").all_inner_texts() == [
                line["id"] for line in lines if line["verdict"] == verdict
            ]
        page.locator("#only-fails").check()
        page.evaluate("location.hash = 'claim-T1'")  # a link to a claim shows it, whatever the filter
        assert page.locator("#claim-T1").is_visible()
        page.locator("#only-all").check()
        assert rows.count() == len(lines)


def test_what_is_proved_comes_out_so_even_in_a_fast_run(output):
    lines = {line["id"]: line["verdict"] for line in tables.read(output / "tables" / "claims.csv").to_pylist()}
    for id_ in ("P2", "P3", "P6", "T1", "T2", "T4", "T6", "T7", "S13", "U1"):
        assert lines[id_] == "holds", id_
    for id_ in ("S8", "S9", "S10"):
        assert lines[id_] == "holds on our own example", id_
    assert lines["P5"] == "does not hold"
    assert lines["U2"] == lines["U3"] == "holds in part"


def test_a_fast_run_gives_the_full_run_s_verdicts_or_none(output):
    page = (Path(__file__).resolve().parents[2] / "docs" / "claims.md").read_text(encoding="utf-8")
    full = dict(re.findall(r"^\| (\w\d+) \| .*? \| \*\*([a-z ]+)\*\*", page, flags=re.MULTILINE))
    fast = {line["id"]: line["verdict"] for line in tables.read(output / "tables" / "claims.csv").to_pylist()}
    rough = {claim.id for each in EXPERIMENTS for claim in each.claims if claim.needs_full_run}
    assert fast == full | dict.fromkeys(rough, "needs the full run")


def test_the_readme_says_how_long_the_last_full_run_took():
    root = Path(__file__).resolve().parents[2]
    took = re.search(r"It took ([\d.]+) s(.*)\.", (root / "docs" / "claims.md").read_text(encoding="utf-8"))
    if "earlier runs" in took[2]:
        pytest.skip("the last full run reused kept results")
    said = re.search(r"about (\d+) minutes", (root / "README.md").read_text(encoding="utf-8"))
    assert 0.6 < float(took[1]) / (60 * float(said[1])) < 1.5


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
    for file in files_in(output):
        content = (output / file).read_bytes()
        assert not [name for name in names if name.encode() in content]


def test_the_report_shows_the_numbers_and_where_they_come_from(page):
    for text in (
        "1.453",
        "0.881",
        "3.447",
        "0.291",
        "naive noisy max (not private)",
        "Provenance",
        "seed",
        FAST.description,
    ):
        assert text in page


@pytest.mark.skipif(not results.COMMITTED.is_dir(), reason="no results are kept")
def test_the_report_shows_kept_results_and_judges_the_claims(page):
    for folder in results.COMMITTED.iterdir():
        summary = results.read_summary(folder)
        assert all(summary[name] in page for name in ("title", "data", "model", "recall@20", "peak memory", "date"))
    for claim in sections.REAL.claims:
        assert f'id="claim-{claim.id}"' in page
    assert "not private sensitivities" in page.replace("\n", " ")


def test_tables_hold_every_computed_number_to_the_last_digit(output):
    task = next(task for task in BIMODAL.plan(FAST) if task.table == "errors")
    computed = task.compute()
    written = tables.read(output / "tables" / "scenarios-1-to-3-errors.csv").slice(0, computed.num_rows)
    assert written.to_pylist() == computed.to_pylist()


def test_figures_are_the_same_bytes_when_one_is_run_alone(output, tmp_path):
    assert main(["--fast", "--output", str(tmp_path), "--only", "scenarios-1-to-3"]) == 0
    files = {file for file in files_in(tmp_path) if not file.startswith("parts/")}
    assert "excerpt.html" in files
    assert "report.html" not in files
    for file in files - {"excerpt.html"}:
        assert (tmp_path / file).read_bytes() == (output / file).read_bytes(), file


def test_pictures_for_the_documentation_are_copies_of_figures(tmp_path):
    run([CORRELATIONS], replace(FAST, formats=FULL.formats), tmp_path / "output")
    copy_pictures(tmp_path / "output" / "figures", tmp_path / "images")
    assert files_in(tmp_path / "images") == {"scenarios.png"}
    figure = tmp_path / "output" / "figures" / "default-scenarios.png"
    assert (tmp_path / "images" / "scenarios.png").read_bytes() == figure.read_bytes()


def test_the_ledger_for_the_documentation_has_a_row_for_each_claim(place):
    rows = [
        line for line in (place / "ledger.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")
    ]
    assert len(rows) == 1 + 1 + sum(len(experiment.claims) for experiment in EXPERIMENTS)
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 6 for row in rows)


def test_a_report_that_fails_to_render_leaves_the_old_one_and_no_half_one(monkeypatch, tmp_path):
    def fail(*_arguments, **_names):
        raise RuntimeError("rendering failed")

    path = tmp_path / "report.html"
    path.write_text("old", encoding="utf-8")
    monkeypatch.setattr(Template, "render", fail)
    with pytest.raises(RuntimeError, match="rendering failed"):
        report.write(path, [], [], {})
    assert files_in(tmp_path) == {"report.html"}
    assert path.read_text(encoding="utf-8") == "old"


def test_markup_in_a_value_is_shown_and_not_obeyed(tmp_path):
    report.write(tmp_path / "report.html", [], [], {"commit": "<script>alert(1)</script>"})
    assert "<script" not in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_without_a_git_checkout_the_report_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(report, "HERE", tmp_path / "experiments")
    assert report.provenance(FAST, 1.0, steps=1, reused=0)["commit"] == "unknown (not a git checkout)"
