"""Picks and probabilities for Arrow record batches: the one implementation that files and Spark use."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpselect import parameters as check
from dpselect import rules
from dpselect.errors import BadUnitsError, RepeatedUnitsError
from dpselect.kernels.arrays import WordArray
from dpselect.mechanisms.base import Mechanism
from dpselect.randomness import Randomness, are_distinct
from dpselect.tables.arrays import decoded, from_numpy, to_numpy
from dpselect.tables.layout import Layout
from dpselect.tables.units import find_problems, read_units

__all__ = ["Layout", "PickTransform", "PmfTransform"]

PROBLEM = "problem"
"""The column that says what is wrong with a unit, where bad units are skipped."""

RANK = "rank"
"""The column that says which pick of its unit's list a row is, from 1."""


class UnitTransform(ABC):
    """What both transforms share: a schema is checked once, and bad units are found where something went wrong."""

    mechanism: Mechanism
    layout: Layout

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the result of each batch."""
        return map(self.transform, batches)

    def transform(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the result of one batch."""
        return self._apply(self._work, batch)

    @abstractmethod
    def _work(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Return the columns that are made of the good units of a batch."""

    @abstractmethod
    def _made(self, schema: pa.Schema) -> list[pa.Field]:
        """Return the names and types of these columns, for a table of units with a schema."""

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Check the schema of a table of units, once, and return that of the result."""
        self.columns(schema)
        problem = [pa.field(PROBLEM, pa.string())] if self.layout.on_bad_unit == "skip" else []
        return pa.schema([schema.field(self.layout.unit), *self._made(schema), *problem])

    def columns(self, schema: pa.Schema) -> Layout:
        """Check the schema of a table of units, once, and return the layout of its columns."""
        if schema not in self._layouts:
            layout = self.layout.found_in(schema.names)
            layout.check(schema, lists=True)
            layout.check_mechanism(self.mechanism, schema.names)
            self._layouts[schema] = layout
        return self._layouts[schema]

    @cached_property
    def _layouts(self) -> dict[pa.Schema, Layout]:
        return {}

    def rows_schema(self, schema: pa.Schema) -> pa.Schema:
        """Check the schema of a table of units, and return that of the rows to publish."""
        return self.schema(schema)

    def rows(self, results: pa.RecordBatch) -> pa.RecordBatch:
        """Return transformed units as rows to publish."""
        return results

    def _refuse_name(self, name: str, *, added: bool) -> None:
        if added and name in {self.layout.unit, self.layout.pick_name}:
            raise ValueError(
                f"no column may be called {name!r}: the output gets a column of that name; rename yours"
            )

    def _apply(self, work: Callable[[pa.RecordBatch], list[pa.Array]], batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns that ``work`` makes of the good units of a batch, null for the others.

        Problems are looked for only if something went wrong, so good data cost nothing more.
        """
        schema = self.schema(batch.schema)
        kinds = [made.type for made in self._made(batch.schema)]
        problems = pa.nulls(batch.num_rows, pa.string())
        columns = [pa.nulls(batch.num_rows, kind) for kind in kinds]
        try:
            if batch.num_rows:
                columns = work(batch)
        except ValueError:
            problems = find_problems(batch, self.columns(batch.schema), least=self.mechanism.least_size)
            if problems.null_count == len(problems):
                raise
            if self.layout.on_bad_unit == "raise":
                raise BadUnitsError(problems) from None
            good = to_numpy(problems.is_null())
            if good.any():
                places = pa.array(np.cumsum(good) - 1, mask=~good)
                columns = [column.take(places) for column in work(batch.filter(problems.is_null()))]
        columns = [column.cast(kind) for column, kind in zip(columns, kinds, strict=True)]
        return pa.RecordBatch.from_arrays(
            [batch.column(self.layout.unit), *columns, problems][: len(schema)], schema=schema
        )


@dataclass(frozen=True)
class PickTransform(UnitTransform):
    r"""A transform of record batches of units into record batches with one private pick, or list, for each unit.

    A pick depends on the key, the unit and its row, and on nothing else: not on batches, partitions, order or
    retries. With a :class:`~dpselect.TopK` the picks of a unit are a list; :meth:`rows` gives each pick a row and a
    rank.

    Privacy:
        That of the mechanism, for each unit, provided that you use one key for one release. If you skip bad units,
        the output shows which ones were skipped, and for scores that are not numbers this depends on the data.

    Cost:
        That of the mechanism. List columns of float64 are not copied. A call keeps 12 bytes for each unit, to see
        that none has two rows.

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
        self._refuse_name(RANK, added=self._makes_lists)
        self._refuse_name(PROBLEM, added=self.layout.on_bad_unit == "skip")

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the picks of each batch. Raise at the end if a unit occurred twice."""
        seen: list[WordArray] = []
        for batch in batches:
            yield self._apply(partial(self._work, seen=seen), batch)
        if seen and not are_distinct(np.concatenate(seen)):
            raise RepeatedUnitsError(f"{self._rule}: some unit has two rows")

    def _made(self, schema: pa.Schema) -> list[pa.Field]:
        kind = self.layout.pick_type(schema)
        return [pa.field(self.layout.pick_name, pa.large_list(kind) if self._makes_lists else kind)]

    def rows_schema(self, schema: pa.Schema) -> pa.Schema:
        """Check the schema of a table of units, and return that of the rows to publish."""
        if not self._makes_lists:
            return self.schema(schema)
        unit, lists, *problem = self.schema(schema)
        return pa.schema([unit, (RANK, pa.int32()), (lists.name, lists.type.value_type), *problem])

    def rows(self, picks: pa.RecordBatch) -> pa.RecordBatch:
        """Return transformed units as rows to publish: one for each pick, and one for a unit that was skipped."""
        if not self._makes_lists:
            return picks
        lists = picks.column(self.layout.pick_name)
        sizes = to_numpy(pc.fill_null(pc.list_value_length(lists), 1))
        owners = np.repeat(np.arange(sizes.size), sizes)
        skipped = to_numpy(lists.is_null())[owners]
        ranks = np.arange(owners.size) - (np.cumsum(sizes) - sizes)[owners] + 1
        names = lists.flatten().take(pa.array(np.cumsum(~skipped) - 1, mask=skipped))
        unit, _, *problem = (column.take(from_numpy(owners)) for column in picks.columns)
        columns = [unit, pa.array(ranks, pa.int32(), mask=skipped), names, *problem]
        return pa.RecordBatch.from_arrays(columns, [self.layout.unit, RANK, *picks.schema.names[1:]])

    def _work(self, batch: pa.RecordBatch, seen: list[WordArray] | None = None) -> list[pa.Array]:
        read = read_units(batch, self.columns(batch.schema))
        units = decoded(batch.column(self.layout.unit))
        integers = pa.types.is_integer(units.type)
        try:
            randomness = Randomness.keyed(self.key, to_numpy(units) if integers else units.to_pylist())
        except RepeatedUnitsError:
            counts = pc.value_counts(units)
            repeated = counts.filter(pc.greater(counts.field("counts"), 1))[0]["values"].as_py()
            raise RepeatedUnitsError(f"{self._rule}: {repeated!r} has two rows") from None
        picks = self.mechanism.select(read.scores, read.sensitivities, randomness=randomness, **read.public)
        if seen is not None:
            seen.append(randomness.units(len(picks)).nonces)
        return [(read.name_lists if self._makes_lists else read.name_picks)(self.layout, picks)]

    @property
    def _makes_lists(self) -> bool:
        return self.mechanism.count is not None

    @property
    def _rule(self) -> str:
        return f"column {self.layout.unit!r} {rules.DISTINCT_UNITS}"


@dataclass(frozen=True)
class PmfTransform(UnitTransform):
    """A transform of record batches of units into record batches with the exact probability of every candidate.

    **Not private**: probabilities reveal scores. For public or synthetic data, audits, and anyone who may see the
    scores. It costs what the mechanism's ``pmf`` does.

    Example:
        >>> import dpselect as dps, pyarrow as pa
        >>> from dpselect.engines.arrow import Layout, PmfTransform
        >>> batch = pa.RecordBatch.from_pydict({"user": [1], "score": [[0.0, 1.0]]})
        >>> law = PmfTransform(dps.Uniform(), layout=Layout(candidate=None, sensitivity=1.0))
        >>> law.transform(batch).to_pydict()
        {'user': [1], 'probability': [[0.5, 0.5]]}
    """

    mechanism: Mechanism
    _: KW_ONLY
    layout: Layout

    def __post_init__(self) -> None:
        check.single_pick("mechanism", self.mechanism, "pmf")
        self._refuse_name(PROBLEM, added=self.layout.on_bad_unit == "skip")

    def _made(self, schema: pa.Schema) -> list[pa.Field]:
        named = self.layout.candidate is not None or self.layout.candidates is not None
        lists = [pa.field(self.layout.pick_name, pa.large_list(self.layout.pick_type(schema)))] if named else []
        return [*lists, pa.field("probability", pa.large_list(pa.float64()))]

    def _work(self, batch: pa.RecordBatch) -> list[pa.Array]:
        read = read_units(batch, self.columns(batch.schema))
        weights = self.mechanism.pmf(read.scores, read.sensitivities, **read.public)
        flat = [np.asarray(weights).reshape(-1)]
        if read.identifiers is not None or self.layout.candidates is not None:
            sizes = np.diff(read.bounds)
            positions = np.arange(read.bounds[-1]) - np.repeat(read.bounds[:-1], sizes)
            flat.insert(0, read.name_picks(self.layout, positions, np.repeat(np.arange(sizes.size), sizes)))
        return [pa.LargeListArray.from_arrays(read.bounds, values) for values in flat]
