"""How kernels are compiled and where compiled code is kept: the one place that knows the compiler's settings."""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core import types
from numba.extending import intrinsic

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


@cache
def cache_directory() -> Path | None:
    """Return where compiled kernels are kept, or ``None`` if there is nowhere to write.

    The compiler renews what it has kept for a function when that function's own file changes, but not when a
    kernel it calls does. So the directory is named after a hash of all kernels, and a change to any of them
    starts afresh. It lies beside the sources, like other compiled Python, or else in the user's own cache;
    never in a place that others can write to, because what is loaded from it is run.
    """
    here = Path(__file__).parent
    digest = hashlib.blake2b(digest_size=8)
    for source in sorted(here.glob("*.py")):
        digest.update(source.name.encode() + source.read_bytes())
    user_cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    for base in (here / "__pycache__", user_cache / "dpselect"):
        directory = base / f"kernels-{digest.hexdigest()}"
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(directory, os.W_OK):
            return directory
    return None


@contextmanager
def _caching_in(directory: Path | None) -> Iterator[bool]:
    """Let functions decorated inside keep their code in a directory; the setting is global, so put it back."""
    before = numba.config.CACHE_DIR
    try:
        if directory is not None:
            numba.config.CACHE_DIR = str(directory)
        yield directory is not None
    finally:
        numba.config.CACHE_DIR = before


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a kernel on its first call.

    ``nogil`` lets :mod:`dpselect.parallel` run blocks of rows in ordinary threads. ``fastmath`` stays off:
    the error bounds in :mod:`dpselect.kernels.twofloat` need every rounding to happen as written.
    """
    with _caching_in(cache_directory()) as caching:
        decorate = numba.njit(cache=caching, nogil=True, error_model="numpy")
        return cast("Callable[Parameters, Result]", decorate(function))


@intrinsic
def _llvm_fma(typing_context: Any, a: Any, b: Any, c: Any) -> Any:  # noqa: ANN401, ARG001
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401, ARG001
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


@intrinsic
def _llvm_bits(typing_context: Any, value: Any) -> Any:  # noqa: ANN401, ARG001
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))

    return types.int64(types.float64), generate


@compiled
def float_bits(value: float) -> int:
    """Return the bits of a float as a signed integer.

    Among floats that are not negative, integers have the same order; negative floats are negative integers. So
    a maximum over bits is one over floats, and one that the compiler turns into vector code without fast math.
    """
    bits: int = _llvm_bits(value)  # type: ignore[call-arg]
    return bits


@intrinsic
def _llvm_float(typing_context: Any, bits: Any) -> Any:  # noqa: ANN401, ARG001
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))

    return types.float64(types.int64), generate


@compiled
def float_of_bits(bits: int) -> float:
    """Return the float that has these bits."""
    value: float = _llvm_float(bits)  # type: ignore[call-arg]
    return value


@compiled
def fused_multiply_add(a: float, b: float, c: float) -> float:
    """Return a·b + c, rounded once."""
    result: float = _llvm_fma(a, b, c)  # type: ignore[call-arg]
    return result
