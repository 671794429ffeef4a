"""Keys of releases, apart from the ledger: one file each, readable by its owner only."""

import hashlib
import os
import secrets
from pathlib import Path

from dpselect.files import write_atomically

__all__ = ["KeyStore"]

KEY_BYTES = 32


class KeyStore:
    """A directory of keys, named by identifiers that say nothing about them.

    The ledger holds identifiers only: who can read it learns what was released, not how to undo the noise. A key
    that is lost cannot be replaced: another one would make the same release a second, independently noised one.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def new(self) -> str:
        """Store a fresh key, safely on the disk, and return its identifier."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        identifier = secrets.token_hex(16)
        key = secrets.token_bytes(KEY_BYTES)
        with write_atomically(self._path(identifier)) as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(f"{key.hex()} {_checksum(key)}\n".encode("ascii"))
        return identifier

    def get(self, identifier: str) -> bytes:
        """Return a key.

        Raises:
            ValueError: If it is lost, damaged, or readable by others.
        """
        path = self._path(identifier)
        try:
            others = path.stat().st_mode & 0o077
        except FileNotFoundError:
            raise ValueError(
                f"the key {identifier} is not in {self._directory.name!r}: without it the release cannot be "
                "computed again; restore it, or charge a new release"
            ) from None
        if os.name == "posix" and others:
            raise ValueError(f"the key {identifier} must be readable by its owner only: chmod 600")
        digits, _, checksum = path.read_text("ascii", errors="replace").strip().partition(" ")
        try:
            key = bytes.fromhex(digits)
        except ValueError:
            key = b""
        if len(key) != KEY_BYTES or checksum != _checksum(key):
            raise ValueError(f"the key {identifier} in {self._directory.name!r} is damaged: restore it from a copy")
        return key

    def forget(self, identifier: str) -> None:
        """Delete a key that no release uses."""
        self._path(identifier).unlink(missing_ok=True)

    def _path(self, identifier: str) -> Path:
        return self._directory / f"{identifier}.key"


def _checksum(key: bytes) -> str:
    return hashlib.blake2b(key, digest_size=8, person=b"dpselect key").hexdigest()
