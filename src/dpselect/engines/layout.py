"""Where a table keeps its units, candidates, scores and sensitivities, and what can be wrong with a unit.

A row is a unit (a user, say) and its candidates are lists: of identifiers, of scores, of sensitivities. Numbers
that are the same for every unit may come from a second table, joined by candidate, or as one constant.

Scores are private: problems are told by column and rule, never by value.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpselect import kernels
from dpselect import parameters as check
from dpselect.kernels.arrays import LARGEST, FloatArray, IndexArray
from dpselect.parallel import over_rows

__all__ = ["BadUnitsError", "Layout", "Rows"]

OnBadUnit: TypeAlias = Literal["raise", "skip"]


class BadUnitsError(ValueError):
    """Units of a batch that break a rule: which column, which rule, how many, and the first one's row."""

    def __init__(self, problems: "pa.Array") -> None:
        self.row = int(np.flatnonzero(problems.is_valid().to_numpy(zero_copy_only=False))[0])
        self.count = len(problems) - problems.null_count
        others = "" if self.count == 1 else f" ({self.count} bad units in this batch)"
        self.problem = f"{problems[self.row].as_py()}{others}"
        super().__init__(f"row {self.row}: {self.problem}")


class Rows(NamedTuple):
    """The units of a batch, ready for a mechanism."""

    identifiers: Any
    """Candidate identifiers, flat, as an Arrow array; ``None`` if candidates are known by their position."""
    bounds: IndexArray
    scores: Any
    sensitivities: Any
    public: dict[str, Any]

    def __repr__(self) -> str:
        # Scores are private.
        return f"Rows({self.bounds.size - 1} units, {self.bounds[-1] - self.bounds[0]} candidates)"


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Names of columns, and where public numbers come from.

    Attributes:
        unit: The column of unit identifiers: integers, text or bytes, one row for each unit.
        candidate: The list column of candidate identifiers. ``None`` if a candidate is known by its position: then
            every row has a score for each row of ``candidates``, in that order, or picks are positions.
        score: The list column of scores. Private.
        sensitivity: A list column, a column of ``candidates``, or one number for all.
        offset: The same for public offsets, for mechanisms that take them.
        anchor: The same for public anchors, for mechanisms that take them.
        candidates: A second table: a column of candidate identifiers, all distinct, and columns of public numbers.
        on_bad_unit: ``"raise"``, or ``"skip"`` to give bad units no pick and say what is wrong with each.
    """

    unit: str = "user"
    candidate: str | None = "candidate"
    score: str = "score"
    sensitivity: str | float = "sensitivity"
    offset: str | None = None
    anchor: str | None = None
    candidates: Any = field(default=None, repr=False)
    on_bad_unit: OnBadUnit = "raise"

    def __post_init__(self) -> None:
        if self.on_bad_unit not in ("raise", "skip"):
            raise ValueError(f"on_bad_unit must be 'raise' or 'skip', not {self.on_bad_unit!r}")
        if not isinstance(self.sensitivity, str):
            number = check.real("sensitivity", self.sensitivity)
            if number < 0:
                raise ValueError("sensitivity must not be negative")
            object.__setattr__(self, "sensitivity", number)
        if self.candidates is not None:
            self._check_candidates()
        named = {"candidate": self.candidate, "sensitivity": self.sensitivity}
        for role, name in (named | {"offset": self.offset, "anchor": self.anchor}).items():
            if name == self.score and not self.is_joined(self.score):
                raise ValueError(f"{role} and score must be two columns, not both {name!r}: scores are private")

    def _check_candidates(self) -> None:
        if not isinstance(self.candidates, pa.Table):
            raise ValueError(f"candidates must be an Arrow table, not {type(self.candidates).__name__}")
        name = self.pick_name
        if name not in self.candidates.column_names:
            raise ValueError(f"candidates must have a column {name!r}: it has {self.candidates.column_names}")
        identifiers = self.candidates[name]
        if identifiers.null_count or pc.count_distinct(identifiers).as_py() != len(identifiers):
            raise ValueError(f"candidates must have distinct identifiers in column {name!r}, and none missing")

    @property
    def pick_name(self) -> str:
        """The name of the column of picks."""
        return self.candidate or "candidate"

    @property
    def columns(self) -> list[str]:
        """The columns that are read from the table of units."""
        own = [name for name in (self.unit, self.candidate, self.score) if name is not None]
        numbers = [n for n in self._public_columns.values() if isinstance(n, str) and not self.is_joined(n)]
        return list(dict.fromkeys([*own, *numbers]))

    @property
    def _public_columns(self) -> dict[str, str | float]:
        named = {"sensitivities": self.sensitivity, "offsets": self.offset, "anchors": self.anchor}
        return {argument: name for argument, name in named.items() if name is not None}

    def is_joined(self, name: str) -> bool:
        """Tell whether a column of public numbers is one of ``candidates``."""
        return self.candidates is not None and name != self.candidate and name in self.candidates.column_names

    @cached_property
    def _joined(self) -> dict[str, FloatArray]:
        """Public numbers of the second table, NaN where missing."""
        names = [n for n in self._public_columns.values() if isinstance(n, str) and self.is_joined(n)]
        return {name: as_floats(name, self.candidates[name].combine_chunks()) for name in names}

    @cached_property
    def _casts(self) -> dict[Any, Any]:
        """Identifiers of the second table in the types that tables of units have had so far."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in {"_joined", "_casts"}}

    def check_unit(self) -> None:
        """Raise if units have no column of their own. Where there are no units, they need none."""
        for role, name in (("candidate", self.candidate), ("score", self.score)):
            if name == self.unit:
                raise ValueError(f"unit and {role} must be two columns, not both {name!r}")

    def check_schema(self, schema: Any) -> None:  # noqa: ANN401 - an Arrow schema
        """Raise if a column is unknown, or not of a type that can be read."""
        self.check_unit()
        for name in self.columns:
            check_column(schema.names, name)
        if not is_identifier(schema.field(self.unit).type):
            kind = schema.field(self.unit).type
            raise ValueError(f"column {self.unit!r} must hold integers, text or bytes, not {kind}")
        for name in self.columns[1:]:
            kind = schema.field(name).type
            if not is_list(kind):
                raise ValueError(f"column {name!r} must hold a list for each unit, not {kind}")
            fits = is_identifier(kind.value_type) if name == self.candidate else is_number(kind.value_type)
            if not fits:
                wanted = "integers, text or bytes" if name == self.candidate else "numbers"
                raise ValueError(f"column {name!r} must hold lists of {wanted}, not of {kind.value_type}")

    # --- Reading ------------------------------------------------------------------------------------------

    def read(self, batch: Any) -> Rows:  # noqa: ANN401 - an Arrow record batch
        """Return the units of a batch, without copying list columns.

        Raises:
            ValueError: If anything is wrong with any unit, but for the values of numbers, which the mechanism
                checks; :meth:`problems` then tells what and where.
        """
        if batch.column(self.unit).null_count:
            raise ValueError("a unit is missing")
        flat, bounds = _split(batch.column(self.score))
        scores = as_floats(self.score, flat)
        identifiers = None
        if self.candidate is not None:
            identifiers, own_bounds = _split(batch.column(self.candidate))
            if identifiers.null_count or not np.array_equal(own_bounds, bounds):
                raise ValueError("candidates do not fit scores")
            if _rows_with_duplicates(identifiers, bounds).any():
                raise ValueError("candidates are not distinct")
        elif self.candidates is not None and (np.diff(bounds) != len(self.candidates)).any():
            raise ValueError("rows do not fit the table of candidates")
        public = {
            argument: self._numbers(batch, name, identifiers, bounds)
            for argument, name in self._public_columns.items()
        }
        shared = self.candidate is None and self.candidates is not None and len(bounds) > 1
        whole = scores.reshape(-1, len(self.candidates)) if shared else (scores, bounds)
        return Rows(identifiers, bounds, whole, public.pop("sensitivities"), public)

    def _numbers(self, batch: Any, name: str | float, identifiers: Any, bounds: IndexArray) -> Any:  # noqa: ANN401
        if not isinstance(name, str):
            return name
        if self.is_joined(name):
            if identifiers is None:
                return self._joined[name]
            return _look_up(self._joined[name], self._places(identifiers))
        flat, own_bounds = _split(batch.column(name))
        if not np.array_equal(own_bounds, bounds):
            raise ValueError(f"{name} does not fit scores")
        values = as_floats(name, flat)
        shared = self.candidate is None and self.candidates is not None
        return values.reshape(-1, len(self.candidates)) if shared else (values, bounds)

    def flat_sensitivities(self, batch: Any, identifiers: Any) -> FloatArray:  # noqa: ANN401 - Arrow
        """Return a sensitivity for each row of a batch that has a candidate in each row."""
        name = self.sensitivity
        if not isinstance(name, str):
            return np.full(batch.num_rows, name)
        if self.is_joined(name):
            return _look_up(self._joined[name], self._places(identifiers))
        return as_floats(name, batch.column(name))

    def _places(self, identifiers: Any) -> Any:  # noqa: ANN401 - Arrow arrays
        if identifiers.type not in self._casts:
            self._casts[identifiers.type] = self._cast(identifiers.type)
        return pc.index_in(identifiers, value_set=self._casts[identifiers.type])

    def _cast(self, kind: Any) -> Any:  # noqa: ANN401 - an Arrow type and array
        known = self.candidates[self.pick_name]
        if known.type == kind:
            return known
        try:
            cast = known.cast(kind)
        except pa.ArrowInvalid:
            raise ValueError(
                f"column {self.pick_name!r} must have one type in both tables: "
                f"it is {kind} for units and {known.type} for candidates"
            ) from None
        if len(cast.unique()) != len(cast):
            raise ValueError(
                f"candidates must have distinct identifiers in column {self.pick_name!r}: some differ as "
                f"{known.type} only and are the same {kind}, as in the other table; write 1 and not also 01"
            )
        return cast

    def name_picks(self, rows: Rows, picks: IndexArray) -> Any:  # noqa: ANN401 - an Arrow array
        """Return the identifiers of picks."""
        if rows.identifiers is not None:
            return rows.identifiers.take(pa.array(rows.bounds[:-1] + picks))
        if self.candidates is not None:
            return self.candidates[self.pick_name].combine_chunks().take(pa.array(picks))
        return pa.array(picks)

    def pick_type(self, schema: Any) -> Any:  # noqa: ANN401 - an Arrow schema and a type
        """Return the type of picks for a table of units with a schema."""
        if self.candidate is not None:
            return schema.field(self.candidate).type.value_type
        return pa.int64() if self.candidates is None else self.candidates.schema.field(self.pick_name).type

    # --- What is wrong ------------------------------------------------------------------------------------

    def problems(self, batch: Any) -> Any:  # noqa: ANN401 - an Arrow batch, and an array of text
        """Return what is wrong with each unit, null where nothing is: the column, and the rule it breaks."""
        told = np.full(batch.num_rows, None, dtype=object)

        def tell(bad: NDArray[np.bool_], column: str, rule: str) -> None:
            told[bad & (told == None)] = f"column {column!r} {rule}"  # noqa: E711 - element by element

        def rows_without(name: str) -> NDArray[np.bool_]:
            column = batch.column(name)
            if not column.null_count:
                return np.zeros(batch.num_rows, dtype=bool)
            return np.asarray(column.is_null().to_numpy(zero_copy_only=False))

        lists = [name for name in self.columns if name != self.unit]
        tell(rows_without(self.unit), self.unit, "is missing")
        for name in lists:
            tell(rows_without(name), name, "is missing")
        sizes = {name: _sizes(batch.column(name)) for name in lists}
        expected = sizes[self.score]
        tell(expected == 0, self.score, "has no candidates")
        for name in lists:
            tell(sizes[name] != expected, name, f"must have as many entries as {self.score!r}")
        if self.candidate is None and self.candidates is not None:
            tell(expected != len(self.candidates), self.score, "must have an entry for each candidate")
        fine = np.flatnonzero(told == None)  # noqa: E711 - element by element
        if fine.size:
            self._tell_values(batch.take(pa.array(fine)), lambda bad, *what: tell(_scatter(bad, fine, told), *what))
        return pa.array(told, pa.string())

    def _tell_values(self, batch: Any, tell: Any) -> None:  # noqa: ANN401 - a batch of rows that fit together
        flat, bounds = _split(batch.column(self.score))
        identifiers = None
        if self.candidate is not None:
            identifiers = _split(batch.column(self.candidate))[0]
            missing = np.asarray(identifiers.is_null().to_numpy(zero_copy_only=False))
            tell(_any(missing, bounds), self.candidate, "has a candidate without an identifier")
            tell(_rows_with_duplicates(identifiers, bounds), self.candidate, "names a candidate twice")
        for argument, name in self._public_columns.items():
            numbers = self._numbers(batch, name, identifiers, bounds)
            values = numbers[0] if isinstance(numbers, tuple) else np.asarray(numbers)
            if values.size != bounds[-1]:
                values = np.tile(values, bounds[-1] // max(1, values.size))
            self._tell_numbers(values.reshape(-1), bounds, str(name), argument, tell)
        self._tell_numbers(as_floats(self.score, flat), bounds, self.score, "scores", tell)

    @staticmethod
    def _tell_numbers(values: FloatArray, bounds: IndexArray, name: str, argument: str, tell: Any) -> None:  # noqa: ANN401
        tell(_any(np.isnan(values), bounds), name, "is missing or not a number")
        tell(_any(~(np.abs(values) <= LARGEST), bounds), name, "must be finite and at most 2^300 in magnitude")
        if argument == "sensitivities":
            tell(_any(values < 0, bounds), name, "must not be negative")
        if argument in {"sensitivities", "anchors"}:
            small = (values != 0) & (np.abs(values) < 1 / LARGEST)
            tell(_any(small, bounds), name, "must be zero or at least 2^-300 in magnitude")


# --- Arrow --------------------------------------------------------------------------------------------------


def check_column(names: list[str], name: str, table: str = "the table") -> None:
    """Raise if a table has no column of a name, or two."""
    if names.count(name) != 1:
        problem = "ambiguous" if name in names else "unknown"
        raise ValueError(f"{problem} column {name!r}: {table} has {', '.join(map(repr, names))}")


def is_list(kind: Any) -> bool:  # noqa: ANN401 - an Arrow type
    """Tell whether a type is one of Arrow's lists."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_number(kind: Any) -> bool:  # noqa: ANN401 - an Arrow type
    """Tell whether a type is that of numbers."""
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def is_identifier(kind: Any) -> bool:  # noqa: ANN401 - an Arrow type
    """Tell whether a type can identify units and candidates: integers, text, bytes, or a dictionary of them."""
    if pa.types.is_dictionary(kind):
        return is_identifier(kind.value_type)
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    data = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    return bool(pa.types.is_integer(kind) or text or data)


def _split(array: Any) -> tuple[Any, IndexArray]:  # noqa: ANN401 - Arrow arrays
    """Return (flat values, bounds) of a list array, bounds starting at 0, values not copied."""
    if array.null_count:
        raise ValueError("a list is missing")
    if pa.types.is_fixed_size_list(array.type):
        return array.flatten(), np.arange(len(array) + 1, dtype=np.int64) * array.type.list_size
    bounds = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    return array.flatten(), bounds - bounds[0]


def _sizes(array: Any) -> IndexArray:  # noqa: ANN401 - an Arrow array
    return np.asarray(pc.fill_null(pc.list_value_length(array), 0)).astype(np.int64)


def as_floats(name: str, flat: Any) -> FloatArray:  # noqa: ANN401 - an Arrow array
    """Return float64, NaN where null; no copy if there are no nulls."""
    if pa.types.is_integer(flat.type) and not pa.types.is_int32(flat.type) and len(flat):
        bounds = pc.min_max(flat)
        if any(abs(bounds[end].as_py() or 0) > 2**53 for end in ("min", "max")):
            raise ValueError(f"column {name!r} must not hold integers beyond 2^53: float64 cannot represent them")
    return np.asarray(flat.to_numpy(zero_copy_only=False), dtype=np.float64)


def _look_up(values: FloatArray, places: Any) -> FloatArray:  # noqa: ANN401 - Arrow integers
    """Return values at places, NaN where there is none."""
    if not places.null_count:
        return np.asarray(values[places.to_numpy(zero_copy_only=False)])
    found = np.asarray(places.is_valid().to_numpy(zero_copy_only=False))
    numbers = np.full(len(places), np.nan)
    numbers[found] = values[places.drop_null().to_numpy(zero_copy_only=False)]
    return numbers


def _rows_with_duplicates(identifiers: Any, bounds: IndexArray) -> NDArray[np.bool_]:  # noqa: ANN401
    """Tell for each row whether it names a candidate twice."""
    flags = np.zeros(len(bounds) - 1, dtype=np.bool_)
    if not len(identifiers):
        return flags
    if not pa.types.is_integer(identifiers.type):
        encoded = identifiers if pa.types.is_dictionary(identifiers.type) else identifiers.dictionary_encode()
        identifiers = encoded.indices
    if identifiers.null_count:
        identifiers = pc.fill_null(identifiers, 0)
    numbers = identifiers.to_numpy(zero_copy_only=False)
    if numbers.dtype == np.uint64:
        numbers = numbers.view(np.int64)
    numbers = np.ascontiguousarray(numbers, dtype=np.int64)
    numbers.flags.writeable = False
    over_rows(
        bounds,
        lambda first, last: kernels.duplicates.rows_with_duplicates(first, last, numbers, bounds, flags),
        seconds=2e-9,
    )
    return flags


def _any(flags: NDArray[np.bool_], bounds: IndexArray) -> NDArray[np.bool_]:
    """Tell for each row, none of them empty, whether any of its entries is flagged."""
    if not flags.any():
        return np.zeros(len(bounds) - 1, dtype=bool)
    return np.logical_or.reduceat(flags, bounds[:-1])


def _scatter(bad: NDArray[np.bool_], places: NDArray[Any], like: NDArray[Any]) -> NDArray[np.bool_]:
    whole = np.zeros(len(like), dtype=bool)
    whole[places] = bad
    return whole
