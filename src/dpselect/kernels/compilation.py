"""Kernels run in plain Python or compiled, with the same picks; they are compiled where that pays.

A kernel is a function over arrays and numbers that both Python and the compiler understand. Python answers a small
call at once. Compiling pays for a large call, or when small calls have taken long enough in total. On both routes
a comparison with a random number is decided within the same error bounds, or handed to exact arithmetic, so the
route does not change a pick.

This module does not load the compiler; :mod:`dpselect.kernels.compiler` does.
"""

import gc
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, update_wrapper
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any, Generic, ParamSpec, TypeVar, cast

import numpy as np

from dpselect.kernels.arrays import Rows, Units

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

LOADED = time.time()
"""When this process loaded the kernels, or just before."""

SMALL = 8192
"""The largest call that Python answers, in candidates."""
ROW = 64
"""A row counts as this many further candidates, because its random stream must be set up."""

LOADING = 0.25
"""Roughly the time for loading the compiler and a kernel that is kept on disk, in seconds."""
COMPILING = 4e-4
"""Roughly the time for compiling one byte of Python's own code, in seconds."""


class Kernel(Generic[Parameters, Result]):
    """A function that runs in plain Python or compiled."""

    def __init__(self, function: Callable[Parameters, Result], **options: object) -> None:
        update_wrapper(self, function)
        self.function = cast("FunctionType", function)
        self.options = options
        self.in_numpy: FunctionType | None = None
        self.small = SMALL
        self.seconds = 0.0
        self.ready: Callable[..., Any] | None = None

    def __repr__(self) -> str:
        return f"<kernel {self.function.__module__}.{self.function.__name__}>"

    def __call__(self, *arguments: Parameters.args, **_: Parameters.kwargs) -> Result:
        """Run compiled where that pays, or where it has paid before."""
        if self.ready is None:
            if not self.pays(arguments):
                return self.run_plainly(*arguments)
            with uncollected():
                from dpselect.kernels import compiler  # noqa: PLC0415 - it loads the compiler

            self.ready = compiler.compile_for(self, arguments)
        return cast("Result", self.ready(*arguments))

    def run_plainly(self, *arguments: Any) -> Result:
        """Run in plain Python, without warnings about overflow: compiled code gives none."""
        start = time.thread_time()
        with np.errstate(all="ignore"):
            result = self.plain(*arguments)
        self.seconds += time.thread_time() - start
        return cast("Result", result)

    def pays(self, arguments: tuple[Any, ...]) -> bool:
        """Return whether to compile for this call.

        When the small calls of a kernel have taken as long in total as compiling it takes, or loading if it is kept
        on disk, it is compiled. A process therefore takes at most about twice as long as if it had known in advance
        how many calls there would be.
        """
        setting = "always" if _AT_ONCE else os.environ.get("DPSELECT_COMPILE", "")
        if setting not in {"", "always", "never"}:
            raise ValueError(f"DPSELECT_COMPILE must be always or never, or not set; got {setting!r}")
        if setting:
            return setting == "always"
        size = size_of(arguments)
        if size > self.small:
            return True
        if size <= SMALL and self.seconds <= LOADING:
            return False
        from dpselect.kernels import caches  # noqa: PLC0415 - seldom needed

        return caches.is_kept(self.function) or self.seconds > self.seconds_to_compile

    @cached_property
    def seconds_to_compile(self) -> float:
        """Roughly the time for compiling this kernel and those that it calls."""
        return COMPILING * sum(len(kernel.function.__code__.co_code) for kernel in self._reached())

    def _reached(self) -> "set[Kernel[..., Any]]":
        """Return this kernel and all that it calls."""
        reached: set[Kernel[..., Any]] = set()
        waiting: list[Any] = [self]
        while waiting:
            kernel = waiting.pop()
            if isinstance(kernel, Kernel) and kernel not in reached:
                reached.add(kernel)
                names, module = kernel.function.__code__.co_names, kernel.function.__globals__
                known = [
                    module,
                    *(vars(module[name]) for name in names if isinstance(module.get(name), ModuleType)),
                ]
                waiting += [place.get(name) for place in known for name in names]
        return reached

    @cached_property
    def plain(self) -> Callable[..., Any]:
        """The function in plain Python, which calls other kernels in plain Python."""
        return _bound(self.in_numpy or self.function, "plain")

    @cached_property
    def dispatcher(self) -> Any:
        """The function for the compiler, which other compiled kernels call."""
        from dpselect.kernels import compiler  # noqa: PLC0415 - it loads the compiler

        return compiler.dispatcher_of(self, inner=True)

    def for_compiler(self) -> Callable[..., Any]:
        """Return the function with all kernels that it calls as the compiler's functions."""
        return _bound(self.function, "dispatcher")


