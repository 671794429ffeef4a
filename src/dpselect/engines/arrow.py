"""Picks and probabilities for Arrow record batches: the one implementation that files and Spark use."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpselect import parameters as check
from dpselect import rules
from dpselect.engines.distinct import DistinctUnits
from dpselect.kernels.arrays import WordArray
from dpselect.mechanisms.base import Mechanism
from dpselect.randomness import Randomness, RepeatedUnitsError
from dpselect.tables.arrays import decoded, flags, split_lists, to_numpy
from dpselect.tables.layout import Layout
from dpselect.tables.units import BadUnitsError, find_problems, read_units

__all__ = ["BadUnitsError", "Layout", "PickTransform", "PmfTransform"]

PROBLEM = "problem"
"""The column that says what is wrong with a unit, where bad units are skipped."""

RANK = "rank"
"""The column that says which pick of its unit's list a row is, from 1."""


@dataclass(frozen=True)
class PickTransform:
    r"""A transform of record batches of units into record batches with one private pick, or list, for each unit.

    For a unit with candidates a = 1 … k it draws from the mechanism's law with the stream of (key, unit). So a pick
    depends on the key, the unit and its row, and on nothing else: not on batches, partitions, order or retries.
    With a :class:`~dpselect.TopK` the picks of a unit are a list; :meth:`rows` gives each pick a row and a rank.

    Privacy:
        That of the mechanism, for each unit, provided that you use one key for one release. Picks are candidate
        identifiers; scores go nowhere. If you skip bad units, the output shows which ones were skipped, and for
        scores that are not numbers this depends on the data.

    Cost:
        That of the mechanism. List columns of float64 are not copied.

    Args:
        mechanism: Any mechanism.
        key: 32 secret bytes. Keep them as long as you may have to compute the release again.
        layout: Where the columns are.

    Example:
        >>> import dpselect as dps, pyarrow as pa
        >>> from dpselect.engines.arrow import Layout, PickTransform
        >>> batch = pa.RecordBatch.from_pydict({
        ...     "user": ["ann", "bob"],
        ...     "candidate": [["tea", "milk"], ["tea", "milk", "rum"]],
        ...     "score": [[9.0, 1.0], [0.0, 7.0, 2.0]],
        ...     "sensitivity": [[0.1, 0.1], [0.1, 0.1, 0.1]],
        ... })
        >>> picks = PickTransform(dps.NoisyMax(epsilon=5.0), bytes(32), layout=Layout())
        >>> picks.transform(batch).to_pydict()
        {'user': ['ann', 'bob'], 'candidate': ['tea', 'milk']}

    References:
        docs/decisions/0003-streams-addressed-by-unit.md
    """

    mechanism: Mechanism
    key: bytes = field(repr=False)
    _: KW_ONLY
    layout: Layout

    def __post_init__(self) -> None:
        Randomness.keyed(self.key, [0])  # refuses a bad key before any work
        _refuse_name(self.layout, RANK, added=self._makes_lists)
        _refuse_name(self.layout, PROBLEM, added=self.layout.on_bad_unit == "skip")

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the picks of each batch; units must be distinct over all batches."""
        with DistinctUnits() as seen:
            yield from self.over(batches, seen)

    def over(self, batches: Iterable[pa.RecordBatch], seen: DistinctUnits) -> Iterator[pa.RecordBatch]:
        """Yield the picks of each batch. Raise at the end if a unit occurred twice, or was seen before."""
        for batch in batches:
            picks, addresses = self._transform(batch)
            seen.add(addresses)
            yield picks
        if not seen.are_distinct():
            raise RepeatedUnitsError(f"{self._rule}: some unit has two rows")

    def transform(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the picks of one batch."""
        return self._transform(batch)[0]

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Check the schema of a table of units, and return that of its picks."""
        self.layout.check_schema(schema)
        kind = self.layout.pick_type(schema)
        picks = pa.large_list(kind) if self._makes_lists else kind
        return _schema(self.layout, schema, pa.field(self.layout.pick_name, picks))

    def rows_schema(self, schema: pa.Schema) -> pa.Schema:
        """Check the schema of a table of units, and return that of the rows to publish."""
        picks = self.schema(schema)
        if not self._makes_lists:
            return picks
        name = self.layout.pick_name
        ranks = [pa.field(RANK, pa.int32()), pa.field(name, picks.field(name).type.value_type)]
        return pa.schema([picks.field(0), *ranks, *(picks.field(i) for i in range(2, len(picks)))])

    def rows(self, picks: pa.RecordBatch) -> pa.RecordBatch:
        """Return transformed units as rows to publish: one for each pick. A unit that was skipped comes last."""
        if not self._makes_lists:
            return picks
        lists = picks.column(self.layout.pick_name)
        bad = picks.filter(lists.is_null())
        good = picks.filter(lists.is_valid())
        flat, bounds = split_lists(good.column(self.layout.pick_name))
        sizes = np.diff(bounds)
        ranks = np.arange(bounds[-1]) - np.repeat(bounds[:-1], sizes) + 1
        units = good.column(0).take(pa.array(np.repeat(np.arange(sizes.size), sizes)))
        columns = [units, pa.array(ranks.astype(np.int32)), flat]
        nulls = [bad.column(0), pa.nulls(len(bad), pa.int32()), pa.nulls(len(bad), flat.type)]
        if PROBLEM in picks.schema.names[2:]:
            columns.append(pa.nulls(len(flat), pa.string()))
            nulls.append(bad.column(PROBLEM))
        names = [self.layout.unit, RANK, self.layout.pick_name, PROBLEM][: len(columns)]
        joined = [pa.concat_arrays(pair) if len(bad) else pair[0] for pair in zip(columns, nulls, strict=True)]
        return pa.RecordBatch.from_arrays(joined, names)

    def addresses(self, units: pa.Array) -> WordArray:
        """Return the addresses of units."""
        return self._randomness(units).units(len(units)).nonces

    def _transform(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, WordArray]:
        schema = self.schema(batch.schema)
        (picks, addresses), problems = _compute(self.layout, batch, self._pick, self.mechanism.least_size)
        columns = [batch.column(self.layout.unit), picks.cast(schema.field(1).type)]
        return _emit(columns, schema, problems), addresses

    def _pick(self, batch: pa.RecordBatch) -> tuple[pa.Array, WordArray]:
        if not batch.num_rows:
            kind = self.schema(batch.schema).field(1).type
            return pa.array([], kind), np.empty((0, 3), dtype=np.uint32)
        read = read_units(batch, self.layout)
        units = batch.column(self.layout.unit)
        try:
            randomness = self._randomness(units)
        except RepeatedUnitsError:
            counts = pc.value_counts(units)
            repeated = counts.filter(pc.greater(counts.field("counts"), 1))[0]["values"].as_py()
            raise RepeatedUnitsError(f"{self._rule}: {repeated!r} has two rows") from None
        picks = self.mechanism.select(read.scores, read.sensitivities, randomness=randomness, **read.public)
        name = read.name_lists if self._makes_lists else read.name_picks
        return name(self.layout, picks), randomness.units(len(picks)).nonces

    @property
    def _makes_lists(self) -> bool:
        return self.mechanism.count is not None

    @property
    def _rule(self) -> str:
        return f"column {self.layout.unit!r} {rules.DISTINCT_UNITS}"

    def _randomness(self, units: pa.Array) -> Randomness:
        plain = decoded(units)
        integers = pa.types.is_integer(plain.type)
        return Randomness.keyed(self.key, to_numpy(plain) if integers else plain.to_pylist())


@dataclass(frozen=True)
class PmfTransform:
    """A transform of record batches of units into record batches with the exact probability of every candidate.

    Privacy:
        **None**: probabilities reveal scores. For public or synthetic data, audits, and anyone who may see the
        scores.

    Cost:
        That of the mechanism's ``pmf``.

    Args:
        mechanism: Any mechanism.
        layout: Where the columns are.

    Example:
        >>> import dpselect as dps, pyarrow as pa
        >>> from dpselect.engines.arrow import Layout, PmfTransform
        >>> batch = pa.RecordBatch.from_pydict({"user": [1], "score": [[0.0, 1.0]]})
        >>> law = PmfTransform(dps.Uniform(), layout=Layout(candidate=None, sensitivity=1.0))
        >>> law.transform(batch).to_pydict()
        {'user': [1], 'probability': [[0.5, 0.5]]}

    References:
        None needed.
    """

    mechanism: Mechanism
    _: KW_ONLY
    layout: Layout

    def __post_init__(self) -> None:
        check.single_pick("mechanism", self.mechanism, "pmf")
        _refuse_name(self.layout, PROBLEM, added=self.layout.on_bad_unit == "skip")

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the probabilities of each batch."""
        return map(self.transform, batches)

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Check the schema of a table of units, and return that of its probabilities."""
        self.layout.check_schema(schema)
        named = self.layout.candidate is not None or self.layout.candidates is not None
        lists = [pa.field(self.layout.pick_name, pa.large_list(self.layout.pick_type(schema)))] if named else []
        return _schema(self.layout, schema, *lists, pa.field("probability", pa.large_list(pa.float64())))

    def transform(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the probabilities of one batch."""
        schema = self.schema(batch.schema)
        lists, problems = _compute(self.layout, batch, self._weigh)
        wanted = schema.names[1 : 1 + len(lists)]
        columns = [lists[i].cast(schema.field(name).type) for i, name in enumerate(wanted)]
        return _emit([batch.column(self.layout.unit), *columns], schema, problems)

    def _weigh(self, batch: pa.RecordBatch) -> tuple[pa.Array, ...]:
        if not batch.num_rows:
            kinds = [field.type for field in self.schema(batch.schema) if pa.types.is_large_list(field.type)]
            return tuple(pa.array([], kind) for kind in kinds)
        read = read_units(batch, self.layout)
        weights = self.mechanism.pmf(read.scores, read.sensitivities, **read.public)
        probabilities = pa.LargeListArray.from_arrays(read.bounds, np.asarray(weights).reshape(-1))
        if read.identifiers is not None:
            return pa.LargeListArray.from_arrays(read.bounds, read.identifiers), probabilities
        if self.layout.candidates is not None:
            positions = np.arange(read.bounds[-1]) - np.repeat(read.bounds[:-1], np.diff(read.bounds))
            names = read.name_picks(self.layout, positions)
            return pa.LargeListArray.from_arrays(read.bounds, names), probabilities
        return (probabilities,)


