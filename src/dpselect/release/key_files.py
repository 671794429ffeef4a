"""Key files: the key of one release, and a record of what that release was."""

import hashlib
import os
import secrets
from pathlib import Path

from dpselect.errors import KeyReuseError
from dpselect.files import create_once
from dpselect.randomness import STREAM_FORMAT

KEY_BYTES = 32


class BoundKey:
    """A key in a file that only its owner can read. ``FILE.used`` beside it records what the key was used for.

    Two releases with one key share their noise, and anyone who sees both may learn more than both were paid for. So
    a release leaves a record before it is published: a hash of its inputs and options under the key, which says
    nothing without the key. After that the key is refused with other inputs or options; with the same ones it gives
    the same picks.

    This cannot detect a key that was copied, a record that was removed, or the use of the key elsewhere.

    Args:
        path: The file.
        fingerprint: What identifies the release.
        former: Fingerprints of the same release by earlier versions, which are accepted.
    """

    def __init__(self, path: Path, fingerprint: str, *former: str) -> None:
        self._path = path
        self._record = path.with_name(path.name + ".used")
        self.key = self._read()
        self._uses = [self._hash(mark) for mark in (fingerprint, *former)]
        self._check()

    def bind(self) -> None:
        """Record on the disk what the key is used for. If two processes try at once, one of them is refused.

        If the file holds another key by now, nothing is recorded: the record would be that of a key not used.
        """
        if not self._path.exists() or self._read() != self.key:
            raise KeyReuseError(
                f"the key file {self._path.name!r} was replaced while picks were computed with the key in it; run "
                "again, or name another file for a new key"
            )
        create_once(self._record, f"{self._uses[0]} {STREAM_FORMAT}\n".encode("ascii"))
        self._check()

    def _hash(self, fingerprint: str) -> str:
        hashed = hashlib.blake2b(fingerprint.encode(), key=self.key, digest_size=16, person=b"dpselect use")
        return hashed.hexdigest()

    def _read(self) -> bytes:
        if not self._path.exists():
            if self._record.exists():
                raise KeyReuseError(
                    f"the key file {self._path.name!r} is gone, but {self._record.name!r} says that it was used; "
                    "restore it, or name another file for a new release"
                )
            create_once(self._path, f"{secrets.token_hex(KEY_BYTES)}\n".encode("ascii"))
        if os.name == "posix" and self._path.stat().st_mode & 0o077:
            raise ValueError(f"the key file {self._path.name!r} must be readable by its owner only: chmod 600")
        try:
            key = bytes.fromhex(self._path.read_text("ascii").strip())
        except ValueError:
            key = b""
        if len(key) != KEY_BYTES:
            raise ValueError(f"the key file {self._path.name!r} must hold 64 hexadecimal digits")
        return key

    def _check(self) -> None:
        if not self._record.exists():
            return
        use, _, stream_format = self._record.read_text("ascii", errors="replace").strip().partition(" ")
        if stream_format != str(STREAM_FORMAT):
            raise KeyReuseError(
                f"the key {self._path.name!r} is refused: {self._record.name!r} says that a release was computed "
                f"with it in stream format {stream_format or 1}, and this dpselect computes in format "
                f"{STREAM_FORMAT}, with other picks; compute that release with the version of dpselect that made "
                "it, or name another file for a new key"
            )
        if use not in self._uses:
            raise KeyReuseError(
                f"the key {self._path.name!r} is refused: {self._record.name!r} says that it was used with other "
                "inputs or options, and the same noise must not be used twice; name another file for a new key"
            )
