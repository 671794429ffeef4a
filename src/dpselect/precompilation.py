"""Compiling ahead: for the image of a container, for a fleet of workers, or before a demonstration."""

import itertools
from typing import Any

import numpy as np

from dpselect.inputs import load_compiler
from dpselect.kernels.compilation import compiled_at_once
from dpselect.mechanisms import HeterogeneousNoisyMax, Mechanism, NoisyMax, TopShare
from dpselect.registry import MECHANISMS


def compile(*mechanisms: str | Mechanism) -> None:  # noqa: A001 - its name at the command line, too
    """Compile the kernels of some mechanisms, or of all in ``dps.MECHANISMS``, and keep them on disk.

    You never need to call this: small calls need no compiled kernels, and large calls compile what they use. It
    moves the wait to a time of your choice. Kernels are kept in the directory that the environment variable
    ``DPSELECT_CACHE`` names, or else beside the package or in your own cache.

    Args:
        mechanisms: Mechanisms, or names of mechanisms in ``dps.MECHANISMS``. A mechanism's noise decides which
            kernels it needs; other parameters make no difference.

    Example:
        >>> import dpselect as dps
        >>> dps.compile("uniform", dps.NoisyMax(epsilon=1.0, noise="gumbel"))
    """
    chosen = [_mechanism(given) for given in mechanisms or MECHANISMS]
    with compiled_at_once():
        load_compiler()
        for mechanism in chosen:  # in every way that has kernels of its own
            rows = np.eye(2, max(2, mechanism.least_size))
            numbers: list[dict[str, Any]] = [{}, dict.fromkeys(mechanism.takes, 0.5)]
            for width, public in itertools.product((0.0, 1.0), numbers):
                mechanism.select(rows, width, **public)
                if mechanism.count is None:
                    mechanism.pmf(rows, width, **public)


def load_kernels(mechanism: Mechanism) -> None:
    """Load the compiler and what a large call needs of kernels, for the most usual mechanisms."""
    single = getattr(mechanism, "mechanism", mechanism)
    load_compiler()
    if isinstance(single, HeterogeneousNoisyMax | NoisyMax | TopShare):  # others may run anyone's code
        widths = np.linspace(1.0, 2.0, 1 << 14).reshape(256, 64)
        single.select(np.zeros(widths.shape), widths if single.uses_sensitivities else None)


def _mechanism(given: str | Mechanism) -> Mechanism:
    if isinstance(given, Mechanism):
        return given
    if given not in MECHANISMS:
        raise ValueError(f"mechanism must be one of {', '.join(MECHANISMS)}; got {given!r}")
    return MECHANISMS[given](epsilon=1.0)
