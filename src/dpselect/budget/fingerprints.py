"""A short text that identifies the inputs of a release."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from dpselect.randomness import STREAM_FORMAT

CHUNK = 1 << 22


def fingerprint_files(files: Iterable[Path], settings: Mapping[str, object]) -> str:
    """Return a fingerprint of the contents of files, of settings and of the stream format: 32 hexadecimal digits.

    The names and locations of files do not matter; their order does. Different inputs have the same fingerprint
    with probability about 2⁻¹²⁸. A fingerprint is a hash of private data and can confirm a guess of them, so keep
    it secret. The ledger stores only a keyed hash of it.

    Args:
        files: The files that a release reads.
        settings: Everything else that the release depends on.

    Example:
        >>> first = fingerprint_files([], {"mechanism": "GEM(epsilon=1.0)"})
        >>> len(first), first == fingerprint_files([], {"mechanism": "GEM(epsilon=2.0)"})
        (32, False)
    """
    return combine_hashes(hash_files(files), settings)


def hash_files(files: Iterable[Path]) -> list[bytes]:
    """Return a hash of the contents of each file."""
    hashes = []
    for path in files:
        content = hashlib.blake2b(digest_size=32)
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                content.update(chunk)
        hashes.append(content.digest())
    return hashes


def combine_hashes(hashes: Iterable[bytes], settings: Mapping[str, object]) -> str:
    """Return a fingerprint of hashes, of settings and of the stream format."""
    digest = hashlib.blake2b(digest_size=16, person=b"dpselect inputs")
    digest.update(json.dumps({**settings, "stream format": STREAM_FORMAT}, sort_keys=True).encode())
    for content in hashes:
        digest.update(content)
    return digest.hexdigest()
