"""The page in a real browser: Chromium, without a window.

``DPSELECT_SCREENSHOTS=docs/images`` keeps the pictures that the documentation shows.
"""

import json
import os
import re
import shutil
import threading
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

import dpselect as dps
from dpselect.explorer import serve
from dpselect.explorer.server import _file
from dpselect.explorer.views import LONGEST_NAME, MOST_CANDIDATES, PARTS, RECORDS, read_setting, view
from dpselect.registry import UNSAFE

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PATIENCE = 60_000
"""The time in milliseconds within which a browser on a busy machine must answer."""
expect.set_options(timeout=PATIENCE)

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
    everything = {"scores": [2.0, 1.0], "sensitivities": [1.0, 1.0], "chosen": list(RECORDS), "parts": list(PARTS)}
    view(read_setting(everything))  # compiles what the page needs, so that no test waits for that in the browser
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


FILM, CAFE, SCENARIO_1 = json.loads(_file("scenarios.json"))[:3]


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
        self.settle()
        return self

    def settle(self):
        """Wait until everything is drawn."""
        self.page.wait_for_selector("body[data-settled]")

    def find(self, id):  # noqa: A002 - what it is
        return self.page.locator(f"#{id}")

    def values(self):
        """Return each mechanism's chance and error as shown."""
        rows = [row.inner_text() for row in self.page.locator("#mechanisms tr").all()]
        cells = [re.split(r"\s*\t\s*", row) for row in rows]
        return {name: (chance.strip().replace("\u00a0", " "), error.strip()) for name, chance, error in cells}

    def choose(self, mechanism, other="gem"):
        self.find("mechanism").select_option(mechanism)
        self.find("other").select_option(other)
        self.settle()

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def unfold(self):
        for fold in self.page.locator("details > summary").all():
            fold.click()
        expect(self.page.locator("#losses tr")).to_have_count(len(RECORDS))
        self.settle()


@pytest.fixture
def visit(browser, address):
    visits = []

    def make(fragment="", **options):
        visits.append(Visit(browser, **options))
        return visits[-1].open(address + fragment)

    yield make
    for one in visits:
        one.context.close()
    for one in visits:
        assert one.complaints == []
        assert all(url.startswith((address, "blob:")) for url in one.requests)


def own(*rows):
    return "#candidates=" + json.dumps(rows)


# --- The answer -------------------------------------------------------------------------------------------


def chances(example, mechanisms, epsilon):
    """Return the chances of the best in the page's words."""
    found = (
        dps.probability_of_best(mechanism(epsilon), example["scores"], example["sensitivities"])
        for mechanism in mechanisms
    )
    return [f"{100 * chance:.{1 if chance < 0.0995 else 0}f} %" for chance in found]


def test_it_opens_on_one_persons_row_and_compares_top_share_with_the_default_and_a_random_pick(visit):
    one = visit()
    expect(one.find("whose")).to_have_value("one")
    expect(one.find("about")).to_contain_text("one person")
    for key, epsilon in (("", 4), ("ArrowRight", 5)):
        one.find("epsilon").press(key or "Tab")
        top, default = chances(FILM, (dps.TopShare, dps.HeterogeneousNoisyMax), epsilon)
        expect(one.find("answer")).to_have_text(
            f"With these candidates and ε = {epsilon}, top share finds the best candidate {top} of the time; "
            f"heterogeneous noisy max {default}; a random pick 8.3 %."
        )
    expect(one.find("context")).to_contain_text("randomised response")
    expect(one.find("context")).to_contain_text("because it bets all on the best")
    expect(one.find("answer")).to_have_attribute("role", "status")
    expect(one.page.locator(".banner").first).to_contain_text("Looking is not private")
    one.unfold()
    assert "sensitivities" not in one.find("snippet").inner_text()  # top share needs none


def test_whose_data_is_in_a_row_decides_which_mechanisms_are_compared_and_a_bet_is_called_one(visit):
    one = visit("#scenario=cafe")
    expect(one.find("whose")).to_have_value("many")
    default, gem = chances(CAFE, (dps.HeterogeneousNoisyMax, dps.GEM), 1.0)
    expect(one.find("answer")).to_contain_text(
        f"heterogeneous noisy max finds the best candidate {default} of the time; GEM {gem}; a random pick 8.3 %."
    )
    expect(one.find("context")).to_contain_text("because it bets that good candidates have small sensitivities")
    one.find("whose").select_option("one")
    expect(one.find("answer")).to_contain_text("top share finds the best candidate")
    expect(one.find("mechanism")).to_have_value("top-share")
    one.choose("rnm")
    expect(one.find("whose")).to_have_value("many")


