"""Rows are cut into blocks, and threads share them."""

import time

import numpy as np
import pytest

from dpselect.parallel import cut_rows, over_rows

BOUNDS = np.concatenate([[0], np.cumsum([3, 1, 40, 2, 2, 7] * 20)])


@pytest.mark.parametrize("threads", ["1", "2", "5"])
def test_blocks_cover_every_row_once_and_no_result_is_lost(threads, monkeypatch):
    monkeypatch.setenv("DPSELECT_THREADS", threads)
    found = over_rows(BOUNDS, lambda first, last: (first, last), seconds=1.0, most=50)
    ends = sorted(found)
    assert [first for first, _ in ends] == [0, *(last for _, last in ends[:-1])]
    assert ends[-1][1] == BOUNDS.size - 1
    assert all(BOUNDS[last] - BOUNDS[first] <= 50 for first, last in found)
    assert len(found) >= 2 * int(threads)


def test_a_row_above_the_limit_is_a_block_of_its_own():
    assert list(cut_rows(np.array([0, 5, 105, 110, 112]), 10)) == [(0, 1), (1, 2), (2, 4)]


def test_after_an_error_no_thread_begins_another_block(monkeypatch):
    monkeypatch.setenv("DPSELECT_THREADS", "2")
    begun = []

    def work(*block):
        begun.append(block)
        if len(begun) == 2:
            raise ValueError("a bad row")
        time.sleep(0.05)

    with pytest.raises(ValueError, match="a bad row"):
        over_rows(BOUNDS, work, seconds=1.0, most=10)
    assert len(begun) < 50 < len(list(cut_rows(BOUNDS, 10)))  # less than half of them, on the busiest machine


def test_a_call_from_within_a_block_starts_no_threads(monkeypatch):
    monkeypatch.setenv("DPSELECT_THREADS", "2")
    inner = over_rows(BOUNDS, lambda *_: over_rows(BOUNDS, lambda *block: block, seconds=1.0), seconds=1.0)
    assert set(map(tuple, inner)) == {((0, BOUNDS.size - 1),)}
