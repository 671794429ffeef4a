"""What tables need of Arrow arrays."""

import numpy as np
import pyarrow as pa
import pytest

from dpselect.tables.arrays import rows_with_duplicates


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "int64", "uint64"])
def test_a_candidate_twice_in_a_row_is_found_whatever_the_integers(kind):
    limits, source = np.iinfo(kind), np.random.default_rng(1)
    known = np.array(
        [limits.min, limits.min // 2, 0, 1, limits.max // 2, limits.max // 2 + 1, limits.max], dtype=kind
    )
    for _ in range(100):
        rows = [source.choice(known, size) for size in source.integers(1, 6, 6)]
        bounds = np.cumsum([0, *map(len, rows)])
        found = rows_with_duplicates(pa.array(np.concatenate(rows)), bounds)
        assert found.tolist() == [len(set(row.tolist())) < len(row) for row in rows]
