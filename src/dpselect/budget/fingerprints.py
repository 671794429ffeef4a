"""A short text that identifies the inputs of a release."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from dpselect.randomness import STREAM_FORMAT


def hash_files(files: Iterable[Path]) -> list[bytes]:
    """Return a hash of the contents of each file."""
    hashes = []
    for path in files:
        with path.open("rb") as file:
            hashes.append(hashlib.file_digest(file, partial(hashlib.blake2b, digest_size=32)).digest())
    return hashes


def combine_hashes(hashes: Iterable[bytes], settings: Mapping[str, object]) -> str:
    """Return a fingerprint of hashes, of settings and of the stream format.

    It is a hash of private data and can confirm a guess of them: the ledger stores only a keyed hash of it.
    """
    digest = hashlib.blake2b(digest_size=16, person=b"dpselect inputs")
    digest.update(json.dumps({**settings, "stream format": STREAM_FORMAT}, sort_keys=True).encode())
    for content in hashes:
        digest.update(content)
    return digest.hexdigest()