def test_several_best_candidates_count_together(visit):
    one = visit("#scenario=1")
    chance = dps.probability_of_best(dps.GEM(epsilon=1.0), SCENARIO_1["scores"], SCENARIO_1["sensitivities"])
    assert one.values()["GEM"][0] == f"{100 * chance:.0f} %"
    expect(one.find("answer")).to_contain_text("finds one of the 50 best candidates")


def test_every_mechanism_is_in_the_table_and_unsafe_ones_are_marked(visit):
    one = visit("#scenario=cafe")
    assert len(one.values()) == len(RECORDS)
    expect(one.page.locator("#mechanisms .warn")).to_have_text([record.label for record in UNSAFE.values()])
    assert all(record.label.count("(not private)") == 1 for record in UNSAFE.values())
    truth = dps.expected_error(dps.NoisyMax(epsilon=1.0), CAFE["scores"], CAFE["sensitivities"])
    assert float(one.values()["noisy max"][1].replace(",", "")) == float(f"{truth:.3g}")


@pytest.mark.parametrize(("epsilon", "tiny"), [(0.01, "less than 0.1\u00a0%"), (100, "almost 0")])
def test_no_number_is_written_with_an_exponent(visit, epsilon, tiny):
    one = visit(f"#scenario=5&epsilon={epsilon}&mechanism=tilted-gem&other=mgem")
    one.unfold()
    code = one.find("snippet").inner_text()
    shown = one.page.locator("body").inner_text().replace(code, "")
    assert tiny in shown
    assert not re.findall(r"\d[eE][+-]?\d+", shown)


def test_each_parameter_is_hidden_until_its_mechanism_is_chosen_and_explained_beside_its_slider(visit):
    one = visit()
    fields = {"tilt": "tilt", "keep": "drop", "beta": "beta", "gamma": "gamma"}
    for parameters, name in {record.parameters: name for name, record in RECORDS.items()}.items():
        one.choose(name, name)
        for field, slider in fields.items():
            expect(one.find(slider)).to_be_visible(visible=field in parameters)
            if field in parameters:
                expect(one.find(slider)).to_have_accessible_description(re.compile(r"\w+ .*\.$"))


def test_a_parameter_changes_the_mechanisms_that_have_it_and_no_others(visit):
    one = visit("#scenario=5&mechanism=tilted-gem&other=rs")
    before = one.values()
    for slider in ("tilt", "beta", "gamma"):
        for _ in range(5):
            one.find(slider).press("ArrowLeft")
        one.settle()
        after = one.values()
        changed = {name for name in before if before[name] != after[name]}
        assert changed == {record.label for record in RECORDS.values() if slider in record.parameters}
        before = after


def test_draws_follow_the_chances(visit):
    one = visit("#candidates=" + json.dumps([["good", 3, 1], ["bad", 0, 1]]))
    one.find("draw-one").click()
    expect(one.find("drawn")).to_contain_text(re.compile("picked “(good|bad)”"))
    one.find("draw-many").click()
    picked = re.search(r"the best (\d+) times? in 1,000", one.find("drawn").inner_text())
    chance = dps.probability_of_best(dps.HeterogeneousNoisyMax(epsilon=1.0), [3.0, 0.0], 1.0)
    assert 0.6 < chance < 0.95
    assert abs(int(picked[1]) - 1000 * chance) < 6 * (1000 * chance * (1 - chance)) ** 0.5
    one.find("epsilon").press("ArrowRight")
    expect(one.find("drawn")).to_contain_text("simulated")  # draws of another setting are gone


# --- Charts -----------------------------------------------------------------------------------------------


def test_charts_have_names_of_candidates_and_of_what_they_show(visit):
    one = visit("#scenario=cafe")
    for name in CAFE["names"][:3]:
        expect(one.find("picks-chart")).to_contain_text(name)
    expect(
        one.page.get_by_role("img", name=re.compile("Chance of each candidate .* Filter coffee 26"))
    ).to_be_visible()
    expect(
        one.page.get_by_role("img", name=re.compile("chance of the best against ε: .* GEM from"))
    ).to_be_visible()


def test_of_many_candidates_all_but_the_best_are_together(visit):
    one = visit("#scenario=5")
    expect(one.find("picks-chart")).to_contain_text("81 others")


