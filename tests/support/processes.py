"""Programs that charge a ledger from many processes, and a folder where that is fast."""

import contextlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).parent


def run_program(name, *arguments):
    """Run one of the programs in this folder, and return what it prints."""
    command = [sys.executable, "-W", "error", str(TESTS / name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@contextlib.contextmanager
def folder_in_memory():
    """Yield a folder in memory if there is one, because every charge forces its files to disk."""
    memory = Path("/dev/shm")  # noqa: S108 - only if it is there
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)
