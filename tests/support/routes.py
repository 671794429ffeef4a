"""The two routes of a kernel: compiled, or in plain Python."""

from contextlib import contextmanager
from unittest import mock

from dpselect.kernels.compilation import Kernel


@contextmanager
def in_plain_python():
    """Run all kernels in plain Python, also those that are compiled already."""
    with mock.patch.object(Kernel, "__call__", Kernel.run_plainly):
        yield
