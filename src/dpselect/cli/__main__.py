"""The command line as ``python -m dpselect.cli``."""

import sys

from dpselect.cli import main

sys.exit(main())
