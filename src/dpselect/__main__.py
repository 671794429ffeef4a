"""``python -m dpselect``: the command line."""

import sys

from dpselect.cli.__main__ import run

if __name__ == "__main__":
    sys.exit(run())
