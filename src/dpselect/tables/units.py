"""The units of a record batch: their numbers, ready for a mechanism, and what is wrong with them.

Scores are private: a problem is reported by column and rule, never by value.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpselect import rules
from dpselect.kernels.arrays import IndexArray
from dpselect.tables.arrays import as_floats, from_numpy, read_numbers, rows_with_duplicates, split_lists, to_numpy
from dpselect.tables.layout import Layout


class UnitBatch(NamedTuple):
    """The units of a batch, ready for a mechanism."""

    identifiers: pa.Array | None
    """Candidate identifiers, flat; ``None`` if candidates are known by their position."""
    bounds: IndexArray
    scores: Any
    sensitivities: Any
    public: dict[str, Any]

    def __repr__(self) -> str:
        # Scores are private.
        return f"UnitBatch({self.bounds.size - 1} units, {self.bounds[-1] - self.bounds[0]} candidates)"

    def name_lists(self, layout: Layout, lists: IndexArray) -> pa.Array:
        """Return the identifiers of lists of picks, a row for each unit; negative positions are left out."""
        rows, _ = np.nonzero(lists >= 0)
        ends = np.concatenate([[0], np.cumsum((lists >= 0).sum(axis=1))])
        return pa.LargeListArray.from_arrays(from_numpy(ends), self.name_picks(layout, lists[lists >= 0], rows))

    def name_picks(self, layout: Layout, picks: IndexArray, rows: IndexArray | None = None) -> pa.Array:
        """Return the identifiers of picks, which are positions: one for each unit, or those of the given rows."""
        if self.identifiers is not None:
            starts = self.bounds[:-1] if rows is None else self.bounds[rows]
            return self.identifiers.take(from_numpy(starts + picks))
        if layout.candidates is not None:
            return layout.candidates[layout.pick_name].combine_chunks().take(from_numpy(picks))
        return from_numpy(picks)


def read_units(batch: pa.RecordBatch, layout: Layout) -> UnitBatch:
    """Return the units of a batch, without copying lists; refuse it if :func:`find_problems` would find any."""
    if batch.column(layout.unit).null_count:
        raise ValueError("a unit is missing")
    _, bounds = split_lists(batch.column(layout.score))
    identifiers = None
    if layout.candidate is not None:
        identifiers, own_bounds = split_lists(batch.column(layout.candidate))
        if identifiers.null_count or not np.array_equal(own_bounds, bounds):
            raise ValueError("candidates do not fit scores")
        if rows_with_duplicates(identifiers, bounds).any():
            raise ValueError("candidates are not distinct")
    elif layout.candidates is not None and (np.diff(bounds) != len(layout.candidates)).any():
        raise ValueError("rows do not fit the table of candidates")

    def read(name: str) -> Any:  # noqa: ANN401 - numbers in any form that a mechanism takes
        flat, own_bounds = split_lists(batch.column(name))
        if not np.array_equal(own_bounds, bounds):
            raise ValueError(f"{name} does not fit scores")
        dense = layout.is_shared and len(bounds) > 1
        values = as_floats(name, flat)
        return values.reshape(-1, len(layout.candidates)) if dense else (values, bounds)

    public: dict[str, Any] = {}
    for argument, name in layout.public_columns.items():
        if isinstance(name, str) and layout.is_joined(name):
            public[argument] = layout.joined[name] if identifiers is None else layout.join(name, identifiers)
        else:
            public[argument] = read(name) if isinstance(name, str) else name
    return UnitBatch(identifiers, bounds, read(layout.score), public.pop("sensitivities", None), public)


def find_problems(batch: pa.RecordBatch, layout: Layout, *, least: int = 1) -> pa.Array:
    """Return the column and the rule that each unit breaks, or null. A unit needs at least ``least`` candidates."""
    problems: NDArray[Any] = np.full(batch.num_rows, None, dtype=object)
    rows = np.arange(batch.num_rows)

    def add(bad: NDArray[np.bool_], column: str, rule: str) -> None:
        found = rows[bad]
        problems[found[problems[found] == None]] = f"column {column!r} {rule}"  # noqa: E711 - element by element

    for name in layout.columns:
        if batch.column(name).null_count:
            add(to_numpy(batch.column(name).is_null()), name, "is missing")
    lists = layout.columns[1:]
    sizes = {name: to_numpy(pc.fill_null(pc.list_value_length(batch.column(name)), 0)) for name in lists}
    expected = sizes[layout.score]
    add(expected == 0, layout.score, rules.HAS_CANDIDATES)
    add(expected < least, layout.score, f"must hold at least {least} candidates, for a list of {least}")
    for name in lists:
        add(sizes[name] != expected, name, f"must have as many entries as {layout.score!r}")
    if layout.is_shared:
        add(expected != len(layout.candidates), layout.score, "must have an entry for each candidate")
    rows = np.flatnonzero(problems == None)  # noqa: E711
    if rows.size:
        _find_bad_values(batch.take(from_numpy(rows)), layout, add)
    return pa.array(problems, pa.string())


def _find_bad_values(
    batch: pa.RecordBatch, layout: Layout, add: Callable[[NDArray[np.bool_], str, str], None]
) -> None:
    """Find units whose lists fit together but hold something that is not allowed."""
    identifiers, bounds = split_lists(batch.column(layout.candidate or layout.score))
    if layout.candidate is not None:
        missing = _any(to_numpy(identifiers.is_null()), bounds)
        add(missing, layout.candidate, "has a candidate without an identifier")
        add(rows_with_duplicates(identifiers, bounds), layout.candidate, rules.DISTINCT_CANDIDATES)
    for argument, name in {**layout.public_columns, "scores": layout.score}.items():
        if not isinstance(name, str):
            continue  # one number for all, which is not the fault of a unit
        if argument != "scores" and layout.is_joined(name):
            shared = layout.candidate is None
            values = np.tile(layout.joined[name], len(batch)) if shared else layout.join(name, identifiers)
        else:
            values, rounded = read_numbers(split_lists(batch.column(name))[0])
            add(_any(rounded, bounds), name, rules.EXACT_INTEGERS)
        wide = layout.candidate_columns if argument == "scores" else ()
        for rule in (rules.PRESENT, *rules.NUMBERS[argument]):
            for i, column in enumerate(wide):
                add(rule.is_broken(values[i :: len(wide)]), column, rule.words)
            add(_any(rule.is_broken(values), bounds), name, rule.words)
        if argument == "weights":
            add(~_any(values > 0, bounds), name, rules.POSITIVE_WEIGHT)


def _any(entries: NDArray[np.bool_], bounds: IndexArray) -> NDArray[np.bool_]:
    """Tell for each row, none of them empty, whether any of its entries is flagged."""
    if not entries.any():
        return np.zeros(len(bounds) - 1, dtype=bool)
    return np.logical_or.reduceat(entries, bounds[:-1])
