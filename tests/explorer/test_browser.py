"""The page in a real browser: Chromium, without a window.

``DPSELECT_SCREENSHOTS=docs/images`` keeps the pictures that the documentation shows.
"""

import json
import os
import shutil
import threading
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

import dpselect as dps
from dpselect.explorer import serve
from dpselect.explorer.views import RECORDS
from dpselect.registry import MECHANISMS, UNSAFE

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PATIENCE = 120_000
"""The time in milliseconds within which a browser on a busy machine must answer."""

if CHROMIUM is None and os.environ.get("CI"):
    pytest.fail("there is no Chromium, and in CI the browser tests must run", pytrace=False)

pytestmark = [
    pytest.mark.skipif(
        CHROMIUM is None, reason="there is no Chromium on this machine (Debian: apt install chromium)"
    ),
    pytest.mark.xdist_group("browser"),
]


@pytest.fixture(scope="module")
def address():
    with serve() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


class Visit:
    """A page, the errors it reported, and the requests it made."""

    def __init__(self, browser, *, scheme="light", size=(1280, 900)):
        self.context = browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme=scheme,
            accept_downloads=True,
            permissions=["clipboard-read", "clipboard-write"],
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.complaints, self.requests = [], []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self, url):
        self.page.goto(url)
        self.answered(1)
        return self

    def answered(self, times):
        self.page.wait_for_selector(f'body[data-answers="{times}"]')

    def values(self):
        """Return each mechanism's mean squared error as shown."""
        titles = self.page.locator("#probabilities h3")
        return {
            title.evaluate("node => node.firstChild.textContent"): title.locator("output").inner_text()
            for title in titles.all()
        }

    def slide(self, name, place):
        self.page.locator(f"#{name}").fill(str(place))


@pytest.fixture
def visit(browser, address):
    visits = []

    def make(fragment="", **options):
        visits.append(Visit(browser, **options))
        return visits[-1].open(address + fragment)

    yield make
    for one in visits:
        assert one.complaints == []
        assert all(url.startswith((address, "blob:")) for url in one.requests)
        one.context.close()


def significant(value):
    return float(f"{value:.3g}")


def test_the_page_shows_a_scenario_and_answers_to_its_sliders(visit):
    one = visit()
    expect(one.page.locator(".banner").first).to_contain_text("Looking is not private")
    assert one.page.locator("#candidates-chart circle").count() == 100
    assert one.page.locator("#probabilities svg").count() == len(RECORDS)
    unsafe = [f"{record.label} (not private)" for record in UNSAFE.values()]
    expect(one.page.locator("#probabilities h3.warn")).to_contain_text(unsafe)
    before = one.values()
    one.slide("epsilon", 0.5)
    one.answered(2)
    after = one.values()
    scenario = json.loads((Path(dps.__file__).parent / "explorer/page/scenarios.json").read_text("utf-8"))[0]
    for shown, epsilon in ((before, 1.0), (after, 3.16)):
        truth = dps.expected_error(dps.NoisyMax(epsilon=epsilon), scenario["scores"], scenario["sensitivities"])
        assert float(shown["noisy max"]) == significant(truth)
    assert after["random"] == before["random"]


def test_tilt_gamma_and_beta_matter_where_they_should(visit):
    one = visit("#scenario=5")
    before = one.values()
    one.slide("tilt", 4)
    one.answered(2)
    tilted = one.values()
    changed = {name for name in before if before[name] != tilted[name]}
    assert changed == {"tilted noisy max", "standardized noisy max", "tilted GEM"}
    one.slide("gamma", -2)
    one.answered(3)
    stopping = one.values()
    with_gamma = {record.label for record in MECHANISMS.values() if "gamma" in record.parameters}
    with_gamma |= {f"{record.label} (not private)" for record in UNSAFE.values() if "gamma" in record.parameters}
    assert {name for name in tilted if tilted[name] != stopping[name]} == with_gamma
    one.slide("beta", -2)
    one.answered(4)
    assert one.values()["GEM"] != stopping["GEM"]


def test_a_view_is_shared_by_its_address(visit):
    one = visit("#scenario=4&epsilon=2&tilt=3&beta=0.1&gamma=0.2")
    one.page.locator("#worst").click()
    one.answered(2)
    one.page.locator("#link").click()
    expect(one.page.locator("#link-note")).to_contain_text("Copied")
    link = one.page.evaluate("() => navigator.clipboard.readText()")
    other = visit(link.partition("/#")[2] and "#" + link.partition("/#")[2])
    assert other.values() == one.values()
    assert other.page.locator("#losses-chart").inner_text() == one.page.locator("#losses-chart").inner_text()
    assert other.page.locator("#epsilon-value").inner_text() == "2"
    assert other.page.locator("#scenario").input_value() == "4"


def test_a_broken_address_falls_back_and_says_so(visit):
    one = visit("#candidates=nonsense&epsilon=-5&tilt=abc")
    expect(one.page.locator("#scenario")).to_have_value("1")
    expect(one.page.locator("#link-note")).to_contain_text("could not be read")
    assert one.page.locator("#epsilon-value").inner_text() == "1"


