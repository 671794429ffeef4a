"""The keys of releases, stored apart from the ledger: one file each, which only its owner can read."""

import hashlib
import os
import secrets
from pathlib import Path

from dpselect.files import create_once, write_atomically

KEY_BYTES = 32

SECRET = "fingerprints"  # noqa: S105 - the name of a file
"""The name of the one key that belongs to no release."""


class KeyStore:
    """A directory of keys. Their identifiers are random and reveal nothing about them.

    The ledger holds only identifiers. Anyone who can read it learns what was released, but cannot undo the noise.
    A lost key cannot be replaced: with a new key, the same release would be a second one with independent noise.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def new(self, key: bytes | None = None) -> str:
        """Store a key, by default a fresh one, durably on disk, and return its identifier."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        identifier = secrets.token_hex(16)
        with write_atomically(self._path(identifier), private=True) as file:
            file.write(_stored(key or secrets.token_bytes(KEY_BYTES)))
        return identifier

    def make_secret(self) -> None:
        """Create the secret for fingerprints, unless it exists. Of several processes, the first one's is kept."""
        if not self._path(SECRET).exists():
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            create_once(self._path(SECRET), _stored(secrets.token_bytes(KEY_BYTES)))

    def secret(self) -> bytes:
        """Return the secret for fingerprints. Without it, nobody can check a guess of the inputs."""
        return self.get(SECRET)

    def get(self, identifier: str) -> bytes:
        """Return a key; refuse one that is lost, damaged, or readable by others."""
        try:
            return read_key(
                self._path(identifier), f"the key {identifier} in {self._directory.name!r}", stored=True
            )
        except FileNotFoundError:
            raise ValueError(
                f"the key {identifier} is not in {self._directory.name!r}: without it no release can be recognised "
                "or computed again; restore it from a backup"
            ) from None

    def holds(self, identifier: str, key: bytes) -> bool:
        """Tell whether a stored key is this one. A key that is lost or damaged is none."""
        try:
            return self._path(identifier).read_bytes() == _stored(key)
        except OSError:
            return False

    def forget(self, identifier: str) -> None:
        """Delete a key that no release uses."""
        self._path(identifier).unlink(missing_ok=True)

    def _path(self, identifier: str) -> Path:
        return self._directory / f"{identifier}.key"


def read_key(path: Path, label: str, *, stored: bool = False) -> bytes:
    """Return the key in a file; refuse one that is damaged, or readable by others. A stored one has a checksum."""
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise ValueError(f"{label} must be readable by its owner only: chmod 600")
    digits, _, checksum = path.read_text("ascii", errors="replace").strip().partition(" ")
    try:
        key = bytes.fromhex(digits)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES or checksum not in ({_checksum(key)} if stored else {"", _checksum(key)}):
        problem = "is damaged: restore it from a backup" if stored else "must hold 64 hexadecimal digits"
        raise ValueError(f"{label} {problem}")
    return key


def _stored(key: bytes) -> bytes:
    """Return a key in the form in which it is stored."""
    return f"{key.hex()} {_checksum(key)}\n".encode("ascii")


def _checksum(key: bytes) -> str:
    return hashlib.blake2b(key, digest_size=8, person=b"dpselect key").hexdigest()
