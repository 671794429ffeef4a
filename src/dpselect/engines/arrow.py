"""Picks for Arrow record batches: the one implementation that files and Spark use."""

from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpselect import rules
from dpselect.errors import BadUnitsError, RepeatedUnitsError
from dpselect.kernels.arrays import WordArray
from dpselect.mechanisms.base import Mechanism, require_mechanism
from dpselect.randomness import Randomness, are_distinct
from dpselect.tables.arrays import decoded, from_numpy, to_numpy
from dpselect.tables.layout import Layout
from dpselect.tables.units import find_problems, read_units

__all__ = ["PickTransform"]

PROBLEM = "problem"
"""The column that says what is wrong with a unit, where bad units are skipped."""

RANK = "rank"
"""The column that says which pick of its unit's list a row is, from 1."""


@dataclass(frozen=True)
class PickTransform:
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
        >>> from dpselect.engines.arrow import PickTransform
        >>> from dpselect.release import Layout
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
    _layouts: dict[pa.Schema, Layout] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        require_mechanism(self.mechanism)
        Randomness.keyed(self.key, [0])  # refuses a bad key before any work
        for name, added in ((RANK, self._makes_lists), (PROBLEM, self.layout.on_bad_unit == "skip")):
            if added and name in {self.layout.unit, self.layout.pick_name}:
                raise ValueError(
                    f"no column may be called {name!r}: the output gets a column of that name; rename yours"
                )

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the picks of each batch. Raise at the end if a unit occurred twice."""
        seen: list[WordArray] = []
        for batch in batches:
            yield self.transform(batch, seen)
        if seen and not are_distinct(np.concatenate(seen)):
            raise RepeatedUnitsError(f"{self._rule}: some unit has two rows")

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Check the schema of a table of units, once, and return that of the picks."""
        self._columns(schema)
        candidate, second = self.layout.candidate, self.layout.candidates
        kind = pa.int64() if second is None else second.schema.field(self.layout.pick_name).type
        if candidate is not None:
            kind = schema.field(candidate).type.value_type
            kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        picks = pa.field(self.layout.pick_name, pa.large_list(kind) if self._makes_lists else kind)
        problem = [pa.field(PROBLEM, pa.string())] if self.layout.on_bad_unit == "skip" else []
        return pa.schema([schema.field(self.layout.unit), picks, *problem])

    def _columns(self, schema: pa.Schema) -> Layout:
        if schema not in self._layouts:
            layout = self.layout.found_in(schema.names)
            layout.check(schema, lists=True)
            layout.check_mechanism(self.mechanism, schema.names)
            self._layouts[schema] = layout
        return self._layouts[schema]

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

    def transform(self, batch: pa.RecordBatch, seen: list[WordArray] | None = None) -> pa.RecordBatch:
        """Return the picks of one batch, null for bad units, and add the streams of its units to ``seen``.

        Problems are looked for only if something went wrong, so good data cost nothing more.
        """
        schema = self.schema(batch.schema)
        kind = schema.field(self.layout.pick_name).type
        problems, picks = pa.nulls(batch.num_rows, pa.string()), pa.nulls(batch.num_rows, kind)
        try:
            if batch.num_rows:
                picks = self._pick(batch, seen)
        except ValueError:
            problems = find_problems(batch, self._columns(batch.schema), least=self.mechanism.least_size)
            if problems.null_count == len(problems):
                raise
            if self.layout.on_bad_unit == "raise":
                raise BadUnitsError(problems) from None
            good = to_numpy(problems.is_null())
            if good.any():
                picks = self._pick(batch.filter(problems.is_null()), seen)
                picks = picks.take(pa.array(np.cumsum(good) - 1, mask=~good))
        columns = [batch.column(self.layout.unit), picks.cast(kind), problems]
        return pa.RecordBatch.from_arrays(columns[: len(schema)], schema=schema)

    def _pick(self, batch: pa.RecordBatch, seen: list[WordArray] | None) -> pa.Array:
        """Return the picks of the units of a batch, all of them good."""
        read = read_units(batch, self._columns(batch.schema))
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
        return (read.name_lists if self._makes_lists else read.name_picks)(self.layout, picks)

    @property
    def _makes_lists(self) -> bool:
        return self.mechanism.count is not None

    @property
    def _rule(self) -> str:
        return f"column {self.layout.unit!r} {rules.DISTINCT_UNITS}"
