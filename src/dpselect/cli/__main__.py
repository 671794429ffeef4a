"""``python -m dpselect.cli``: the command line."""

import sys

from dpselect.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
