"""How quickly the explorer answers, in Chromium: ``python -m benchmarks.explorer``.

First the time from the start of ``dpselect explore`` to the first drawn page, without the start of the browser.
Then, for 100 candidates and each slider, the time from moving it to the drawn answer. The machine should be idle.
"""

import shutil
import statistics
import subprocess
import sys
import time

from playwright.sync_api import Browser, Page, sync_playwright

PATIENCE = 120_000
"""In milliseconds."""

SETTINGS = {
    "epsilon": "mechanism=heterogeneous-rnm&other=gem",
    "tilt": "mechanism=tilted-gem&other=tilted-rnm",
    "drop": "mechanism=kept-rnm&other=gem",
    "beta": "mechanism=gem&other=combined-gem",
    "gamma": "mechanism=rs&other=rs-improved",
}
"""Two mechanisms that each slider changes."""


def main() -> None:
    """Print a table of times."""
    command = [sys.executable, "-m", "dpselect", "explore", "--no-browser"]
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"]) as browser,
    ):
        start = time.perf_counter()
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None  # noqa: S101
            address = server.stdout.readline().split()[1]
            _open(browser, address)
            print(f"first page: {time.perf_counter() - start:.2f} s (at most 2 s)")
            for slider, mechanisms in SETTINGS.items():
                times = _move(_open(browser, f"{address}#scenario=5&{mechanisms}"), slider)
                print(f"{slider}: median {statistics.median(times):.0f} ms, slowest {max(times):.0f} ms (≤ 100 ms)")
        finally:
            server.terminate()


def _open(browser: Browser, address: str) -> Page:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(address)
    page.wait_for_selector("body[data-settled]", timeout=PATIENCE)
    return page


def _move(page: Page, slider: str) -> list[float]:
    """Return the milliseconds from each move of a slider to its drawn answer."""
    times = []
    for _ in range(15):
        page.evaluate("() => performance.clearMeasures()")
        page.locator(f"#{slider}").press("ArrowLeft")
        page.wait_for_selector("body[data-settled]", timeout=PATIENCE)
        times.append(page.evaluate("() => performance.getEntriesByName('drawn')[0].duration"))
    return times


if __name__ == "__main__":
    main()
