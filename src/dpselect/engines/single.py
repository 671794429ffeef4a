"""One pick out of a whole table, a row for each candidate, in two passes over its batches."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from dpselect.engines.distinct import DistinctUnits
from dpselect.engines.layout import Layout, as_floats, check_column, is_identifier, is_number
from dpselect.engines.sources import Located
from dpselect.kernels.arrays import FloatArray
from dpselect.mechanisms.partitioned import Contender, PartitionedSelection, Summary
from dpselect.randomness import Randomness

__all__ = ["check_types", "column_names", "contend_over", "select_one", "summarize_over"]


def select_one(
    selection: PartitionedSelection,
    read: Callable[[], Iterable[Located]],
    layout: Layout,
    tell: Callable[[int], None] = lambda _: None,
) -> Any:  # noqa: ANN401 - an identifier
    """Return the identifier of one candidate, drawn privately from all rows of a table.

    The table is read twice, in batches; memory is a batch's. ``tell`` is told how many rows were read.

    Raises:
        ValueError: If a row breaks a rule; the message names column and place, and no score. Also if two rows have
            one identifier, because they would share their coins.
    """

    def counted() -> Iterator[Located]:
        for located in read():
            yield located
            tell(located.batch.num_rows)

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
        part = selection.summarize(scores, sensitivities)
        summary = selection.merge([summary, part])
    return summary


def contend_over(
    selection: PartitionedSelection,
    summary: Summary,
    batches: Iterable[Located],
    layout: Layout,
    seen: DistinctUnits | None = None,
) -> list[Contender]:
    """Return who of all batches is still in the race: the second pass."""
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


def check_types(schema: Any, layout: Layout) -> None:  # noqa: ANN401 - an Arrow schema
    """Raise if a column is unknown, or not of a type that can be read."""
    for name in column_names(layout):
        check_column(schema.names, name)
        fits = is_identifier if name == layout.candidate else is_number
        if not fits(schema.field(name).type):
            wanted = "integers, text or bytes" if name == layout.candidate else "numbers"
            raise ValueError(f"column {name!r} must hold {wanted}, not {schema.field(name).type}")


def column_names(layout: Layout) -> list[str]:
    """Return the columns that are read, each once. There are no units: a candidate may be called a user."""
    sensitivity = layout.sensitivity
    names = [layout.pick_name, layout.score]
    if isinstance(sensitivity, str) and not layout.is_joined(sensitivity):
        names.append(sensitivity)
    return list(dict.fromkeys(names))


def _columns(located: Located, layout: Layout) -> tuple[Any, FloatArray, FloatArray]:
    batch = located.batch
    column = batch.column(layout.pick_name)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    _refuse(located, column.is_null().to_numpy(zero_copy_only=False), layout.pick_name, "is missing")
    scores = as_floats(layout.score, batch.column(layout.score))
    _refuse(located, np.isnan(scores), layout.score, "is missing or not a number")
    _refuse(located, np.isinf(scores), layout.score, "must be finite")
    sensitivities = layout.flat_sensitivities(batch, column)
    if isinstance(layout.sensitivity, str):
        _refuse(located, np.isnan(sensitivities), layout.sensitivity, "is missing or not a number")
        _refuse(located, sensitivities < 0, layout.sensitivity, "must not be negative")
    integers = pa.types.is_integer(column.type)
    return column.to_numpy(zero_copy_only=False) if integers else column.to_pylist(), scores, sensitivities


def _repeated(layout: Layout) -> ValueError:
    return ValueError(f"column {layout.pick_name!r} must name each candidate once: some has two rows")


def _refuse(located: Located, bad: Any, column: str, rule: str) -> None:  # noqa: ANN401 - an array of flags
    if np.any(bad):
        row = int(np.argmax(bad)) + (located.first or 0)
        raise ValueError(f"{located.place}, row {row}: column {column!r} {rule}")
