"""``python -m dpselect``: the command line."""

import sys

from dpselect.cli import main

if __name__ == "__main__":
    sys.exit(main())
