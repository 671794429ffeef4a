"""How kernels are compiled. Only this module and ``generated`` load the compiler."""

import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from types import FunctionType
from typing import Any

import numba
from filelock import FileLock
from numba.core import caching
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult
from numba.core.runtime.nrt import rtsys

from dpselect.kernels.caches import cache_directory, digest, directories, index_name
from dpselect.kernels.compilation import Kernel, uncollected

LONGEST_WAIT = 120.0
"""How long to wait, in seconds, for another process that compiles the same kernel."""

_ONE_THREAD = threading.RLock()


def dispatcher_of(kernel: Kernel[..., Any], *, inner: bool) -> Any:
    """Return a kernel as the compiler's function, with its cache. If ``inner``, only other kernels can call it.

    An inner kernel is kept as a part of those that call it.

    ``nogil`` lets :mod:`dpselect.parallel` run blocks of rows in ordinary threads. ``fastmath`` stays off:
    the error bounds in :mod:`dpselect.kernels.twofloat` need every rounding to happen as written.
    """
    njit: Any = numba.njit  # its type stubs do not list all options
    forms = {
        "no_cpython_wrapper": inner,
        "no_cfunc_wrapper": True,
        "pipeline_class": PartCompiler if inner else Compiler,
    }
    dispatcher = njit(nogil=True, error_model="numpy", **forms, **kernel.options)(kernel.for_compiler())
    if not inner:
        dispatcher._cache = KernelCache(kernel)  # noqa: SLF001 - the option `cache` knows one directory
    return dispatcher


def compile_for(kernel: Kernel[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Return the kernel, compiled or loaded; if another process compiles it, wait for that and load the result."""
    with _ONE_THREAD, _reminded(kernel), _alone(kernel.function), uncollected():
        dispatcher = dispatcher_of(kernel, inner=False)
        dispatcher.compile(tuple(dispatcher.typeof_pyval(argument) for argument in arguments))
        for result in dispatcher.overloads.values():  # what its parts refer to
            for environment in result._find_referenced_environments():  # noqa: SLF001 - as where it is kept
                result.library.codegen.set_env(environment.env_name, environment)
    return dispatcher


# --- Kernels that other kernels call ----------------------------------------------------------------------


class PartLibrary(JITCodeLibrary):
    """The code of a kernel that only other kernels call: it is optimised once, as a part of those that call it.

    It gets no machine code, so nothing in it has an address.
    """

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout  # noqa: SLF001 - as the compiler does it

    def _optimize_final_module(self) -> None: ...

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True

    def get_pointer_to_function(self, _name: str) -> int:
        """Return 0: Python cannot call it."""
        return 0

    @property
    def codegen(self) -> "PartLibrary":
        """This library: the compiler asks it to keep an address."""
        return self

    def set_env(self, _name: str, _environment: object) -> None:
        """Do nothing; :func:`compile_for` does it for the kernel that Python calls."""


class PartCompiler(Compiler):
    """The compiler, for that code."""

    def define_pipelines(self) -> Any:
        """Choose where the code goes, before the compiler does."""
        state = self.state
        library: Any = PartLibrary
        state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()  # type: ignore[no-untyped-call]


# --- On disk --------------------------------------------------------------------------------------------


class KernelCache(caching.NullCache):
    """The compiled forms of one kernel: loaded from several directories, and kept in the one that is writable."""

    def __init__(self, kernel: Kernel[..., Any]) -> None:
        file: Any = caching.IndexDataCacheFile
        self._files = {place: file(str(place), index_name(kernel.function), digest()) for place in directories()}
        self._kernel = kernel

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the form for a signature; ``None`` if there is none, which is announced: it is compiled next."""
        rtsys.initialize(target_context)  # all that a compiled kernel needs of the compiler
        rebuild: Any = CompileResult._rebuild  # noqa: SLF001 - the compiler's own caches do the same
        for file in self._files.values():
            with suppress(OSError):
                payload = file.load((sig, target_context.codegen().magic_tuple()))
                if payload is not None:
                    return rebuild(target_context, *payload)
        _announce(self._kernel)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the form for a signature, if there is a place for it."""
        directory = cache_directory()
        if directory is not None:
            with suppress(OSError):  # a full disk must not stop a selection
                self._files[directory].save((sig, data.codegen.magic_tuple()), data._reduce())  # noqa: SLF001


@contextmanager
def _alone(function: FunctionType) -> Iterator[None]:
    """Keep other processes from compiling the same kernel, but not for ever, where there is a place for locks."""
    directory = cache_directory()
    with ExitStack() as stack:
        with suppress(OSError):  # also a lock that another process does not release
            if directory is not None:
                lock = FileLock(directory / f"{index_name(function)}.lock", timeout=LONGEST_WAIT)
                stack.enter_context(lock)
        yield


# --- Announcements --------------------------------------------------------------------------------------


def _announce(kernel: Kernel[..., Any]) -> None:
    """Say what is compiled and for about how long."""
    kept = cache_directory() is not None
    if not kept:
        _warn_once()
    often = "only this time" if kept else "in every process"
    _tell(f"compiling {_name_of(kernel)} for about {seconds_said(kernel)} s, {often}")


@contextmanager
def _reminded(kernel: Kernel[..., Any]) -> Iterator[None]:
    """Say so where it takes longer than announced, or another process compiles the kernel."""
    message = f"still compiling {_name_of(kernel)}, here or in another process"
    reminder = threading.Timer(2 * seconds_said(kernel), _tell, [message])
    reminder.start()
    try:
        yield
    finally:
        reminder.cancel()


def seconds_said(kernel: Kernel[..., Any]) -> int:
    """Return the whole seconds that are announced."""
    return max(1, round(kernel.seconds_to_compile))


def _name_of(kernel: Kernel[..., Any]) -> str:
    return f"{kernel.function.__module__.removeprefix('dpselect.kernels.')}.{kernel.function.__name__}"


def _tell(message: str) -> None:
    """Log a message or, if the program keeps no log, write it to standard error."""
    logger = logging.getLogger("dpselect")
    if logger.hasHandlers() or logger.isEnabledFor(logging.INFO) or logger.disabled or sys.stderr is None:
        logger.info(message)
    else:
        print(f"dpselect: {message}", file=sys.stderr, flush=True)


@cache
def _warn_once() -> None:
    warnings.warn(
        "compiled kernels cannot be kept, so every process that needs them compiles them again: "
        "set DPSELECT_CACHE to a directory that only you can write to",
        RuntimeWarning,
        stacklevel=2,
    )
