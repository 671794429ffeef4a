"""How kernels are compiled and where compiled code is cached. Only this module knows the compiler's settings."""

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
    """Return the directory for compiled kernels, or ``None`` if no suitable directory is writable.

    The compiler recompiles a function when that function's own file changes, but not when a kernel that it calls
    changes. The directory is therefore named after a hash of all kernels, and a change to any of them starts a new
    cache. It lies beside the sources, like other compiled Python, or else in the user's own cache. It is never a
    directory that another user owns or can write to, because code loaded from it is executed.
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
        except (OSError, RuntimeError):  # a user without a home directory, as in some containers
            continue
        ours = not hasattr(os, "getuid") or status.st_uid == os.getuid()
        if ours and os.access(directory, os.W_OK) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return directory
    return None


@contextmanager
def _caching_in(directory: Path | None) -> Iterator[bool]:
    """Let functions decorated inside the block cache their code in a directory, then restore the global setting."""
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

    Such a kernel needs no reference counts. Counting takes two atomic instructions for each array and call, which
    is more than the rest of most of these kernels. Compilation fails if such a kernel makes or returns an array.
    An array returned by a kernel that it calls would never be freed; tests/kernels/test_memory.py checks for that.
    """
    return _compiled(function, _nrt=False)


def compiled_in_any_order(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a kernel without reference counts whose sums may be taken in any order, so that they are vectorised.

    Only for public numbers whose last bits do not matter.
    """
    return _compiled(function, _nrt=False, fastmath={"reassoc", "nsz"})


def inlined(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a kernel as part of its callers: it may return slices of arrays without reference counts."""
    return _compiled(function, inline="always")


def _compiled(function: Callable[Parameters, Result], **options: object) -> Callable[Parameters, Result]:
    njit: Any = numba.njit  # its type stubs do not list all options
    with _caching_in(cache_directory()) as caching:
        decorate = njit(cache=caching, nogil=True, error_model="numpy", **options)
        return cast("Callable[Parameters, Result]", decorate(function))