def test_a_chart_s_tip_is_readable_in_the_dark_and_stays_on_a_phone_s_screen(visit):
    one = visit("#scenario=1&mechanism=kept-rnm", scheme="dark", size=(390, 844))
    one.find("picks-chart").hover()
    tip = one.page.locator("#picks-chart [aria-label=tip]")
    expect(tip).to_contain_text("heterogeneous")
    card = one.page.locator(".card").first.evaluate("node => getComputedStyle(node).backgroundColor")
    expect(tip).to_have_css("fill", card)
    box = tip.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390


def test_figures_and_code_can_be_saved(visit):
    one = visit("#scenario=2&mechanism=gem")
    one.unfold()
    for button, name, word in (
        (one.page.get_by_role("button", name="Save the chart of errors"), "errors.svg", "<svg"),
        (one.find("save-code"), "pick.py", "dps.GEM(epsilon=1.0)"),
    ):
        with one.page.expect_download() as download:
            button.click()
        assert download.value.suggested_filename == name
        text = Path(download.value.path()).read_text("utf-8")
        assert word in text
        assert "var(" not in text  # a figure has its colours with it


# --- Candidates -------------------------------------------------------------------------------------------

TABLES = {
    "spreadsheet": "salt, fine\t1.5\t0.5\npepper\t2\t1\n",
    "spreadsheet with a header": "name\tscore\tsensitivity\r\nsalt, fine\t1.5\t0.5\r\npepper\t2\t1",
    "CSV": '"salt, fine",1.5,0.5\npepper,2,1',
    "CSV in another order": 'Sensitivity,Score,Candidate\n0.5,1.5,"salt, fine"\n\n1,2,pepper\n',
    "CSV with decimal commas": "salt, fine;1,5;0,5\npepper;2,0;1",
}


def test_a_pasted_table_is_used(visit):
    truth = dps.probability_of_best(dps.NoisyMax(epsilon=1.0), [1.5, 2.0], [0.5, 1.0])
    one = visit("#scenario=cafe")
    one.page.get_by_text("Use your own").click()
    for text in TABLES.values():
        one.find("scenario").select_option("cafe")
        one.find("paste").fill(text)
        one.page.get_by_role("button", name="Use this table").click()
        expect(one.find("reading")).to_have_text("Read 2 candidates from the pasted table.")
        one.settle()
        expect(one.page.get_by_role("gridcell").first).to_have_text("salt, fine")
        assert one.values()["noisy max"][0] == f"{100 * truth:.0f} %"


def test_a_table_of_several_users_asks_which_one(visit):
    one = visit()
    one.page.get_by_text("Use your own").click()
    users = "user,candidate,score\nann,tea,0.9\nbob,tea,0.1\nann,rum,0.2\nbob,rum,0.7\nbob,gin,0.5\neve,gin,1\n"
    one.find("paste").fill(users)
    one.page.get_by_role("button", name="Use this table").click()
    expect(one.find("reading")).to_contain_text("Read 3 users from the pasted table.")
    expect(one.page.locator("#rows tr")).to_have_count(len(FILM["names"]))  # nothing was merged
    which = one.page.get_by_label("Which user?")
    which.select_option("bob")
    expect(one.find("reading")).to_contain_text("Read 3 candidates from the pasted table.")
    expect(one.find("reading")).to_contain_text("one person’s")
    expect(one.page.get_by_role("gridcell")).to_have_text(
        ["tea", "0.1", "0.6", "rum", "0.7", "0.6", "gin", "0.5", "0.6"]
    )
    expect(one.find("whose")).to_have_value("one")
    which.select_option("eve")
    expect(one.find("reading")).to_contain_text("it needs at least 2 candidates")
    one.find("scenario").select_option("cafe")
    expect(which).to_be_hidden()


def test_a_table_can_be_pasted_into_the_grid(visit):
    one = visit()
    one.page.evaluate("text => navigator.clipboard.writeText(text)", "1\t0.5\n2\t1")
    one.page.get_by_role("gridcell").first.click()
    one.press("Control+v")
    expect(one.find("reading")).to_have_text("Read 2 candidates from the pasted table.")
    expect(one.page.get_by_role("gridcell").nth(1)).to_have_text("1")


def test_an_upload_says_what_it_read_and_never_leaves_the_machine(visit, tmp_path):
    table = tmp_path / "spices.csv"
    table.write_text(TABLES["CSV"], "utf-8")
    one = visit()
    one.page.get_by_text("Use your own").click()
    one.find("upload").set_input_files(table)
    expect(one.find("reading")).to_have_text("Read 2 candidates from spices.csv.")
    one.find("link").click()
    expect(one.find("link-note")).to_contain_text("contains your candidates with their scores")