Result = TypeVar("Result", bound=tuple[Any, ...])


def _compute(
    layout: Layout, batch: pa.RecordBatch, work: Callable[[pa.RecordBatch], Result], least: int = 1
) -> tuple[Result, pa.Array | None]:
    """Return what ``work`` makes of the good units of a batch, and what is wrong with the others.

    Arrow columns in the result are spread over all units, null for the bad ones. Problems are looked for only if
    something went wrong, so good data cost nothing more.
    """
    try:
        return work(batch), None
    except ValueError:
        problems = find_problems(batch, layout, least=least)
        if problems.null_count == len(problems):
            raise
        if layout.on_bad_unit == "raise":
            raise BadUnitsError(problems) from None
    good = flags(problems.is_null())
    places = pa.array(np.cumsum(good) - 1, mask=~good)
    result = work(batch.filter(problems.is_null()))
    return cast("Result", tuple(p.take(places) if isinstance(p, pa.Array) else p for p in result)), problems


def _refuse_name(layout: Layout, name: str, *, added: bool) -> None:
    if added and name in {layout.unit, layout.pick_name}:
        raise ValueError(f"no column may be called {name!r}: the output gets a column of that name; rename yours")


def _schema(layout: Layout, schema: pa.Schema, *fields: pa.Field) -> pa.Schema:
    problem = [pa.field(PROBLEM, pa.string())] if layout.on_bad_unit == "skip" else []
    return pa.schema([pa.field(layout.unit, schema.field(layout.unit).type), *fields, *problem])


def _emit(columns: list[pa.Array], schema: pa.Schema, problems: pa.Array | None) -> pa.RecordBatch:
    if PROBLEM in schema.names[-1:]:
        columns = [*columns, pa.nulls(len(columns[0]), pa.string()) if problems is None else problems]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
