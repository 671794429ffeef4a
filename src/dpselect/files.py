"""Atomic file writes: a file is written under a temporary name and renamed when it is complete."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import IO


@contextmanager
def write_atomically(path: Path, *, private: bool = False) -> Iterator[IO[bytes]]:
    """Yield a file to write to. It gets its name when it is complete and on disk.

    Until then only its owner can read it; if ``private``, nobody else ever can. If anything goes wrong, the file
    under the final name does not change and nothing is left behind. What a killed process has left is removed by
    the next one that writes the same file.
    """
    _remove_leftovers(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if not private:
            os.umask(mask := os.umask(0o077))  # it can only be read by setting it
            temporary.chmod(0o666 & ~mask)
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    sync_directory(path.parent)


def create_once(path: Path, content: bytes) -> None:
    """Create a file that only its owner can read, complete and on disk, unless a file of that name exists.

    If several processes do so at once, the first one's file is kept. Read the file to get the content that was
    kept.
    """
    complete = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:  # an interrupt at any moment leaves nothing
        with write_atomically(complete, private=True) as file:
            file.write(content)
        with suppress(FileExistsError):
            os.link(complete, path)
    finally:
        complete.unlink(missing_ok=True)
    sync_directory(path.parent)


def _remove_leftovers(path: Path) -> None:
    """Remove temporary files of processes that no longer run."""
    if os.name != "posix":  # elsewhere one cannot ask
        return
    for found in path.parent.glob(f".{escape(path.name)}.*-*.part"):
        process = found.name.removeprefix(f".{path.name}.").partition("-")[0]
        try:
            os.kill(int(process), 0)
        except ProcessLookupError:
            found.unlink(missing_ok=True)
        except (ValueError, OverflowError, PermissionError):  # another name, or another user's process
            continue


def sync_directory(path: Path) -> None:
    """Make renamed files in a directory survive a power failure."""
    if os.name == "posix":
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
