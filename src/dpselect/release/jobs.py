"""Jobs that can be interrupted: finished parts are kept beside the output, and the next run goes on from there.

A job has a directory that only its owner can read. It holds a description of the job (inputs, mechanism, columns),
the key unless that is kept elsewhere, and one file of results for each batch. Streams are addressed by unit, so the
parts of two runs fit together. The output appears under its name when everything is there; then the directory is
removed. It is also removed if the job is refused, for bad input or by the budget: nothing could go on from there.
"""

import errno
import hashlib
import io
import json
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

import pyarrow as pa

from dpselect.budget.databases import DatabaseError
from dpselect.files import write_atomically
from dpselect.tables.writing import check_output, output_format, write_batches

__all__ = ["Job", "JobConflictError", "gives_up"]

NO_LINKS = getattr(os, "O_NOFOLLOW", 0)


class JobConflictError(ValueError):
    """Another job is unfinished, or running, under the same output."""


def gives_up(error: BaseException | None) -> bool:
    """Tell whether a job that ends with an error cannot go on later: it was refused, not interrupted.

    An internal error counts as a refusal: it would occur again, and a corrected input is another job.
    """
    later = DatabaseError, JobConflictError, MemoryError, OSError
    return isinstance(error, Exception) and not isinstance(error, later)


class Job:
    """The state of one unfinished output."""

    def __init__(self, output: Path, description: dict[str, Any], *, restart: bool = False) -> None:
        self.output = output
        self.directory = output.with_name(f".{output.name}.unfinished")
        self.description = description
        self._restart = restart
        self._lock: int | None = None
        self._parts: list[Path] = []
        check_output(output)

    def __enter__(self) -> Self:
        self.directory.mkdir(mode=0o700, exist_ok=True)
        _refuse_foreign(self.directory, os.lstat(self.directory))
        self._lock = os.open(self.directory / "lock", os.O_CREAT | os.O_RDWR | NO_LINKS, 0o600)
        if not _lock(self._lock):
            self._unlock()
            raise JobConflictError(f"another process is writing {self.output.name!r}")
        stored = self.directory / "job.json"
        if self._restart:
            self.discard()
        self._parts = self._find_parts()
        if stored.exists() and json.loads(stored.read_text("utf-8")) != self.description:
            if self._parts:
                self._refuse(json.loads(stored.read_text("utf-8")))
            self.discard()  # nothing has been computed
        with write_atomically(stored, private=True) as file:
            file.write(json.dumps(self.description, indent=1).encode())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if gives_up(error):
            shutil.rmtree(self.directory)
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _refuse(self, begun: dict[str, Any]) -> NoReturn:
        """Raise because the unfinished job is another one."""
        name = "stream_format"
        if begun.get(name) != self.description.get(name):
            message = (
                f"an unfinished job for {self.output.name!r} was begun by a version of dpselect that gives other "
                "picks for the same key; finish it with that version, or give it up with --restart"
            )
        else:
            message = (
                f"an unfinished job for {self.output.name!r} had other inputs or options; run it with the same "
                "ones, or give it up with --restart"
            )
        self._unlock()
        raise JobConflictError(message)

    def key(self) -> bytes:
        """Return the job's own key, kept until the job is done so that it can be resumed."""
        path = self.directory / "key"
        if not path.exists():
            with write_atomically(path, private=True) as file:
                file.write(secrets.token_bytes(32))
        try:
            with os.fdopen(os.open(path, os.O_RDONLY | NO_LINKS), "rb") as file:
                _refuse_foreign(path, os.fstat(file.fileno()))
                return file.read()
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise JobConflictError(f"{path.name!r} in {self.directory.name!r} must not be a link") from None
            raise

    def key_id(self, suggested: Callable[[], str], required: str | None) -> str:
        """Return the identifier of a key kept elsewhere: the job's, a suggested one, or one that is required.

        Parts computed with another key than the required one are forgotten.
        """
        known = self.known_key_id()
        wanted = required or known or suggested()
        if wanted != known:
            self.forget_parts()
            with write_atomically(self.directory / "key-id", private=True) as file:
                file.write(wanted.encode("ascii"))
        return wanted

    def known_key_id(self) -> str | None:
        """Return the identifier of the key that the job has used so far."""
        path = self.directory / "key-id"
        return path.read_text("ascii") if path.exists() else None

    def _find_parts(self) -> list[Path]:
        """Return the parts that an earlier run has finished, up to the first that is missing or damaged.

        Parts are not forced to the disk: that would take longer than computing them. So a part's name ends in a
        checksum, and parts that a power failure has spoilt are computed again.
        """
        found = sorted(self.directory.glob("part-*.arrow"))
        sound = 0
        while sound < len(found) and found[sound].name == _part_name(sound, found[sound].read_bytes()):
            sound += 1
        for path in found[sound:]:
            path.unlink()
        return found[:sound]

    def results(self) -> Iterator[pa.RecordBatch]:
        """Yield the finished batches of results, in order."""
        for path in self._parts:
            with pa.memory_map(str(path)) as file, pa.ipc.open_file(file) as reader:
                for number in range(reader.num_record_batches):
                    yield reader.get_batch(number)

    def add(self, batch: pa.RecordBatch) -> None:
        """Keep the results of the next batch."""
        content = io.BytesIO()
        write_batches([batch], batch.schema, "arrow", content)
        path = self.directory / _part_name(len(self._parts), content.getvalue())
        with write_atomically(path, durable=False, private=True) as file:
            file.write(content.getbuffer())
        self._parts.append(path)

    def discard(self) -> None:
        """Forget the job."""
        for path in self.directory.iterdir():
            if path.name != "lock":
                path.unlink()
        self._parts = []

    def forget_parts(self) -> None:
        """Forget what was computed."""
        for path in self._parts:
            path.unlink()
        self._parts = []

    def publish(self, schema: pa.Schema, shape: Callable[[pa.RecordBatch], pa.RecordBatch]) -> None:
        """Write the output from the parts, each shaped by a function, and remove the directory."""
        with write_atomically(self.output) as file:
            write_batches(map(shape, self.results()), schema, output_format(self.output), file)
        shutil.rmtree(self.directory)


def _refuse_foreign(path: Path, state: os.stat_result) -> None:
    """Raise if others have put this there, with a key of theirs, or can read it."""
    if os.name != "posix":
        return
    if stat.S_ISLNK(state.st_mode) or state.st_uid != os.geteuid() or state.st_mode & 0o077:
        raise JobConflictError(
            f"{path.name!r} exists and is not yours alone: it must belong to you, be no link, and be readable by "
            "its owner only; remove it"
        )


def _part_name(number: int, content: bytes) -> str:
    return f"part-{number:09}-{hashlib.blake2b(content, digest_size=8).hexdigest()}.arrow"


def _lock(descriptor: int) -> bool:
    """Lock a file until it is closed or the process ends; return False if another process has locked it."""
    try:
        import fcntl  # noqa: PLC0415 - not on every system, and there is no other way
    except ModuleNotFoundError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