def test_candidates_can_be_edited_added_and_removed(visit):
    one = visit("#candidates=" + json.dumps([["a", 0, 1], ["b", 1, 1]]))
    one.page.get_by_label("scores of candidate 2").fill("3")
    one.page.get_by_label("scores of candidate 2").press("Enter")
    one.answered(2)
    one.page.locator("#add").click()
    one.answered(3)
    truth = dps.expected_error(dps.GEM(epsilon=1.0), [0.0, 3.0, 0.0], [1.0, 1.0, 1.0])
    assert float(one.values()["GEM"]) == significant(truth)
    one.page.get_by_label("Remove candidate 1", exact=True).click()
    one.answered(4)
    assert one.page.locator("#candidates-chart circle").count() == 2
    one.page.get_by_label("sensitivities of candidate 1").fill("-1")
    one.page.get_by_label("sensitivities of candidate 1").press("Enter")
    expect(one.page.locator("#problem")).to_contain_text("a number ≥ 0")


def test_a_neighbour_outside_the_box_is_explained_and_one_inside_is_measured(visit):
    one = visit("#candidates=" + json.dumps([["a", 0.5, 1], ["b", 0, 0]]))
    neighbour = one.page.get_by_label("neighbour of candidate 1")
    neighbour.fill("9")
    neighbour.press("Enter")
    expect(one.page.locator("#problem")).to_contain_text("within the sensitivities")
    neighbour.fill("-0.5")
    neighbour.press("Enter")
    expect(one.page.locator("#problem")).to_be_hidden()
    expect(one.page.locator("#losses-chart")).to_contain_text("∞")


def test_an_upload_is_used_and_never_leaves_the_machine(visit, tmp_path):
    table = tmp_path / "candidates.csv"
    table.write_text('Candidate,Score,Sensitivity\r\n"salt, fine",1.5,0.5\r\npepper,2,1\r\n', "utf-8")
    one = visit()
    one.page.locator("#upload").set_input_files(table)
    one.answered(2)
    expect(one.page.get_by_label("name of candidate 1")).to_have_value("salt, fine")
    truth = dps.expected_error(dps.NoisyMax(epsilon=1.0), [1.5, 2.0], [0.5, 1.0])
    assert float(one.values()["noisy max"]) == significant(truth)
    one.page.locator("#link").click()
    expect(one.page.locator("#link-note")).to_contain_text("contains your candidates with their scores")


BAD_FILES = {
    "no-columns": ("a,b,c\n1,2,3\n", "add candidate, score, sensitivity"),
    "no-number": ("candidate,score,sensitivity\na,1,1\nb,secret,1\n", "line 3 has no number in column score"),
    "negative": ("candidate,score,sensitivity\na,1,1\nb,1,-1\n", "line 3 has a negative sensitivity"),
    "one": ("candidate,score,sensitivity\na,1,1\n", "at least two candidates"),
    "many": ("candidate,score,sensitivity\n" + "a,1,1\n" * 401, "more than 400 candidates"),
    "large": ("x" * 300_000, "larger than 256 KiB"),
    "empty": ("", "the first line must name the columns"),
}


def test_bad_uploads_get_a_friendly_sentence(visit, tmp_path):
    one = visit()
    before = one.values()
    for name, (text, sentence) in BAD_FILES.items():
        table = tmp_path / f"{name}.csv"
        table.write_text(text, "utf-8")
        one.page.locator("#upload").set_input_files(table)
        expect(one.page.locator("#problem")).to_contain_text(sentence)
        assert "secret" not in one.page.locator("#problem").inner_text()
    assert one.values() == before


def test_figures_and_code_can_be_saved(visit):
    one = visit("#scenario=2")
    for button, name, word in (
        (one.page.locator("h2:has-text('Error against the privacy budget') .save"), "errors.svg", "<svg"),
        (one.page.locator("#save-code"), "pick.py", "import dpselect as dps"),
    ):
        with one.page.expect_download() as download:
            button.click()
        assert download.value.suggested_filename == name
        assert word in Path(download.value.path()).read_text("utf-8")
    one.page.locator("#mechanism").select_option("gem")
    expect(one.page.locator("#snippet")).to_contain_text("dps.GEM(epsilon=1.0)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("device", "size"), [("desktop", (1280, 900)), ("phone", (390, 844))])
def test_it_fits_every_screen(visit, scheme, device, size, tmp_path):
    one = visit("#scenario=5&epsilon=2", scheme=scheme, size=size)
    assert one.page.evaluate("() => document.documentElement.scrollWidth") <= size[0]
    page_color = one.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    brightness = sum(map(int, page_color.removeprefix("rgb(").removesuffix(")").split(","))) / 3
    assert (brightness > 128) == (scheme == "light")
    folder = Path(os.environ.get("DPSELECT_SCREENSHOTS", tmp_path))
    one.page.screenshot(path=folder / f"explorer-{device}-{scheme}.png")
