"""Kernels that count no references must not lose arrays either."""

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys
from variants import PRIVATE, candidates


@pytest.fixture
def still_allocated():
    """Return a way to count the arrays that kernels have allocated and not freed."""
    enabled = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()

    def count():
        stats = rtsys.get_allocation_stats()
        return stats.mi_alloc - stats.mi_free

    yield count
    if not enabled:
        _nrt_python.memsys_disable_stats()


@pytest.mark.parametrize("mechanism", PRIVATE.values(), ids=PRIVATE)
def test_a_call_frees_what_its_kernels_allocate(mechanism, still_allocated):
    scores, sensitivities, public = candidates(mechanism, (40, 70), 3)
    few = {name: numbers[:3] for name, numbers in public.items()}
    calls = [
        lambda: mechanism.select(scores, np.maximum(0.25, sensitivities), **public),
        lambda: mechanism.pmf(scores[:3], sensitivities[:3], **few),
        lambda: mechanism.select(scores, sensitivities),
    ]
    for call in calls:
        call()  # compile
        before = still_allocated()
        for _ in range(5):
            call()
        assert still_allocated() == before
