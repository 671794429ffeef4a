"""One pick out of a whole table with a row for each candidate, in two passes over its batches."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpselect import rules
from dpselect.engines.distinct import DistinctUnits
from dpselect.kernels.arrays import FloatArray
from dpselect.mechanisms.partitioned import Contender, PartitionedSelection, Summary
from dpselect.randomness import Randomness
from dpselect.tables.arrays import as_floats, decoded, flags, to_numpy
from dpselect.tables.layout import Layout
from dpselect.tables.stored import Located

__all__ = ["Identifier", "contend_over", "pick_from_table", "summarize_over"]

Identifier: TypeAlias = Any
"""An integer, a text or bytes."""


def pick_from_table(
    selection: PartitionedSelection,
    read: Callable[[], Iterable[Located]],
    layout: Layout,
    report: Callable[[int], None] = lambda _: None,
) -> Identifier:
    """Return the identifier of one candidate, drawn privately from all rows of a table.

    The table is read twice, in batches, and memory is that of a batch. ``report`` gets the number of rows of each.

    Raises:
        ValueError: If a row breaks a rule. The message names column and place, and no score. Also if two rows have
            one identifier, because they would share their coins.
    """

    def counted() -> Iterator[Located]:
        for located in read():
            yield located
            report(located.batch.num_rows)

    summary = summarize_over(selection, counted(), layout)
    if not summary.count:
        raise ValueError("the table holds no candidates")
    with DistinctUnits() as seen:
        contenders = contend_over(selection, summary, counted(), layout, seen)
        if not seen.are_distinct():
            raise _repeated(layout)
    return selection.decide(contenders)


def summarize_over(selection: PartitionedSelection, batches: Iterable[Located], layout: Layout) -> Summary:
    """Return the summary of all batches: the first pass."""
    summary = selection.summarize([], [])
    for located in batches:
        _, scores, sensitivities = _columns(located, layout)
        summary = selection.merge([summary, selection.summarize(scores, sensitivities)])
    return summary


def contend_over(
    selection: PartitionedSelection,
    summary: Summary,
    batches: Iterable[Located],
    layout: Layout,
    seen: DistinctUnits | None = None,
) -> list[Contender]:
    """Return the candidates of all batches that can still win: the second pass."""
    kept: list[Contender] = []
    for located in batches:
        identifiers, scores, sensitivities = _columns(located, layout)
        try:
            kept += selection.contend(summary, identifiers, scores, sensitivities)
        except ValueError:
            if len(np.unique(identifiers)) < len(identifiers):
                raise _repeated(layout) from None
            raise
        if kept:
            best = max(contender.priority for contender in kept)
            kept = [contender for contender in kept if contender.priority == best]
        if seen is not None and len(identifiers):
            seen.add(Randomness.keyed(selection.key, identifiers).units(len(identifiers)).nonces)
    return kept


def _columns(located: Located, layout: Layout) -> tuple[Any, FloatArray, FloatArray]:
    batch = located.batch
    column = decoded(batch.column(layout.pick_name))
    _refuse(located, flags(column.is_null()), layout.pick_name, "is missing")
    scores = as_floats(layout.score, batch.column(layout.score))
    _check(located, scores, layout.score, "scores")
    name = layout.sensitivity
    if not isinstance(name, str):
        sensitivities = np.full(batch.num_rows, name)
    else:
        sensitivities = layout.join(name, column) if layout.is_joined(name) else as_floats(name, batch.column(name))
        _check(located, sensitivities, name, "sensitivities")
    integers = pa.types.is_integer(column.type)
    return to_numpy(column) if integers else column.to_pylist(), scores, sensitivities


def _check(located: Located, values: FloatArray, column: str, argument: str) -> None:
    for rule in (rules.PRESENT, *rules.NUMBERS[argument]):
        _refuse(located, rule.is_broken(values), column, rule.words)


def _refuse(located: Located, bad: NDArray[np.bool_], column: str, rule: str) -> None:
    if bad.any():
        row = int(np.argmax(bad)) + (located.first or 0)
        raise ValueError(f"{located.place}, row {row}: column {column!r} {rule}")


def _repeated(layout: Layout) -> ValueError:
    return ValueError(f"column {layout.pick_name!r} {rules.DISTINCT_CANDIDATES}: some candidate has two rows")
