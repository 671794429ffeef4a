"""Chromium without a window, for tests of pages."""

import shutil
from contextlib import contextmanager

from playwright.sync_api import sync_playwright

__all__ = ["CHROMIUM", "NO_CHROMIUM", "chromium", "opened"]

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NO_CHROMIUM = "there is no Chromium on this machine (Debian: apt install chromium)"
PATIENCE = 120_000
"""The time in milliseconds within which a browser on a busy machine must answer."""


@contextmanager
def chromium():
    """Yield a running browser."""
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@contextmanager
def opened(browser, url, *, scheme="light", size=(1280, 900)):
    """Yield a page at this address, in a window of this size."""
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(url)
    yield page
    context.close()
