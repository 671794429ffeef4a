"""Arrays of other libraries (torch, CuPy, JAX, any with DLPack): to the host, and picks back to where they were.

``select`` reads what is on the processor without a copy. What is on another device is copied to the host in blocks
of rows. Code that picks on the device itself asks :func:`is_elsewhere` before anything is copied.
"""

import logging
import sys
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["as_plain", "device_of", "is_elsewhere", "is_foreign", "like", "say_once", "to_host"]

HOST = {1, 3, 11, 13}
"""DLPack's numbers of devices whose memory the processor reads: its own, pinned by CUDA or ROCm, and managed."""

PLAIN = (np.ndarray, list, float)
"""What most calls pass. It is not an array of another library."""

TABULAR = {"pandas", "polars", "pyarrow"}
"""Libraries whose columns are read by other means, though they may have DLPack, too."""


def is_foreign(numbers: Any) -> bool:
    """Tell whether numbers are an array of another library than NumPy."""
    if isinstance(numbers, PLAIN):
        return False
    return hasattr(numbers, "__dlpack__") and type(numbers).__module__.partition(".")[0] not in TABULAR


def is_elsewhere(numbers: Any) -> bool:
    """Tell whether numbers are a foreign array in memory that the processor cannot read, such as a GPU's."""
    return is_foreign(numbers) and (device_of(numbers) or (0, 0))[0] not in HOST


def device_of(numbers: Any) -> tuple[int, int] | None:
    """Return DLPack's kind and number of an array's device; ``None`` if it has no DLPack, or several devices."""
    try:
        kind, number = map(int, numbers.__dlpack_device__())
    except (AttributeError, BufferError, RuntimeError, ValueError):
        return None
    return kind, number


def as_plain(numbers: Any) -> Any:
    """Return a foreign array without a gradient, and with 32 bits where it has 16: NumPy has no bfloat16."""
    plain = numbers.detach() if hasattr(numbers, "detach") else numbers
    if "float16" not in str(plain.dtype):
        return plain
    return plain.float() if hasattr(plain, "float") else plain.astype("float32")


def to_host(numbers: Any, name: str = "scores") -> Any:
    """Return a foreign array as NumPy's: the same memory on the processor, or a copy from another device.

    Anything else is returned as it is; a list or a tuple, with its entries so read.
    """
    if isinstance(numbers, list | tuple) and any(map(is_foreign, numbers[:2])):
        return type(numbers)(to_host(entry, name) for entry in numbers)
    if not is_foreign(numbers):
        return numbers
    try:
        plain = as_plain(numbers)
        if not is_elsewhere(plain):
            return np.from_dlpack(plain)
        if name == "scores":
            say_once(
                f"scores on {numbers.device} are copied to the host, picked from there, and the picks copied back"
            )
        for method in ("cpu", "get"):  # torch, CuPy
            if hasattr(plain, method):
                return np.asarray(getattr(plain, method)())
        return np.asarray(plain)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError):
        raise ValueError(
            f"{name} must be a dense array of a type that NumPy has, not sparse and not inside jax.jit: pass "
            f"{name}.float(), or a NumPy array"
        ) from None


def like(numbers: NDArray[Any], given: Any) -> Any:
    """Return NumPy's numbers as the kind of array that another one is, on its device; if possible."""
    library = type(given).__module__.partition(".")[0]
    standard = hasattr(given, "__array_namespace__")
    namespace: Any = given.__array_namespace__() if standard else sys.modules.get(library)
    if not hasattr(namespace, "asarray"):
        return numbers
    if library == "cupy":
        with given.device:
            return namespace.asarray(numbers)
    # JAX: rows may lie on several devices, and picks go to the default one.
    shared = hasattr(given.device, "device_set")
    return namespace.asarray(numbers, device=None if shared else given.device)


@cache
def say_once(message: str) -> None:
    """Log a message, the first time."""
    logging.getLogger("dpselect").info(message)
