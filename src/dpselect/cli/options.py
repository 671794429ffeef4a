"""From options to the library's arguments."""

import argparse
import dataclasses
import importlib
import inspect
import json
import operator
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpselect.budget import Ledger
from dpselect.engines import open_tables
from dpselect.errors import OutputError, OutputExistsError, UnknownColumnError, UsageError
from dpselect.lists import TopK
from dpselect.mechanisms import Mechanism, Uniform
from dpselect.mechanisms.base import require_mechanism
from dpselect.registry import MECHANISMS, default_mechanism
from dpselect.release import Charge, Csv, FreshKey, KeyFile, Layout, Limits, Payment
from dpselect.tables.sorting import memory_bytes

ARROW = (b"ARROW1", b"\xff\xff\xff\xff")
"""How Arrow files and streams start."""

FAMILIES: dict[Any, str] = {record.constructor: name for name, record in MECHANISMS.items()} | {Uniform: "uniform"}
"""The name whose constructor takes all fields of a family."""


@contextmanager
def named_options() -> Iterator[None]:
    """Name the option to give where the library would name an argument."""
    try:
        yield
    except UnknownColumnError as error:
        hint = ", or give --sensitivity a number" if error.role == "sensitivity" else ""
        if error.role == "sensitivity":
            hint += "; if each row is about one person, --mechanism top-share needs none"
        raise UsageError(f"{error.problem}; name it with --{error.role}{hint}") from None
    except OutputError as error:
        raise UsageError(f"--{error}") from None
    except OutputExistsError as error:
        how = (
            "--overwrite replaces it; with --key-file or --budget the same command gives the same picks for nothing"
        )
        error.args = (f"{error.problem}. {how}",)
        raise


def with_mechanism(options: argparse.Namespace, table: Path) -> argparse.Namespace:
    """Return the options with a mechanism: if none is named, the table's default, and the reason for it."""
    if options.mechanism is not None:
        return options
    tables = open_tables(table, make_layout(options), limits=make_limits(options))
    record, reason = default_mechanism(sensitivities=tables.layout.sensitivity is not None)
    return argparse.Namespace(**vars(options) | {"mechanism": record.name, "reason": reason})


def make_mechanism(options: argparse.Namespace) -> Mechanism:
    """Return the mechanism that the options describe."""
    if ":" in options.mechanism:
        make = load_object(options.mechanism)
        if isinstance(make, Mechanism):
            if make.guarantee.epsilon != options.epsilon:
                raise UsageError(f"--epsilon must be {make.guarantee.epsilon!r}, the ε of one pick of {make}")
            return make
        if not callable(make) or "epsilon" not in inspect.signature(make).parameters:
            raise UsageError(f"--mechanism {options.mechanism} must be a mechanism, or make one from epsilon=")
    elif options.mechanism in MECHANISMS:
        make = MECHANISMS[options.mechanism].constructor
    else:
        raise UsageError(
            f"--mechanism must be one of {', '.join(MECHANISMS)}, or MODULE:NAME; got {options.mechanism!r}"
        )
    fields = dict(options.parameter)
    # "em" stands for Gumbel noise, whatever else you give.
    fixed = {"epsilon", *getattr(make, "keywords", {})} - {"tilt", "keep"}
    known = [name for name in inspect.signature(make).parameters if name not in fixed]
    for name in fields:
        if name not in known:
            hint = f"it has {', '.join(known)}" if known else "it has none"
            raise UsageError(f"--parameter or --share: {options.mechanism} has no field {name!r} to set; {hint}")
    try:
        made: Mechanism = make(epsilon=options.epsilon, **fields)
        require_mechanism(made)
    except ValueError as error:
        given = str(error).startswith(tuple(fields.keys() - {"share"}))  # "share" has an option of its own
        raise UsageError(f"--{'parameter ' if given else ''}{error}") from None
    return made


def load_object(text: str) -> Any:  # noqa: ANN401 - anything that can be imported
    """Return what MODULE:NAME names; the current folder is searched first."""
    module, _, name = text.partition(":")
    if not module or not name:
        raise UsageError(f"{text!r} must be MODULE:NAME, such as own:pick for the function pick of own.py")
    sys.path.insert(0, str(Path.cwd()))
    try:
        return operator.attrgetter(name)(importlib.import_module(module))
    except Exception as error:
        raise UsageError(f"{text} cannot be imported: {type(error).__name__}: {error}") from error


