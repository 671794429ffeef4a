"""``dpselect compile``: kernels for later use."""

import argparse
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from dpselect.kernels.caches import cache_directory
from dpselect.parallel import processors
from dpselect.precompilation import compile  # noqa: A004 - the command's own name
from dpselect.registry import MECHANISMS


def run(options: argparse.Namespace) -> None:
    """Compile, several mechanisms in as many processes as there are processors; say where the result is kept."""
    if cache_directory() is None:
        raise OSError(
            "compiled kernels cannot be kept: set DPSELECT_CACHE to a directory that only you can write to"
        )
    start = time.monotonic()
    names = [name for name in options.mechanisms or MECHANISMS if name in MECHANISMS]
    if len(names) > 1 and processors() > 1:
        commands = ([sys.executable, "-m", "dpselect", "compile", name] for name in names)
        apart = partial(subprocess.run, stdout=subprocess.DEVNULL, check=False)  # what fails is compiled here
        with ThreadPoolExecutor(processors()) as pool:
            list(pool.map(apart, commands))
    compile(*options.mechanisms)  # loads what the others have compiled
    print(f"compiled for {time.monotonic() - start:.0f} s; kept in {cache_directory()}")
