"""Keys and streams: the source of randomness for picks.

Every row of a batch is a *unit* with a stream of its own, the ChaCha20 key stream addressed by (key, law, unit).
The law is the mechanism with all its parameters. The pick of a unit therefore depends only on the key, the
mechanism, the unit and its data. It does not depend on the order of rows, their number, the partitioning or the
threads.
"""

import hashlib
import operator
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import RepeatedUnitsError
from dpselect.kernels.arrays import Units, WordArray

UnitIds: TypeAlias = Sequence[int] | Sequence[str] | Sequence[bytes] | NDArray[Any] | int | str | bytes

STREAM_FORMAT = 2
"""The version of the map from keys to picks. Increase it with every change to a sampler or a stream after which
some key, unit and row can give a different pick; a table of recorded picks in the tests detects such a change.
Every stream depends on this number, and so does the record of a release: another version must not recompute a paid
release with different picks.
"""

KEY_BYTES = 32
NONCE_BYTES = 12
FIRST_NONCE: WordArray = np.zeros((1, 3), dtype=np.uint32)


@dataclass(frozen=True, slots=True)
class Randomness:
    """The source of a call's randomness. It is a value, not a generator: it has no state to use up.

    Without ``randomness=``, ``select`` takes a fresh key from the operating system. That is right for a release
    that is computed once. :meth:`seeded` is for experiments: anyone who knows the seed can undo the noise, so it is
    **not for releases**. :meth:`keyed` is for releases that may be computed more than once, by retried tasks: the
    same key, mechanism, unit and data give the same pick. Use one key for one release, and keep it as secret as the
    scores.

    Mechanisms with different parameters never share noise, even under the same key. For many draws from the same
    candidates pass a batch, since each row draws from its own stream.

    Example:
        >>> import numpy as np, dpselect as dps
        >>> scores = np.broadcast_to([0.0, 1.0, 2.0], (5, 3))
        >>> mechanism = dps.NoisyMax(epsilon=1.0)
        >>> first = mechanism.select(scores, 1.0, randomness=dps.Randomness.seeded(7))
        >>> again = mechanism.select(scores, 1.0, randomness=dps.Randomness.seeded(7))
        >>> bool((first == again).all())
        True
        >>> key = bytes(32)  # a real one comes from secrets.token_bytes(32)
        >>> dps.Randomness.keyed(key, ["ann", "bob"])
        Randomness(keyed, 2 units)
    """

    kind: str
    _key: bytes = field(repr=False)
    _nonces: bytes | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        units = "" if self._nonces is None else f", {len(self._nonces) // NONCE_BYTES} units"
        return f"Randomness({self.kind}{units})"

    @classmethod
    def fresh(cls) -> "Randomness":
        """Return a new secret key from the operating system, as ``select`` does by default."""
        return cls("fresh", os.urandom(KEY_BYTES))

    @classmethod
    def seeded(cls, seed: int) -> "Randomness":
        """Return repeatable randomness for experiments; not for releases.

        Args:
            seed: Any integer. Anyone who knows it can recompute the picks.
        """
        try:
            number = operator.index(seed)
        except TypeError:
            number = None
        if number is None or isinstance(seed, bool):
            raise ValueError(f"seed must be an integer, got {type(seed).__name__}")
        digits = number.to_bytes((number.bit_length() + 8) // 8, "little", signed=True)
        return cls("seeded", hashlib.blake2b(digits, digest_size=KEY_BYTES, person=b"dpselect seed").digest())

    @classmethod
    def keyed(cls, key: bytes, units: UnitIds) -> "Randomness":
        """Return randomness addressed by unit.

        Args:
            key: 32 secret bytes, for example from ``secrets.token_bytes(32)``.
            units: One identifier for each row, all distinct: integers of at most 64 bits, or strings, or bytes.
                Integers address their stream directly; strings and bytes are hashed with the key to 96 bits. The
                string "a" and the bytes b"a" are different units.
        """
        if not isinstance(key, bytes) or len(key) != KEY_BYTES:
            raise ValueError(f"key must be {KEY_BYTES} bytes, for example secrets.token_bytes({KEY_BYTES})")
        identifiers = [units] if isinstance(units, int | str | bytes) else units
        array = np.asarray(identifiers)
        if array.ndim != 1:
            raise ValueError("units must be one identifier for each row")
        integers = array.dtype.kind in "iu"
        nonces = _integer_nonces(array) if integers else _hashed_nonces(key, _listed(identifiers))
        if not are_distinct(nonces):
            raise RepeatedUnitsError("units must be distinct: two rows with one identifier would share their noise")
        return cls("keyed", key, nonces.tobytes())

    @classmethod
    def given(cls, randomness: "Randomness | None") -> "Randomness":
        """Return the caller's ``randomness=``, or fresh randomness if it is ``None``."""
        if randomness is None:
            return cls.fresh()
        if not isinstance(randomness, Randomness):
            raise ValueError(f"randomness must be a Randomness or None, got {type(randomness).__name__}")
        return randomness

    @classmethod
    def key_for_units(cls, randomness: "Randomness | bytes | None") -> bytes:
        """Return the key of a call that addresses streams by a column of units.

        Args:
            randomness: 32 secret bytes, :meth:`seeded` or :meth:`fresh` randomness, or ``None`` for a fresh key.
        """
        if isinstance(randomness, bytes):
            cls.keyed(randomness, [0])  # refuses a bad key
            return randomness
        given = cls.given(randomness)
        if given._nonces is not None:  # noqa: SLF001 - our own
            raise ValueError("randomness must be the key itself here, since the table has the units: pass the key")
        return given._key  # noqa: SLF001

    def serving(self, law: str) -> "Randomness":
        """Return randomness for one law: the streams of two laws, or of two stream formats, are independent."""
        purpose = f"{STREAM_FORMAT} {law}".encode()
        key = hashlib.blake2b(purpose, key=self._key, digest_size=KEY_BYTES, person=b"dpselect law").digest()
        return Randomness(self.kind, key, self._nonces)

    def substream(self, name: str) -> "Randomness":
        """Return randomness for another part of the same call, independent of this one."""
        person = hashlib.blake2b(name.encode(), digest_size=16).digest()
        key = hashlib.blake2b(key=self._key, digest_size=KEY_BYTES, person=person).digest()
        return Randomness(self.kind, key, self._nonces)

    def for_rows(self, rows: int, chosen: NDArray[Any] | slice) -> "Randomness":
        """Return randomness for some rows of a call; each has the stream that it has among all ``rows``."""
        return Randomness(self.kind, self._key, self._addresses(rows)[chosen].tobytes())

    @property
    def is_addressed(self) -> bool:
        """Whether rows have addresses of their own. If not, their numbers are their addresses."""
        return self._nonces is not None

    def check_rows(self, rows: int) -> None:
        """Raise unless the number of rows is the number of units."""
        if self._nonces is not None and len(self._nonces) != NONCE_BYTES * rows:
            units = len(self._nonces) // NONCE_BYTES
            raise ValueError(f"units must have one identifier for each row, got {units} units for {rows} rows")

    def units(self, rows: int) -> Units:
        """Return the key and one address for each row, for the kernels."""
        nonces = self._addresses(rows)
        key = np.frombuffer(self._key, dtype="<u4").astype(np.uint32)
        return Units(key, nonces if self._nonces is None else nonces.copy())  # kernels are compiled for our own

    def _addresses(self, rows: int) -> WordArray:
        """Return one address for each row: a view, since a call in many blocks must not copy all for each."""
        self.check_rows(rows)
        if self._nonces is not None:
            return np.frombuffer(self._nonces, dtype=np.uint32).reshape(-1, 3)
        return FIRST_NONCE if rows == 1 else _integer_nonces(np.arange(rows))


def are_distinct(nonces: WordArray) -> bool:
    """Return whether all addresses are distinct."""
    leading = nonces[:, 0] | nonces[:, 1].astype(np.uint64) << np.uint64(32)
    if not (leading[1:] > leading[:-1]).all():
        leading.sort()
    if (leading[1:] > leading[:-1]).all():
        return True
    return len(np.unique(nonces, axis=0)) == len(nonces)  # their first 64 bits are rarely equal


def _integer_nonces(array: NDArray[Any]) -> WordArray:
    nonces = np.zeros((array.size, 3), dtype=np.uint32)
    words = np.ascontiguousarray(array, np.uint64 if array.dtype.kind == "u" else np.int64).view(np.uint64)
    nonces[:, 0], nonces[:, 1] = words.astype("<u8", copy=False).view("<u4").reshape(-1, 2).T
    if array.dtype.kind == "u":  # distinguishes 2⁶⁴ − 1 from −1
        nonces[:, 2] = words >> np.uint64(63)
    return nonces


def _listed(identifiers: Any) -> list[Any]:
    """Return identifiers as a list; those of an Arrow array become Python objects."""
    return list(identifiers.to_pylist() if hasattr(identifiers, "to_pylist") else identifiers)


def _hashed_nonces(key: bytes, identifiers: list[Any]) -> WordArray:
    kinds = {type(identifier) for identifier in identifiers}
    texts = kinds <= {str, np.str_}
    if not (texts or kinds <= {bytes, np.bytes_}):
        raise ValueError("units must be all integers of at most 64 bits, all strings, or all bytes")
    person = b"dpselect text" if texts else b"dpselect bytes"
    keyed = hashlib.blake2b(key=key, digest_size=NONCE_BYTES, person=person)

    def digest(identifier: bytes) -> bytes:
        copy = keyed.copy()
        copy.update(identifier)
        return copy.digest()

    digests = b"".join(map(digest, map(str.encode, identifiers) if texts else identifiers))
    return np.frombuffer(digests, dtype="<u4").astype(np.uint32).reshape(-1, 3)
