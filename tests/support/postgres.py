"""A temporary PostgreSQL server, in a temporary folder, for the duration of a block."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

IN_DEBIAN = Path("/usr/lib/postgresql")


def find_programs():
    """Return the folder of PostgreSQL's server programs, installing them if possible."""
    for attempt in ("look", "install"):
        if attempt == "install":
            if os.geteuid() != 0 or shutil.which("apt-get") is None:
                break
            subprocess.run(["apt-get", "install", "-y", "-q", "postgresql"], check=True)  # noqa: S607
        found = shutil.which("initdb")
        folders = [Path(found).parent] if found else []
        folders += sorted(IN_DEBIAN.glob("*/bin"), reverse=True)
        for folder in folders:
            if (folder / "initdb").exists() and (folder / "pg_ctl").exists():
                return folder
    raise RuntimeError("PostgreSQL's server programs (initdb, pg_ctl) are not installed: install `postgresql`")


def run_as(folder):
    """Return the command that runs another as an owner of a folder who is not root: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return []
    shutil.chown(folder, "nobody")
    return ["setpriv", "--reuid=nobody", "--clear-groups"]


@contextlib.contextmanager
def postgres_server():
    """Start a server that listens on a socket in a temporary folder only, and yield its URL."""
    programs = find_programs()
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        account = run_as(folder)

        def run(*command):
            subprocess.run([*account, *map(str, command)], check=True, capture_output=True, cwd=folder)  # noqa: S603

        data = Path(folder) / "data"
        run(programs / "initdb", "-D", data, "-U", "tester", "-A", "trust", "--no-sync")
        run(programs / "pg_ctl", "-D", data, "-w", "-l", f"{folder}/log", "-o", f"-k {folder} -h ''", "start")
        try:
            yield f"postgresql://tester@/postgres?host={folder}"
        finally:
            run(programs / "pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
