"""Where compiled kernels are kept on disk."""

import hashlib
import os
import stat
import sys
from functools import cache
from pathlib import Path
from types import FunctionType

from platformdirs import user_cache_path

from dpselect.kernels.compilation import LOADED


@cache
def digest() -> str:
    """Return a hash of all kernels.

    The compiler recompiles a function when that function's own file changes, but not when a kernel that it calls
    changes. Directories are therefore named after this hash, and a change to any kernel starts a new one. What a
    process compiles after a kernel file changed under it is never shared.
    """
    here = Path(__file__).parent
    sources = hashlib.blake2b(digest_size=8)
    for source in sorted(here.rglob("*.py")):
        sources.update(str(source.relative_to(here)).encode() + source.read_bytes())
        if source.stat().st_mtime > LOADED:
            sources.update(os.urandom(8))
    return sources.hexdigest()


@cache
def directories() -> tuple[Path, ...]:
    """Return the directories from which compiled kernels are loaded.

    ``DPSELECT_CACHE`` names one. Otherwise they are beside the sources, like other compiled Python, and in the
    user's own cache. None is a directory that others can write to, or that another user owns (except root, who
    may have built an image of a container), because code loaded from it is executed.
    """
    named = os.environ.get("DPSELECT_CACHE")
    found = []
    for base in [Path(named)] if named else [Path(__file__).parent / "__pycache__", None]:
        try:
            home = base or user_cache_path("dpselect", appauthor=False)
            directory = home.expanduser() / f"kernels-{digest()}"
            directory.mkdir(mode=0o755, parents=True, exist_ok=True)
            status = directory.stat()
        except (OSError, RuntimeError):  # a user without a home directory, as in some containers
            continue
        trusted = not hasattr(os, "getuid") or status.st_uid in {0, os.getuid()}
        if trusted and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            found.append(directory)
            if os.access(directory, os.W_OK):
                break
    return tuple(found)


def cache_directory() -> Path | None:
    """Return the directory in which kernels compiled now are kept, or ``None`` if there is none."""
    return next((directory for directory in directories() if os.access(directory, os.W_OK)), None)


def index_name(function: FunctionType) -> str:
    """Return the name of the file that lists a kernel's compiled forms, without its extension."""
    place = f"{function.__module__}.{function.__qualname__}-{function.__code__.co_firstlineno}"
    return f"{place}.{sys.implementation.cache_tag}"


def is_kept(function: FunctionType) -> bool:
    """Return whether a kernel has been compiled before."""
    return any((directory / f"{index_name(function)}.nbi").exists() for directory in directories())
