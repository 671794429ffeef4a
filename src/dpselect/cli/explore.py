"""``dpselect explore``: the explorer's page."""

import argparse

from dpselect.explorer import open_page


def run(options: argparse.Namespace) -> None:
    """Serve the page until interrupted."""
    open_page(port=options.port, browser=not options.no_browser)
