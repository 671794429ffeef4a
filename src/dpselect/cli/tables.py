"""From options to tables and mechanisms."""

import argparse
import dataclasses
import inspect
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dpselect.engines.grouping import LongSource, open_csv, read_table
from dpselect.engines.layout import Layout, check_column, is_list
from dpselect.engines.outputs import output_format
from dpselect.engines.sources import ArrowSource, ParquetSource, Source, table_files, table_format
from dpselect.mechanisms import Mechanism, Uniform
from dpselect.registry import MECHANISMS

__all__ = [
    "UsageError",
    "as_options",
    "check_columns",
    "check_output",
    "make_layout",
    "make_mechanism",
    "open_tables",
    "parse_numbers",
    "read_list",
]

FAMILIES: dict[Any, str] = {record.constructor: name for name, record in MECHANISMS.items()}
FAMILIES[Uniform] = "uniform"
"""The name whose constructor takes all fields of a family."""


class UsageError(ValueError):
    """Options that do not fit together."""

    exit_code = 2


def check_output(options: argparse.Namespace) -> None:
    """Raise if the output has a format that nobody can write."""
    try:
        if options.output is not None:
            output_format(options.output)
    except ValueError as error:
        raise UsageError(f"--{error}") from None


def make_mechanism(options: argparse.Namespace) -> Mechanism:
    """Return the mechanism that the options describe."""
    if options.mechanism not in MECHANISMS:
        raise UsageError(f"--mechanism must be one of {', '.join(MECHANISMS)}, not {options.mechanism!r}")
    make = MECHANISMS[options.mechanism].constructor
    fields = dict(options.parameter)
    fixed = {"epsilon", *getattr(make, "keywords", {})} - {
        "tilt"
    }  # "em" stands for Gumbel noise, whatever else is said
    for name in fields:
        if name in fixed or name not in inspect.signature(make).parameters:
            raise UsageError(f"--parameter: {options.mechanism} has no field {name!r} to set")
    try:
        return make(epsilon=options.epsilon, **fields)
    except ValueError as error:
        raise UsageError(f"--{'parameter ' if str(error).startswith(tuple(fields)) else ''}{error}") from None


def as_options(mechanism: Mechanism) -> str:
    """Return the options that describe a mechanism, all but ``--epsilon``."""
    name = FAMILIES[type(mechanism)]
    fields = {f.name: (getattr(mechanism, f.name), f.default) for f in dataclasses.fields(mechanism)}  # type: ignore[arg-type]
    changed = {key: value for key, (value, default) in fields.items() if key != "epsilon" and value != default}
    return " ".join([f"--mechanism {name}", *(f"--parameter {key}={value}" for key, value in changed.items())])


def read_list(option: str, text: str) -> list[float]:
    """Return numbers with commas between them."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"{option} must be numbers with commas between them, such as 1,0.5,2") from None


def open_tables(options: argparse.Namespace, scratch: Path | None) -> tuple[Source, Layout]:
    """Return the table of units and its layout; long tables are sorted in ``scratch``."""
    if options.unit in {options.score, None if options.by_position else options.candidate}:
        raise UsageError(f"--unit must be a column of its own, not {options.unit!r}, which is another one's")
    kind = table_format(options.input, options.format)
    files = table_files(options.input, kind)
    layout = make_layout(options)
    stored = _schema(files, kind)
    check_columns(stored.names, layout.columns, options)
    if is_list(stored.field(options.score).type):
        make: Any = ParquetSource if kind == "parquet" else lambda paths, **sizes: ArrowSource(paths[0], **sizes)
        return make(files, batch_candidates=options.batch_candidates), layout
    if options.by_position:
        raise UsageError("--by-position needs a list column of scores: a long table has a candidate in each row")
    numbers = [name for name in layout.columns if name not in {options.unit, options.candidate}]
    long = LongSource(
        files,
        kind,
        unit=options.unit,
        candidate=options.candidate,
        numbers=numbers,
        scratch=scratch,
        memory=options.memory,
        batch_candidates=options.batch_candidates,
    )
    return long, layout


def check_columns(stored: list[str], wanted: list[str], options: argparse.Namespace) -> None:
    """Raise if the input has not one column of each name; to ask for one that it lacks is wrong usage."""
    for name in wanted:
        try:
            check_column(stored, name, repr(options.input.name))
        except ValueError as error:
            if name in stored:
                raise
            is_sensitivity = name == options.sensitivity
            hint = " (or give --sensitivity a number, or a table with --candidates)" if is_sensitivity else ""
            raise UsageError(f"{error}{hint}") from None


def _schema(files: list[Path], kind: str) -> Any:  # noqa: ANN401 - an Arrow schema
    if kind == "csv":
        with open_csv(files[0]) as reader:
            return reader.schema
    return (ParquetSource(files[:1]) if kind == "parquet" else ArrowSource(files[0])).schema


def make_layout(options: argparse.Namespace) -> Layout:
    """Return the layout that the options describe."""
    if options.score in {options.candidate, options.sensitivity, options.offset, options.anchor}:
        raise UsageError(f"--score must be a column of its own, not {options.score!r}, which is another one's")
    try:
        sensitivity: str | float = float(options.sensitivity)
    except ValueError:
        sensitivity = options.sensitivity
    candidates = None
    if options.candidates is not None:
        kind = table_format(options.candidates)
        candidates = read_table(table_files(options.candidates, kind)[0], kind)
        for name in (sensitivity, options.offset, options.anchor):
            if isinstance(name, str) and name in candidates.column_names:
                check_column(candidates.column_names, name, repr(options.candidates.name))
                column = parse_numbers(candidates[name])
                candidates = candidates.set_column(candidates.column_names.index(name), name, column)
    return Layout(
        unit=options.unit,
        candidate=None if options.by_position else options.candidate,
        score=options.score,
        sensitivity=sensitivity,
        offset=options.offset,
        anchor=options.anchor,
        candidates=candidates,
        on_bad_unit=options.on_bad_unit,
    )


def parse_numbers(column: Any) -> Any:  # noqa: ANN401 - Arrow arrays
    """Return text as numbers, null where it is none."""
    if not pa.types.is_string(column.type):
        return column
    pattern = r"^\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$"
    readable = pc.if_else(pc.match_substring_regex(column, pattern), column, None)
    return pc.utf8_trim_whitespace(readable).cast(pa.float64())
