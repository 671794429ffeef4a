"""Key files: the key of one release, and a record of what that release was."""

import hashlib
import secrets
from pathlib import Path

from dpselect.budget.keys import KEY_BYTES, read_key
from dpselect.errors import KeyReuseError
from dpselect.files import create_once
from dpselect.randomness import STREAM_FORMAT


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
    """

    def __init__(self, path: Path, fingerprint: str) -> None:
        self._path = path
        self._record = path.with_name(path.name + ".used")
        self.key = self._read()
        use = hashlib.blake2b(fingerprint.encode(), key=self.key, digest_size=16, person=b"dpselect use")
        self._use = f"{use.hexdigest()} {STREAM_FORMAT}\n"
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
        create_once(self._record, self._use.encode("ascii"))
        self._check()

    def _read(self) -> bytes:
        if not self._path.exists():
            if self._record.exists():
                raise KeyReuseError(
                    f"the key file {self._path.name!r} is gone, but {self._record.name!r} says that it was used; "
                    "restore it, or name another file for a new release"
                )
            create_once(self._path, f"{secrets.token_hex(KEY_BYTES)}\n".encode("ascii"))
        return read_key(self._path, f"the key file {self._path.name!r}")

    def _check(self) -> None:
        if self._record.exists() and self._record.read_text("ascii", errors="replace") != self._use:
            raise KeyReuseError(
                f"the key {self._path.name!r} is refused: {self._record.name!r} says that it was used with other "
                "inputs or options, or by another version of dpselect, and the same noise must not be used twice; "
                "name another file for a new key"
            )
