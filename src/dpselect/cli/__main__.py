"""The command line as a process of its own: ``dpselect``, or ``python -m dpselect.cli``."""

import sys

from dpselect.cli import main

if __name__ == "__main__":
    sys.exit(main())