BAD_FILES = {
    "no-columns": ("a,b,c\n1,2,3\n", "name the columns candidate, score and sensitivity"),
    "no-number": ("candidate,score,sensitivity\na,1,1\nb,secret,1\n", "line 3 has no number for the score"),
    "short": ("a,1,1\nb,1\n", "line 2 has no number for the sensitivity"),
    "negative": ("candidate,score,sensitivity\na,1,1\nb,1,-1\n", "line 3 has a negative sensitivity"),
    "one": ("a,1,1\n", "at least 2 candidates"),
    "many": ("a,1,1\n" * 401, "at most 400"),
    "twice": ("a,1,1\nb,2,1\na,3,1\n", "it must name each candidate once"),
    "large": ("x" * 300_000, "larger than 256 KB"),
    "empty": ("", "it is empty"),
}


def test_limits_are_stated_before_an_upload_and_bad_files_get_a_sentence(visit, tmp_path):
    one = visit()
    one.page.get_by_text("Use your own").click()
    for limit in (f"{MOST_CANDIDATES} candidates", "256 KB", f"{LONGEST_NAME} characters"):
        expect(one.find("limits")).to_contain_text(limit)
    before = one.values()
    for name, (text, sentence) in BAD_FILES.items():
        table = tmp_path / f"{name}.csv"
        table.write_text(text, "utf-8")
        one.find("upload").set_input_files(table)
        expect(one.find("reading")).to_contain_text(f"Could not use {name}.csv: ")
        expect(one.find("reading")).to_contain_text(sentence)
        assert "secret" not in one.find("reading").inner_text()
    assert one.values() == before


def test_candidates_are_added_and_removed(visit):
    one = visit(own(["a", 0, 1], ["b", 3, 1]))
    expect(one.find("remove")).to_be_disabled()  # there must be two
    one.find("add").click()
    one.settle()
    truth = dps.expected_error(dps.GEM(epsilon=1.0), [0.0, 3.0, 0.0], 1.0)
    assert float(one.values()["GEM"][1]) == float(f"{truth:.3g}")
    one.page.get_by_role("button", name="Remove “candidate 3”").click()
    expect(one.page.locator("#rows tr")).to_have_count(2)


def test_two_candidates_of_one_name_are_refused(visit):
    one = visit(own(["a", 0, 1], ["candidate 3", 3, 1]))
    one.find("add").click()
    expect(one.page.locator("#rows tr:last-child td").first).to_have_text("candidate 4")
    one.page.get_by_role("gridcell").first.click()
    one.press("F2")
    one.page.keyboard.type("candidate 3")
    one.press("Enter")
    expect(one.find("problem")).to_have_text("The name of a must be a text that no other candidate has.")
    one.press("Escape")
    expect(visit(own(["a", 0, 1], ["a", 3, 1])).find("problem")).to_contain_text("name each candidate once")


def test_the_neighbour_is_edited_where_its_loss_is_shown(visit):
    one = visit(own(["a", 0.5, 1], ["b", 0, 0]))
    expect(one.page.get_by_role("columnheader", name="neighbour")).to_be_hidden()
    one.page.get_by_text("Privacy loss between").click()
    cell = one.page.get_by_role("gridcell").nth(3)
    expect(cell).to_have_text("-0.5")  # the best is lowered by its sensitivity
    expect(one.find("losses")).to_contain_text("∞")
    cell.click()
    one.press("9", "Enter")
    expect(one.find("problem")).to_contain_text("within the sensitivities")


def test_a_mechanism_that_is_not_private_never_looks_safer_than_epsilon(visit):
    one = visit(own(["a", 5, 1], ["b", 0, 1]))  # its loss between these scores is far below ε
    one.page.get_by_text("Privacy loss between").click()
    one.settle()
    unsafe = one.page.locator("#losses tr").filter(has_text="not private")
    expect(unsafe).to_contain_text("can exceed ε")
    expect(unsafe).to_contain_text("or more")
    width, room = unsafe.locator(".bar").evaluate("bar => [bar.offsetWidth, bar.parentElement.clientWidth]")
    assert width > 0.9 * room


# --- Addresses --------------------------------------------------------------------------------------------


