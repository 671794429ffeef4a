"""``dpselect explore``: the explorer's page."""

import argparse
import sys

from dpselect.explorer import open_page

__all__ = ["run"]


def run(options: argparse.Namespace) -> None:
    """Serve the page until interrupted."""
    if options.host != "127.0.0.1":
        print(
            "dpselect: anyone who can reach this machine can open the page, which shows scores in the clear",
            file=sys.stderr,
        )
    open_page(host=options.host, port=options.port, browser=not options.no_browser)
