"""The two routes of a kernel: compiled, or in plain Python."""

from contextlib import contextmanager
from unittest import mock

from dpselect.kernels.compilation import Kernel


@contextmanager
def in_plain_python():
    """Run all kernels in plain Python, also those that are compiled already."""
    with mock.patch.object(Kernel, "__call__", Kernel.run_plainly):
        yield


def plain_rows(mechanism, rows):
    """Return how many of these rows to pick from in plain Python: three where each has neutral offsets of its own.

    Quadrature in plain Python takes up to half a second a row, and rows do not depend on each other.
    """
    return min(rows, 3) if getattr(mechanism, "neutral", False) else rows
