"""The documentation site: what is typeset, what the reference lists, and what the search finds."""

import html
import importlib
import importlib.metadata
import inspect
import json
import re
from pathlib import Path

import pytest

import dpselect as dps
from experiments import front_page
from mkdocs_formulas import latex, mathml

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
pytestmark = pytest.mark.xdist_group("site")  # so that one process builds it
MODULES = (
    "accounting",
    "advice",
    "auditing",
    "budget",
    "correlation",
    "evaluation",
    "lists",
    "pools",
    "release",
    "table_selection",
    "tuning",
    "unsafe",
)
RAW_FORMULA = re.compile(
    r"[A-Za-zΑ-ω]'?_[A-Za-z{*0-9−]\b|\w\^|[Α-ω][²³⁴⁵⁶⁷⁸⁹⁰₀-₉]|[∑∏∫√\u0302\u0304]|Pr\[|argmax|\$"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site once, in strict mode."""
    from mkdocs.commands.build import build  # noqa: PLC0415 - only this test needs it
    from mkdocs.config import load_config  # noqa: PLC0415

    folder = tmp_path_factory.mktemp("site")
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True)
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    return folder


def names_of(module):
    """Return the public names of a module: those it lists, or those of the package that it defines."""
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return getattr(module, "__all__", [name for name in own if hasattr(dps, name)])


def text_of(page):
    """Return the text that a reader sees on a page, without formulas and code."""
    article = page.read_text("utf-8").partition("<article")[2].partition("</article")[0]
    article = re.sub(r"<(math|code|pre)\b.*?</\1>", "", article, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]*>", "", article))


@pytest.mark.parametrize(
    ("plain", "expected"),
    [
        ("q_a − tΔ_a", r"q_a − t\Delta_a"),
        ("e^(−εx/(Δ₁ + Δ₂))", r"e^{−εx/(\Delta_1 + \Delta_2)}"),
        ("argmax_a {q_a + Z_a}", r"\operatorname*{argmax}_a \{q_a + Z_a\}"),
        ("max_{b≠a} log(k/β)", r"\max_{b≠a} \log(k/β)"),
        ("√(1 − r²) x̂", r"\sqrt{1 − r^2} \hat{x}"),
        ("2⁻⁴² ½ F̄ ε_tune", r"2^{−42} \tfrac12 \bar{F} ε_{\text{tune}}"),
        ("min_a {c_a + max_{j≠a} {q_j}}", r"\min_a \{c_a + \max_{j≠a} \{q_j\}\}"),
        (r"\frac{a}{b} \text{if } x_{\max} > 0", r"\frac{a}{b} \text{if } x_{\max} > 0"),
    ],
)
def test_formulas_in_plain_text_become_latex_and_latex_stays(plain, expected):
    assert latex(plain) == expected
    assert latex(expected) == expected


def test_a_formula_that_cannot_be_read_fails_the_build():
    with pytest.raises(ValueError, match="cannot typeset"):
        mathml(r"\frac{a}", display=False)


def test_long_formulas_break_before_relations_outside_of_brackets():
    assert mathml("x_1 = (a = b + c + d + e + f + g) ≤ y_1", display=False).count("<wbr>") == 2
    assert "<wbr>" not in mathml("x = y", display=False)


def test_theory_and_reference_show_no_raw_formula(site):
    pages = [*site.glob("theory/*/index.html"), *site.glob("reference/**/index.html"), site / "claims/index.html"]
    assert len(pages) > 25
    for page in pages:
        text = text_of(page).replace("dp_accounting", "")
        raw = RAW_FORMULA.search(text)
        assert raw is None, f"{page.parent.name}: {text[max(0, raw.start() - 60) : raw.end() + 60]!r}"


def test_docstrings_are_typeset_with_their_formulas(site):
    page = (site / "reference/mechanisms/index.html").read_text("utf-8")
    assert page.count("<math") > 40
    assert 'class="formula"' in page


def test_pages_load_nothing_from_elsewhere(site):
    for page in site.rglob("*.html"):
        assert not re.search(r'<(?:script|link|img)[^>]+(?:src|href)="https?://', page.read_text("utf-8")), page


@pytest.mark.parametrize(
    ("word", "page"),
    [
        ("pandas", "guide/data-frames/"),
        ("sensitivity", "guide/sensitivities/"),
        ("neighbouring", "guide/sensitivities/"),
        ("top-k", "guide/top-k/"),
        ("notebook", "tutorial/"),
        ("install", "guide/install/"),
        ("missing values", "guide/data-frames/"),
        ("custom mechanism", "guide/own-mechanism/"),
    ],
)
def test_the_search_finds(site, word, page):
    index = json.loads((site / "search/search_index.json").read_text("utf-8"))
    entries = [entry for entry in index["docs"] if entry["location"].startswith(page)]
    assert any(word in f"{entry['title']} {entry['text']}".lower() for entry in entries)


@pytest.mark.parametrize("module", MODULES)
def test_the_page_of_a_module_documents_its_public_names(site, module):
    page = (site / f"reference/{module}/index.html").read_text("utf-8")
    for name in names_of(importlib.import_module(f"dpselect.{module}")):
        assert re.search(rf'id="dpselect[\w.]*\.{name}"', page), name


def test_every_name_of_the_package_is_in_the_reference(site):
    pages = "".join(page.read_text("utf-8") for page in site.glob("reference/*/index.html"))
    for name in set(dps.__all__) - {"__version__"}:
        assert re.search(rf'id="dpselect\.(?:registry\.)?{name}"', pages), name


@pytest.mark.parametrize("module", MODULES)
def test_public_functions_list_their_arguments(module):
    home = importlib.import_module(f"dpselect.{module}")
    for name in names_of(home):
        function = getattr(home, name)
        if inspect.isfunction(function) and inspect.signature(function).parameters:
            assert "\n    Args:\n" in function.__doc__, name


def test_examples_of_docstrings_are_code(site):
    for page in site.glob("reference/*/index.html"):
        assert ">>>" not in text_of(page), page.parent.name


def test_the_picture_of_the_first_page_is_what_the_code_draws():
    assert front_page.PICTURE.read_text("utf-8") == front_page.draw()


def test_the_first_page_tells_what_its_picture_shows():
    shown = re.findall(r"probability (\d+ %)", front_page.draw())
    assert len(shown) == 2
    assert re.findall(r"\d+ %", (DOCS / "index.md").read_text("utf-8")) == shown


def test_the_comparison_names_the_versions_that_are_installed():
    versions = dict(
        re.findall(r"^\| ([\w ]+) \| ([\d.]+) \| the installed", (DOCS / "comparison.md").read_text(), re.MULTILINE)
    )
    assert set(versions) == {"OpenDP", "diffprivlib", "dp_accounting"}
    for library, version in versions.items():
        try:
            installed = importlib.metadata.version(library.lower())
        except importlib.metadata.PackageNotFoundError:  # diffprivlib has no wheels for the newest Python
            continue
        assert installed == version, f"check docs/comparison.md against {library} {installed}"


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("install", "^# Install"),
        ("own-mechanism", "^A custom mechanism"),
        ("data-frames", "^## Missing values"),
        ("sensitivities", "^# What is a sensitivity"),
    ],
)
def test_what_people_search_for_has_a_page_or_a_heading(page, words):
    assert re.search(words, (ROOT / f"docs/guide/{page}.md").read_text("utf-8"), flags=re.MULTILINE)
