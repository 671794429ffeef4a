"""Atomic file writes: a file is written under a temporary name and renamed when it is complete."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

__all__ = ["create_once", "sync_directory", "write_atomically"]


@contextmanager
def write_atomically(path: Path, *, durable: bool = True, private: bool = False) -> Iterator[IO[bytes]]:
    """Yield a file to write to. It gets its name when it is complete and, if ``durable``, on disk.

    If anything goes wrong, the file under the final name does not change and nothing is left behind. If
    ``private``, only the owner can read the file, from the first byte on.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        if private:
            temporary.unlink(missing_ok=True)
        with open(temporary, "xb" if private else "wb", opener=_open_private if private else None) as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    if durable:
        sync_directory(path.parent)


def create_once(path: Path, content: bytes) -> None:
    """Create a file that only its owner can read, complete and on disk, unless a file of that name exists.

    If several processes do so at once, the first one's file is kept. Read the file to get the content that was
    kept.
    """
    complete = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    with write_atomically(complete, private=True) as file:
        file.write(content)
    with suppress(FileExistsError):
        os.link(complete, path)
    complete.unlink()
    sync_directory(path.parent)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def sync_directory(path: Path) -> None:
    """Make renamed files in a directory survive a power failure."""
    if os.name == "posix":
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
