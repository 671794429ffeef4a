"""How kernels are compiled and where compiled code is kept: the one place that knows the compiler's settings."""

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


@cache
def cache_directory() -> Path | None:
    """Return where compiled kernels are kept, or ``None`` if there is nowhere to write.

    The compiler renews what it has kept for a function when that function's own file changes, but not when a
    kernel it calls does. So the directory is named after a hash of all kernels, and a change to any of them
    starts afresh. It lies beside the sources, like other compiled Python, or else in the user's own cache; never
    in a directory of somebody else's, or one that others can write to: what is loaded from it is run.
    """
    here = Path(__file__).parent
    digest = hashlib.blake2b(digest_size=8)
    for source in sorted(here.rglob("*.py")):
        digest.update(str(source.relative_to(here)).encode() + source.read_bytes())
    user_cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    for base in (here / "__pycache__", user_cache / "dpselect"):
        try:
            directory = base.expanduser() / f"kernels-{digest.hexdigest()}"
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = directory.stat()
        except (OSError, RuntimeError):  # a user without a home, as in some containers, is a RuntimeError
            continue
        ours = not hasattr(os, "getuid") or status.st_uid == os.getuid()
        if ours and os.access(directory, os.W_OK) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return directory
    return None


@contextmanager
def _caching_in(directory: Path | None) -> Iterator[bool]:
    """Let functions decorated inside keep their code in a directory; the setting is global, so put it back."""
    settings: Any = numba.config
    before = settings.CACHE_DIR
    try:
        if directory is not None:
            settings.CACHE_DIR = str(directory)
        yield directory is not None
    finally:
        settings.CACHE_DIR = before


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a kernel on its first call.

    ``nogil`` lets :mod:`dpselect.parallel` run blocks of rows in ordinary threads. ``fastmath`` stays off:
    the error bounds in :mod:`dpselect.kernels.twofloat` need every rounding to happen as written.
    """
    return _compiled(function)


def compiled_without_refcounts(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a kernel that only borrows arrays: it makes none, returns none, and calls nothing that returns one.

    Then nobody need count references to them. Counting takes two atomic instructions for each array and call, which
    is more than most of these kernels do otherwise. Making or returning an array is an error when such a kernel is
    compiled; one returned by a kernel it calls would never be freed, which tests/kernels/test_memory.py watches.
    """
    return _compiled(function, _nrt=False)


def inlined(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a kernel as part of its callers. So it may return slices of arrays that have no reference counts."""
    return _compiled(function, inline="always")


def _compiled(function: Callable[Parameters, Result], **options: object) -> Callable[Parameters, Result]:
    njit: Any = numba.njit  # its types do not know all its options
    with _caching_in(cache_directory()) as caching:
        decorate = njit(cache=caching, nogil=True, error_model="numpy", **options)
        return cast("Callable[Parameters, Result]", decorate(function))