def test_a_view_is_shared_by_its_address(visit):
    one = visit("#scenario=4&epsilon=2&tilt=3&beta=0.1&mechanism=tilted-gem&other=rs")
    one.page.get_by_text("Privacy loss between").click()
    one.settle()
    one.find("link").click()
    expect(one.find("link-note")).to_contain_text("Copied")
    link = one.page.evaluate("() => navigator.clipboard.readText()")
    other = visit(link[link.index("#") :])
    for id in ("answer", "mechanisms", "losses"):  # noqa: A001 - what it is
        assert other.find(id).inner_text() == one.find(id).inner_text()
    expect(other.find("scenario")).to_have_value("4")
    expect(other.find("tilt")).to_have_value("3")


def test_a_broken_address_falls_back_and_says_so(visit):
    one = visit("#candidates=nonsense&epsilon=-5&tilt=abc&mechanism=nothing")
    expect(one.find("scenario")).to_have_value("film")
    expect(one.find("mechanism")).to_have_value("top-share")
    expect(one.find("link-note")).to_contain_text("could not be read")
    expect(one.find("epsilon-value")).to_have_text("1")


# --- Keyboards, screen readers, screens -------------------------------------------------------------------


def test_a_hundred_candidates_are_edited_by_the_keyboard_from_one_tab_stop(visit):
    one = visit("#scenario=1")
    stops = []
    one.find("epsilon").focus()
    while (
        stop := one.page.evaluate("() => document.activeElement.tagName + '#' + document.activeElement.id")
    ) != "BODY#":
        stops.append(stop)
        assert len(stops) < 30
        one.press("Tab")
    assert stops.count("TD#") == 1
    one.find("add").focus()
    one.press("Shift+Tab", "ArrowDown", "ArrowRight", "Enter")
    one.page.keyboard.type("7.5")
    one.press("Enter")
    one.settle()
    focused = one.page.locator(":focus")
    expect(one.page.locator("#rows tr:nth-child(2) td:nth-child(2)")).to_have_text("7.5")
    expect(one.page.locator("#rows tr:nth-child(3) td:nth-child(2)")).to_be_focused()
    one.press("F2")
    expect(focused).to_have_accessible_name("score of 3")
    one.page.keyboard.type("99")
    one.press("Escape")
    expect(focused).to_have_text("1")  # as it was
    one.press("Control+End")
    expect(one.page.locator("#rows tr:last-child td:last-child")).to_be_focused()
    one.press("-")  # typing edits
    one.page.keyboard.type("4")
    one.press("Enter")
    expect(one.find("problem")).to_have_text("The sensitivity of 100 must be a number ≥ 0.")
    expect(focused).to_have_attribute("aria-invalid", "true")
    one.press("Escape", "Control+Home")
    expect(one.page.get_by_role("gridcell").first).to_be_focused()


def test_every_control_has_a_name_for_screen_readers(visit):
    one = visit("#mechanism=tilted-gem&other=kept-rnm")
    one.unfold()
    controls = one.page.locator("button, input, select, textarea, [role=grid], [role=img], pre").all()
    assert len(controls) > 15
    for control in controls:
        if control.is_visible():
            expect(control).to_have_accessible_name(re.compile(r"\w+"))
    one.find("epsilon").press("Home")
    expect(one.find("epsilon")).to_have_attribute("aria-valuetext", "0.01")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("device", "size"), [("desktop", (1280, 900)), ("phone", (390, 844))])
def test_it_fits_every_screen(visit, scheme, device, size, tmp_path):
    one = visit(scheme=scheme, size=size)
    page_color = one.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    brightness = sum(map(int, page_color.removeprefix("rgb(").removesuffix(")").split(","))) / 3
    assert (brightness > 128) == (scheme == "light")
    if device == "phone":  # there is one column: the answer comes before the controls
        heights = [one.find(part).bounding_box()["y"] for part in ("answer", "picks-chart", "epsilon")]
        assert heights == sorted(heights)
    folder = Path(os.environ.get("DPSELECT_SCREENSHOTS", tmp_path))
    one.page.screenshot(path=folder / f"explorer-{device}-{scheme}.png")
    one.unfold()
    assert one.page.evaluate("() => document.documentElement.scrollWidth") <= size[0]


def test_the_browser_itself_refuses_to_send_anything_elsewhere(browser, address):
    with browser.new_page() as page:
        page.goto(address)
        refused = page.evaluate(
            """() => new Promise((answer) => {
              document.addEventListener("securitypolicyviolation", (event) => answer(event.effectiveDirective));
              fetch("http://127.0.0.1:9/").catch(() => {});
            })"""
        )
    assert refused == "connect-src"
