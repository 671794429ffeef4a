"""Picks for Arrow record batches: the one implementation that the command line and Spark use."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpselect.engines.distinct import DistinctUnits
from dpselect.engines.layout import BadUnitsError, Layout
from dpselect.kernels.arrays import WordArray
from dpselect.mechanisms.base import Mechanism
from dpselect.randomness import Randomness, RepeatedUnitsError

__all__ = ["BadUnitsError", "Layout", "Selector", "Weigher"]

PROBLEM = "problem"
"""The column that tells what is wrong with a unit, where bad units are skipped."""


@dataclass(frozen=True)
class Selector:
    r"""A callable from record batches to record batches with one private pick for each unit.

    For a unit with candidates a = 1 … k it draws from ``mechanism``'s law with the stream of (key, unit), so a pick
    depends on the key, the unit and its row, and on nothing else: not on batches, partitions, order, retries.

    Privacy:
        That of the mechanism, for each unit, provided that one key is used for one release. Picks are candidate
        identifiers; scores go nowhere. If bad units are skipped, which ones were is told with the picks, and for
        scores that are not numbers this depends on the data.

    Cost:
        That of the mechanism. List columns of float64 are not copied.

    Args:
        mechanism: Any mechanism.
        key: 32 secret bytes, kept for as long as the release may have to be computed again.
        layout: Where the columns are.

    Example:
        >>> import dpselect as dps, pyarrow as pa
        >>> from dpselect.engines.arrow import Layout, Selector
        >>> batch = pa.RecordBatch.from_pydict({
        ...     "user": ["ann", "bob"],
        ...     "candidate": [["tea", "milk"], ["tea", "milk", "rum"]],
        ...     "score": [[9.0, 1.0], [0.0, 7.0, 2.0]],
        ...     "sensitivity": [[0.1, 0.1], [0.1, 0.1, 0.1]],
        ... })
        >>> selector = Selector(dps.NoisyMax(epsilon=5.0), bytes(32), layout=Layout())
        >>> selector.select(batch).to_pydict()
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

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the picks of each batch; units must be distinct over all of them."""
        with DistinctUnits() as seen:
            yield from self.over(batches, seen)

    def over(self, batches: Iterable[Any], seen: DistinctUnits) -> Iterator[Any]:
        """Yield the picks of each batch, and raise at the end if a unit occurred twice, also among those seen."""
        for batch in batches:
            picks, addresses = self._select(batch)
            seen.add(addresses)
            yield picks
        if not seen.are_distinct():
            raise RepeatedUnitsError(f"{self._rule}: some unit has two rows")

    def select(self, batch: Any) -> Any:  # noqa: ANN401 - Arrow record batches
        """Return the picks of one batch."""
        return self._select(batch)[0]

    def schema(self, schema: Any) -> Any:  # noqa: ANN401 - Arrow schemas
        """Return the schema of picks for a table of units with a schema, and check that one."""
        self.layout.check_schema(schema)
        return _schema(self.layout, schema, pa.field(self.layout.pick_name, self.layout.pick_type(schema)))

    def addresses(self, units: Any) -> WordArray:  # noqa: ANN401 - an Arrow array
        """Return the addresses of units."""
        return self._randomness(units).units(len(units)).nonces

    def _select(self, batch: Any) -> tuple[Any, WordArray]:  # noqa: ANN401 - an Arrow record batch
        schema = self.schema(batch.schema)
        (picks, addresses), problems = _compute(self.layout, batch, self._pick)
        columns = [batch.column(self.layout.unit), picks.cast(schema.field(1).type)]
        return _emit(columns, schema, problems), addresses

    def _pick(self, batch: Any) -> tuple[Any, WordArray]:  # noqa: ANN401 - an Arrow record batch
        if not batch.num_rows:
            return pa.array([], self.layout.pick_type(batch.schema)), np.empty((0, 3), dtype=np.uint32)
        rows = self.layout.read(batch)
        units = batch.column(self.layout.unit)
        try:
            randomness = self._randomness(units)
        except RepeatedUnitsError:
            counts = pc.value_counts(units)
            repeated = counts.filter(pc.greater(counts.field("counts"), 1))[0]["values"].as_py()
            raise RepeatedUnitsError(f"{self._rule}: {repeated!r} has two rows") from None
        picks = self.mechanism.select(rows.scores, rows.sensitivities, randomness=randomness, **rows.public)
        return self.layout.name_picks(rows, picks), randomness.units(len(picks)).nonces

    @property
    def _rule(self) -> str:
        return f"column {self.layout.unit!r} must name each unit once"

    def _randomness(self, units: Any) -> Randomness:  # noqa: ANN401 - an Arrow array
        if pa.types.is_dictionary(units.type):
            units = units.dictionary_decode()
        integers = pa.types.is_integer(units.type)
        return Randomness.keyed(self.key, units.to_numpy(zero_copy_only=False) if integers else units.to_pylist())


@dataclass(frozen=True)
class Weigher:
    """A callable from record batches to record batches with the exact probability of every candidate.

    Privacy:
        **None**: probabilities reveal scores. For public or synthetic data, audits, and whoever may see the scores.

    Cost:
        That of the mechanism's ``pmf``.

    Args:
        mechanism: Any mechanism.
        layout: Where the columns are.

    Example:
        >>> import dpselect as dps, pyarrow as pa
        >>> from dpselect.engines.arrow import Layout, Weigher
        >>> batch = pa.RecordBatch.from_pydict({"user": [1], "score": [[0.0, 1.0]]})
        >>> weigher = Weigher(dps.Uniform(), layout=Layout(candidate=None, sensitivity=1.0))
        >>> weigher.weigh(batch).to_pydict()
        {'user': [1], 'probability': [[0.5, 0.5]]}

    References:
        None needed.
    """

    mechanism: Mechanism
    _: KW_ONLY
    layout: Layout

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the probabilities of each batch."""
        return map(self.weigh, batches)

    def schema(self, schema: Any) -> Any:  # noqa: ANN401 - Arrow schemas
        """Return the schema of probabilities for a table of units with a schema, and check that one."""
        self.layout.check_schema(schema)
        named = self.layout.candidate is not None or self.layout.candidates is not None
        lists = [pa.field(self.layout.pick_name, pa.large_list(self.layout.pick_type(schema)))] if named else []
        return _schema(self.layout, schema, *lists, pa.field("probability", pa.large_list(pa.float64())))

    def weigh(self, batch: Any) -> Any:  # noqa: ANN401 - Arrow record batches
        """Return the probabilities of one batch."""
        schema = self.schema(batch.schema)
        lists, problems = _compute(self.layout, batch, self._weigh)
        wanted = schema.names[1 : 1 + len(lists)]
        columns = [lists[i].cast(schema.field(name).type) for i, name in enumerate(wanted)]
        return _emit([batch.column(self.layout.unit), *columns], schema, problems)

    def _weigh(self, batch: Any) -> tuple[Any, ...]:  # noqa: ANN401 - an Arrow record batch
        if not batch.num_rows:
            kinds = [field.type for field in self.schema(batch.schema) if pa.types.is_large_list(field.type)]
            return tuple(pa.array([], kind) for kind in kinds)
        rows = self.layout.read(batch)
        weights = self.mechanism.pmf(rows.scores, rows.sensitivities, **rows.public)
        probabilities = pa.LargeListArray.from_arrays(rows.bounds, np.asarray(weights).reshape(-1))
        positions = np.arange(rows.bounds[-1]) - np.repeat(rows.bounds[:-1], np.diff(rows.bounds))
        if rows.identifiers is not None:
            return pa.LargeListArray.from_arrays(rows.bounds, rows.identifiers), probabilities
        if self.layout.candidates is not None:
            names = self.layout.name_picks(rows, positions)
            return pa.LargeListArray.from_arrays(rows.bounds, names), probabilities
        return (probabilities,)


