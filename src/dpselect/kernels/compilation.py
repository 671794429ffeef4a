"""How kernels are compiled: the one place that knows the compiler's settings."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core import types
from numba.extending import intrinsic

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a kernel.

    ``nogil`` lets :mod:`dpselect.parallel` run blocks of rows in ordinary threads. ``fastmath`` stays off:
    the error bounds in :mod:`dpselect.kernels.twofloat` need every rounding to happen as written.
    """
    decorate = numba.njit(cache=True, nogil=True, error_model="numpy")
    return cast("Callable[Parameters, Result]", decorate(function))


@intrinsic
def _llvm_fma(typing_context: Any, a: Any, b: Any, c: Any) -> Any:  # noqa: ANN401, ARG001
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401, ARG001
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


@compiled
def fused_multiply_add(a: float, b: float, c: float) -> float:
    """Return a·b + c, rounded once."""
    result: float = _llvm_fma(a, b, c)  # type: ignore[call-arg]
    return result