class Instruction(Kernel[Parameters, Result]):
    """A kernel that the compiler takes from :mod:`dpselect.kernels.generated`. Only other kernels call it."""

    def pays(self, arguments: tuple[Any, ...]) -> bool:
        """Return False: called from Python, it runs in Python."""
        return False

    @cached_property
    def dispatcher(self) -> Any:
        """The machine instructions of the same name."""
        from dpselect.kernels import generated  # noqa: PLC0415 - it loads the compiler

        return getattr(generated, self.function.__name__)


_AT_ONCE: list[bool] = []


@contextmanager
def compiled_at_once() -> Iterator[None]:
    """Compile every kernel that is called, however small the call."""
    _AT_ONCE.append(True)
    try:
        yield
    finally:
        _AT_ONCE.pop()


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep Python from looking for garbage: the compiler makes many objects, and most of them stay."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _bound(function: FunctionType, form: str) -> Callable[..., Any]:
    """Return a copy of a function that calls one form of all kernels."""
    code = function.__code__
    return update_wrapper(FunctionType(code, _names(function.__globals__, form), code.co_name), function)


_KNOWN: dict[tuple[str, str], dict[str, Any]] = {}


def _names(module: dict[str, Any], form: str) -> dict[str, Any]:
    """Return the names of a kernels' module, with each kernel in one form."""
    key = module["__name__"], form
    if key not in _KNOWN:
        names = _KNOWN[key] = dict(module)
        for name, value in module.items():
            if isinstance(value, Kernel):
                names[name] = getattr(value, form)
            elif value is math and form == "plain":
                names[name] = IEEE
            elif isinstance(value, ModuleType) and value.__name__.startswith("dpselect.kernels."):
                names[name] = ModuleType(value.__name__)  # its kernels, in the same form
                vars(names[name]).update(_names(vars(value), form))
    return _KNOWN[key]


def size_of(arguments: tuple[Any, ...]) -> int:
    """Return the size of a call in candidates, from its arrays."""
    size = 0
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            size = max(size, argument.size)
        elif isinstance(argument, Rows):  # rows may share their candidates
            size = max(size, int(argument.bounds[-1]), ROW * (argument.bounds.size - 1))
        elif isinstance(argument, Units):
            size = max(size, ROW * len(argument.nonces))
        elif isinstance(argument, tuple):
            size = max(size, size_of(argument))
    return size


def _extended(function: Callable[[float], float], at_overflow: float = math.nan) -> Callable[[float], float]:
    """Return a function of :mod:`math` that returns infinity or NaN where Python raises, as compiled code does."""

    def extended(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return at_overflow
        except ValueError:
            pole = -1.0 if function is math.log1p else 0.0
            return -math.inf if x == pole and function in {math.log, math.log1p} else math.nan

    return extended


IEEE = SimpleNamespace(
    **vars(math)
    | {name: _extended(getattr(math, name), math.inf) for name in ("exp", "expm1", "log", "log1p", "sqrt")}
)
"""The module :mod:`math` for plain kernels."""


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Make a kernel."""
    return Kernel(function)


def compiled_without_refcounts(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Make a kernel that only borrows arrays: it makes none, returns none, and calls nothing that returns one.

    Such a kernel needs no reference counts. Counting takes two atomic instructions for each array and call, which
    is more than the rest of most of these kernels. Compilation fails if such a kernel makes or returns an array.
    An array returned by a kernel that it calls would never be freed; tests/kernels/test_memory.py checks for that.
    """
    return Kernel(function, _nrt=False)


def compiled_in_any_order(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Make a kernel without reference counts, with sums in any order: only for public numbers."""
    return Kernel(function, _nrt=False, fastmath={"reassoc", "nsz"})


def inlined(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Make a kernel that is compiled as part of its callers: it may return slices without reference counts."""
    return Kernel(function, inline="always")


def instruction(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Make a kernel that is compiled to the machine instructions of the same name in ``generated``."""
    return Instruction(function)


def in_numpy(
    kernel: Callable[Parameters, Result], *, small: int = SMALL
) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """Let this function run in place of a kernel where that is not compiled: loops in Python are slow.

    ``small`` is the largest call that it answers, in candidates.
    """

    def register(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        replaced = cast("Kernel[Parameters, Result]", kernel)
        replaced.in_numpy, replaced.small = cast("FunctionType", function), small
        return function

    return register