def make_list(options: argparse.Namespace) -> TopK:
    """Return the list that the options describe: ``--epsilon`` is for the whole of it."""
    return TopK.within(
        options.epsilon,
        mechanism=lambda epsilon: make_mechanism(argparse.Namespace(**vars(options) | {"epsilon": epsilon})),
        count=options.count,
        short_rows=options.short_rows or "refuse",
    )


def as_options(mechanism: Mechanism) -> str:
    """Return the options that describe a mechanism, without ``--epsilon``."""
    name = FAMILIES[type(mechanism)]
    fields = {f.name: (getattr(mechanism, f.name), f.default) for f in dataclasses.fields(mechanism)}  # type: ignore[arg-type]
    changed = {key: value for key, (value, default) in fields.items() if key != "epsilon" and value != default}
    texts = {
        key: value if isinstance(value, str) else json.dumps(value, separators=(",", ":")).strip("[]")
        for key, value in changed.items()
    }
    return " ".join([f"--mechanism {name}", *(f"--parameter {key}={text}" for key, text in texts.items())])


def as_command(mechanism: Mechanism, epsilon: float) -> str:
    """Return a command that picks with a mechanism, to be pasted."""
    return f"dpselect select scores.csv --epsilon {epsilon!r} {as_options(mechanism)} --output picks.csv"


@contextmanager
def input_path(options: argparse.Namespace) -> Iterator[Path]:
    """Yield the path of the input. The standard input is copied to a file, because it may have to be read twice."""
    if str(options.input) != "-":
        yield options.input
        return
    with tempfile.TemporaryDirectory(prefix="dpselect-") as directory:
        path = Path(directory) / "standard input"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        with path.open("rb") as file:
            magic = file.read(6)
        kind = "parquet" if magic.startswith(b"PAR1") else "arrow" if magic.startswith(ARROW) else "csv"
        yield path.rename(path.with_suffix(f".{options.format or kind}"))


def read_list(option: str, text: str) -> list[float]:
    """Return numbers with commas between them."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"{option} must be numbers with commas between them, such as 1,0.5,2") from None


def make_layout(options: argparse.Namespace) -> Layout:
    """Return the layout that the options describe."""
    try:
        sensitivity = options.sensitivity and float(options.sensitivity)
    except ValueError:
        sensitivity = options.sensitivity
    return Layout(
        unit=None if getattr(options, "one", False) else options.unit,
        candidate=None if options.by_position else options.candidate,
        score=options.score,
        sensitivity=sensitivity,
        offset=options.offset,
        weight=options.weight,
        candidates=options.candidates,
        on_bad_unit=options.on_bad_unit,
        format=_format(options),
    )


def _format(options: argparse.Namespace) -> Any:  # noqa: ANN401 - a name, or how to read CSV
    try:
        given = {name: getattr(options, name) for name in ("delimiter", "encoding", "decimal")}
        csv = Csv(**{name: value for name, value in given.items() if value is not None})
    except ValueError as error:
        raise UsageError(f"--{error}") from None
    if csv != Csv() and options.format not in {None, "csv"}:
        raise UsageError(f"--delimiter, --encoding and --decimal are for CSV, not for --format {options.format}")
    return options.format if csv == Csv() else csv


def make_limits(options: argparse.Namespace) -> Limits:
    """Return how much is held in memory."""
    try:
        memory_bytes(options.memory)
    except ValueError as error:
        raise UsageError(f"--{error}") from None
    return Limits(options.memory, options.batch_candidates or Limits().batch_candidates)


@contextmanager
def open_payment(options: argparse.Namespace) -> Iterator[Payment]:
    """Yield the payment that the options ask for, with the ledger open."""
    if options.budget and not (options.population and options.release):
        raise UsageError("--budget needs --population and --release")
    if options.budget and options.key_file:
        raise UsageError("--key-file does not go with --budget, which keeps a key for each release; leave one out")
    if not options.budget and (options.population or options.release or options.keys):
        raise UsageError("--population, --release and --keys need --budget")
    if not options.budget:
        yield KeyFile(options.key_file) if options.key_file else FreshKey(overwrite=options.overwrite)
        return
    with Ledger.open(options.budget, keys=options.keys) as ledger:
        yield Charge(ledger, options.population, options.release, options.units_per_person, options.what)
