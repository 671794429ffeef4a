"""``dpselect compile``: kernels for later use."""

import argparse
import time

from dpselect.kernels.caches import cache_directory
from dpselect.precompilation import compile  # noqa: A004 - the command's own name


def run(options: argparse.Namespace) -> None:
    """Compile, and say where the result is kept."""
    if cache_directory() is None:
        raise OSError(
            "compiled kernels cannot be kept: set DPSELECT_CACHE to a directory that only you can write to"
        )
    start = time.monotonic()
    compile(*options.mechanisms)
    print(f"compiled for {time.monotonic() - start:.0f} s; kept in {cache_directory()}")