Result = TypeVar("Result", bound=tuple[Any, ...])


def _compute(layout: Layout, batch: Any, work: Callable[[Any], Result]) -> tuple[Result, Any]:  # noqa: ANN401
    """Return what ``work`` makes of the good units of a batch, and what is wrong with the others.

    Arrow columns in the result are spread over all units, null for the bad ones. Problems are looked for only if
    something went wrong: reading good data costs nothing more.
    """
    try:
        return work(batch), None
    except ValueError:
        problems = layout.problems(batch)
        if problems.null_count == len(problems):
            raise
        if layout.on_bad_unit == "raise":
            raise BadUnitsError(problems) from None
    good = problems.is_null()
    places = np.cumsum(good.to_numpy(zero_copy_only=False)) - 1
    spread = pa.array(places, mask=~good.to_numpy(zero_copy_only=False))
    result = work(batch.filter(good))
    return cast("Result", tuple(_spread(part, spread) for part in result)), problems


def _spread(part: Any, places: Any) -> Any:  # noqa: ANN401 - an Arrow array, or addresses
    return part.take(places) if isinstance(part, pa.Array) else part


def _schema(layout: Layout, schema: Any, *fields: Any) -> Any:  # noqa: ANN401 - Arrow schemas and fields
    told = [pa.field(PROBLEM, pa.string())] if layout.on_bad_unit == "skip" else []
    return pa.schema([pa.field(layout.unit, schema.field(layout.unit).type), *fields, *told])


def _emit(columns: list[Any], schema: Any, problems: Any) -> Any:  # noqa: ANN401 - Arrow
    if PROBLEM in schema.names[-1:]:
        columns = [*columns, pa.nulls(len(columns[0]), pa.string()) if problems is None else problems]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
