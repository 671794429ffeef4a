"""Top share where the scores are, on a CUDA device: only picks are made, and no scores are copied to the host.

Rows whose coin floats cannot decide are an exception, about one in 2⁴⁰. They are read on the host, and picked there
in exact arithmetic.
"""

import math
from typing import Any

import numpy as np

from dpselect import kernels
from dpselect.arrays import as_plain, device_of, say_once, to_host
from dpselect.candidates import read_batch
from dpselect.exact import ExactStream
from dpselect.extras import install_command
from dpselect.inputs import refuse_scores
from dpselect.kernels.arrays import INVALID
from dpselect.laws import base
from dpselect.laws.top_share import TopShareLaw
from dpselect.randomness import Randomness

CUDA = 2
"""DLPack's number of the memory of a CUDA device."""

MOST = 2**31
"""There must be fewer rows than this, and fewer candidates in each."""


def select_there(law: TopShareLaw, scores: Any, weights: Any, randomness: Randomness) -> Any:
    """Return one pick for each row of scores, on their device; ``None`` if they must be copied to the host.

    They must be if they are not floats, or if rows have weights of their own.
    """
    shape = tuple(scores.shape)
    device = _device_of(scores) if shape and 0 < max(shape) < MOST and "float" in str(scores.dtype) else None
    lead = () if weights is None else tuple(getattr(weights, "shape", None) or np.shape(weights))[:-1]
    rows = math.prod(shape[:-1])
    if device is None or not 0 < rows < MOST or math.prod(lead) != 1:
        return None
    public = weights
    if weights is not None:
        public = read_batch(np.zeros(shape[-1]), 0.0, weights=weights).table.offsets.values
    plain = as_plain(scores).reshape(rows, shape[-1])
    units = randomness.units(rows if randomness.is_addressed else 1)
    nonces = units.nonces if randomness.is_addressed else None
    share = law._share()  # noqa: SLF001
    picks, complete = kernels.gpu.select(plain, public, share, base.FILTER_ERROR, units.key, nonces, device)
    if not complete:
        marks = picks.copy_to_host() if hasattr(picks, "copy_to_host") else np.asarray(to_host(picks, "picks"))
        if (marks == INVALID).any():
            refuse_scores()
        for row in np.flatnonzero(marks < 0).tolist():
            line = read_batch(to_host(plain[row], "a row"), 0.0, weights=public)
            stream = ExactStream(randomness.for_rows(rows, np.array([row])).units(1), 0)
            picks[row] = law.pick_exactly(line, 0, stream)
    return kernels.gpu.as_library(picks, scores).reshape(shape[:-1]) if shape[:-1] else int(picks[0])


def _device_of(numbers: Any) -> int | None:
    """Return the number of the CUDA device that numbers are on, if kernels can run there."""
    kind, number = device_of(numbers) or (0, 0)
    if kind != CUDA:
        return None
    if kernels.gpu.is_available():
        return number
    say_once(f"to pick on the device itself: {install_command('gpu')}")
    return None
