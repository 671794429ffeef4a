"""Data frames of other libraries, to Arrow and back: pandas, polars, DuckDB, Spark, and all that speak Arrow."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import pyarrow as pa


def as_arrow(frame: Any, columns: Collection[str] | None = None) -> pa.Table:  # noqa: ANN401 - any library's
    """Return a frame as an Arrow table, at least with the columns asked for. No message shows a value."""
    library = library_of(frame)
    if library == "pandas":
        return _from_pandas(frame, columns)
    if library == "polars" and hasattr(frame, "collect_schema"):
        frame = _from_polars(frame, columns)
    try:
        read = frame.toArrow if library == "pyspark" else lambda: pa.table(frame)
        table = frame if isinstance(frame, pa.Table) else read()
    except (AttributeError, TypeError, ValueError, OverflowError, pa.ArrowException):
        for name, values in frame.items() if isinstance(frame, Mapping) else ():
            if isinstance(values, Iterable):
                _array_of(name, values, pa.array)
        raise ValueError(_not_a_table(frame)) from None
    schema = pa.schema([pa.field(field.name, _plain(field.type)) for field in table.schema])
    return table if schema.equals(table.schema) else table.cast(schema)


def column_names(frame: Any) -> list[str] | None:  # noqa: ANN401 - any library's
    """Return all names of a frame of which only some columns become Arrow's: of pandas or polars. Else ``None``."""
    if hasattr(frame, "collect_schema"):
        return list(frame.collect_schema())
    return [str(name) for name in _with_index(frame).columns] if library_of(frame) == "pandas" else None


def convert_like(frame: Any, table: pa.Table) -> Any:  # noqa: ANN401 - any library's
    """Return an Arrow table as the kind of frame that another one is, or as it is if there is no such kind."""
    library = library_of(frame)
    if library == "pandas":
        return table.to_pandas(integer_object_nulls=True).astype(_kinds(frame, table))
    if library == "polars":
        import polars as pl  # noqa: PLC0415 - the caller has it

        schema = frame.collect_schema()
        kinds = {name: schema[name] for name in table.column_names if name in schema}
        picks = pl.DataFrame(table).cast({name: getattr(kind, "inner", kind) for name, kind in kinds.items()})
        return picks.lazy() if isinstance(frame, pl.LazyFrame) else picks
    return table.to_pydict() if isinstance(frame, Mapping) else table


def library_of(frame: object) -> str:
    """Return the name of the library that a frame belongs to."""
    return type(frame).__module__.partition(".")[0]


def _from_pandas(frame: Any, columns: Collection[str] | None) -> pa.Table:  # noqa: ANN401 - pandas is not installed here
    """Return the columns asked for, also of the index: others may hold what Arrow does not know."""
    if getattr(frame, "ndim", 0) != 2:
        raise ValueError(_not_a_table(frame))
    whole = _with_index(frame)
    names = [name for name in whole.columns if columns is None or str(name) in columns]
    arrays = []
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"ambiguous column {name!r}: the table has it twice")
        arrays.append(_array_of(name, whole[name], pa.Array.from_pandas))
    return pa.Table.from_arrays(arrays, [str(name) for name in names])


def _array_of(name: object, values: Any, make: Callable[[Any], pa.Array]) -> pa.Array:  # noqa: ANN401 - any column
    try:
        return make(values)
    except (TypeError, ValueError, OverflowError, pa.ArrowException):  # they may quote what they cannot read
        raise ValueError(f"column {name!r} must hold values of one kind, such as text or numbers") from None


def _from_polars(frame: Any, columns: Collection[str] | None) -> pa.Table:  # noqa: ANN401 - polars is not installed here
    """Return a polars frame, or the columns asked for of what a LazyFrame describes: it is computed here, once."""
    if hasattr(frame, "collect"):
        names = [name for name in frame.collect_schema() if columns is None or name in columns]
        try:
            frame = frame.select(names).collect()
        except Exception as error:  # its message may quote what cannot be read
            raise ValueError(
                f"table must be a LazyFrame that can be computed, and table.collect() raises {type(error).__name__}"
            ) from None
    for name, kind in frame.schema.items():
        if str(kind) == "Object" and (columns is None or name in columns):  # Arrow would get addresses in memory
            raise ValueError(
                f"column {name!r} must not hold Python objects: convert it, as in "
                f'table.with_columns(pl.Series("{name}", [str(value) for value in table["{name}"]]))'
            )
    return frame.to_arrow()


def _with_index(frame: Any) -> Any:  # noqa: ANN401 - pandas is not installed here
    """Return a pandas frame with the named levels of its index as columns."""
    levels = [name for name in frame.index.names if name is not None and name not in frame.columns]
    return frame.reset_index(level=levels) if levels else frame


def _kinds(frame: Any, table: pa.Table) -> dict[str, Any]:  # noqa: ANN401 - pandas is not installed here
    """Return the types of picks: the frame's, unless it has lists there, or integers and a unit was skipped."""
    kinds = {name: frame.dtypes[name] for name in table.column_names if name in frame.columns}
    for name, kind in kinds.items():
        if table[name].null_count and str(kind).startswith(("int", "uint")):
            kinds[name] = str(kind).replace("i", "I").replace("u", "U")
    return {c: kind for c, kind in kinds.items() if not str(kind).startswith(("object", "list", "large_list"))}


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the type with the same values that does not use views, which not all of Arrow can compute with."""
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    views = pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind)
    if not (views or pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_dictionary(kind)):
        return kind
    inner = _plain(kind.value_type)
    if inner == kind.value_type and not views:
        return kind
    return inner if pa.types.is_dictionary(kind) else pa.large_list(inner)


def _not_a_table(frame: object) -> str:
    return (
        "table must be a path, an Arrow table, or a data frame or columns that Arrow can read (pandas, polars, "
        "DuckDB, anything with the Arrow C stream interface; 64-bit integers, floats or strings), not this "
        f"{type(frame).__name__}"
    )
