"""Where a table keeps its units, candidates, scores and sensitivities.

Each row is a unit (a user, say) with lists of candidates, scores and sensitivities, or each row is one candidate of
a unit. Numbers that all units share come from a second table, joined by candidate, or are one constant.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpselect import parameters as check
from dpselect import rules
from dpselect.errors import LayoutError, TwoColumnsError, UnknownColumnError
from dpselect.kernels.arrays import FloatArray
from dpselect.mechanisms.base import Mechanism
from dpselect.tables.arrays import as_floats, is_identifier, is_list, is_number, parse_numbers, to_numpy
from dpselect.tables.csv_files import Csv
from dpselect.tables.formats import Format
from dpselect.tables.stored import StoredTable, check_column, open_table

__all__ = ["ONE", "Layout"]

ONE = "the whole table"
"""The column of units where a table has none: the same for all rows."""

PUBLIC = {"sensitivity": "sensitivities", "offset": "offsets", "weight": "weights"}
"""Roles of columns that a second table may hold, and the arguments of a mechanism that they are for."""

ONE_OR_EACH = (
    "sensitivity must be one number or the name of a column, of candidates= if each candidate has a column of its "
    'own: candidates={"candidate": […], "sensitivity": […]}'
)

SENSITIVITY = "sensitivity"
"""The column of sensitivities if none is named."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Names of columns, and where public numbers come from.

    Attributes:
        unit: The column of unit identifiers: integers, text or bytes. ``None`` if all rows are candidates of one:
            then there is one pick, or one list.
        candidate: The column of candidate identifiers. ``None`` if a candidate is known by its position in a list:
            then every list has a score for each row of ``candidates``, in that order, or picks are positions.
        score: The column of scores. Private.
        candidate_columns: The columns of scores, if each candidate has one of its own. Their names are the
            candidates. There is a row for each unit, and public numbers come from ``candidates`` or are constants.
        sensitivity: A column of the table, a column of ``candidates``, or one number for all. ``None`` means the
            column ``"sensitivity"`` if there is one. Mechanisms for rows about one person need none.
        offset: A column of public offsets of either table, for mechanisms that take them.
        weight: A column of public weights of either table, for mechanisms that take them.
        candidates: A second table, in any form that a table may have: a column of candidate identifiers, all
            distinct, and columns of public numbers. A column that both tables have is refused, since one of the
            two would be ignored.
        on_bad_unit: ``"raise"``, or ``"skip"`` to give bad units no pick and say what is wrong with each.
        format: The format of a file, if its name does not say; or :class:`~dpselect.release.Csv`, how to read a CSV
            file. This is for ``candidates``, too.
    """

    unit: str | None = "user"
    candidate: str | None = "candidate"
    score: str = "score"
    sensitivity: str | float | None = None
    offset: str | None = None
    weight: str | None = None
    candidates: Any = field(default=None, repr=False)
    on_bad_unit: Literal["raise", "skip"] = "raise"
    format: Format | Csv | None = field(default=None, repr=False)
    candidate_columns: Sequence[str] = field(default=(), repr=False)  # fingerprints of older releases still match

    def __post_init__(self) -> None:
        if self.on_bad_unit not in ("raise", "skip"):
            raise LayoutError(f"on_bad_unit must be 'raise' or 'skip', not {self.on_bad_unit!r}")
        if self.unit is None and self.on_bad_unit == "skip":
            raise LayoutError("on_bad_unit must be 'raise' if there is no unit: nothing would be left")
        if isinstance(self.candidate_columns, str):
            raise LayoutError(f"candidate_columns must be a list of columns, not {self.candidate_columns!r}")
        object.__setattr__(self, "candidate_columns", tuple(map(str, self.candidate_columns)))
        if self.candidate_columns:
            self._check_wide()
        missing = self.candidate_columns and self.candidates is None
        if missing if isinstance(self.sensitivity, str) else hasattr(self.sensitivity, "__len__"):
            raise LayoutError(ONE_OR_EACH)
        if not (self.sensitivity is None or isinstance(self.sensitivity, str)):
            number = check.real("sensitivity", self.sensitivity)
            if number < 0:
                raise LayoutError(f"sensitivity {rules.NOT_NEGATIVE.words}, got {number}")
            object.__setattr__(self, "sensitivity", number)
        if isinstance(self.candidates, pa.Table):
            object.__setattr__(self, "candidates", self._checked_candidates())
        for role in ("candidate", *PUBLIC):
            if getattr(self, role) == self.score and not self.is_joined(self.score):
                raise LayoutError(
                    f"{role} and score must be two columns, not both {self.score!r}: scores are private"
                )

    def _check_wide(self) -> None:
        """Raise if another argument does not go with a column for each candidate."""
        names = [*self.candidate_columns, self.unit]
        if self.unit is None or self.candidate is None:
            raise LayoutError(
                "unit and candidate must have names if each candidate has a column of its own: if no column tells "
                'users apart, number them, as in table.reset_index(names="user")'
            )
        if len(set(names)) < len(names):
            raise LayoutError("candidate_columns must be distinct columns, and not the column of units")

    def _checked_candidates(self) -> pa.Table:
        """Return the second table, its identifiers without a dictionary and its public columns as numbers."""
        table = self.candidates
        names = table.column_names
        check_column(names, self.pick_name, "candidate", "candidates")
        identifiers = table[self.pick_name]
        if pa.types.is_dictionary(identifiers.type):
            identifiers = identifiers.cast(identifiers.type.value_type)
            table = table.set_column(names.index(self.pick_name), self.pick_name, identifiers)
        if identifiers.null_count or pc.count_distinct(identifiers).as_py() != len(identifiers):
            raise ValueError(
                f"candidates must have distinct identifiers in column {self.pick_name!r}, and none missing"
            )
        for role in PUBLIC:
            name = getattr(self, role)
            if self.is_joined(name):
                check_column(names, name, role, "candidates")
                as_floats(name, table[name].combine_chunks())  # refuses numbers that float64 would round
                table = table.set_column(names.index(name), name, parse_numbers(table[name]))
        return table

    def open_candidates(self) -> tuple[Self, StoredTable | None]:
        """Open the second table, if there is one, and return the same layout with what it needs of it."""
        if self.candidates is None:
            return self, None
        csv = self.format if isinstance(self.format, Csv) else None
        table = open_table(self.candidates, csv, self.names, self.number_names)
        roles = {self._sensitivity: "sensitivity", self.offset: "offset", self.weight: "weight"}
        public = {str(name): role for name, role in roles.items() if name in table.column_names}
        wanted = {self.pick_name: "candidate"} | public
        for name, role in wanted.items():
            check_column(table.column_names, name, role, table.label)
        return replace(self, candidates=table.read(list(wanted))), table

    def found_in(self, names: Collection[str]) -> Self:
        """Return the layout with the column of sensitivities, if none is named and one of the tables has one."""
        free = self.sensitivity is None and self.score != SENSITIVITY
        found = free and (SENSITIVITY in names or self.is_joined(SENSITIVITY))
        return replace(self, sensitivity=SENSITIVITY) if found else self

    @property
    def _sensitivity(self) -> str | float:
        return SENSITIVITY if self.sensitivity is None else self.sensitivity

    @property
    def unit_name(self) -> str:
        """The name of the column of units; where a table has none, the one that it gets."""
        return self.unit or ONE

    @property
    def pick_name(self) -> str:
        """The name of the column of picks."""
        return self.candidate or "candidate"

    @property
    def names(self) -> set[str]:
        """All names of columns, of this table or of the second one."""
        wanted = (self.unit, self.pick_name, self.score, self._sensitivity, self.offset, self.weight)
        return {name for name in wanted if isinstance(name, str)} | set(self.candidate_columns)

    @property
    def number_names(self) -> set[str]:
        """The names of columns that hold numbers."""
        return self.names - {self.unit, self.pick_name}

    @property
    def columns(self) -> list[str]:
        """The columns that are read from a table of units, the unit first."""
        own = [name for name in (self.unit, self.candidate, self.score) if name is not None]
        public = (name for name in self.public_columns.values() if isinstance(name, str))
        return list(dict.fromkeys([*own, *(name for name in public if not self.is_joined(name))]))

    @property
    def public_columns(self) -> dict[str, str | float]:
        """Where each argument of public numbers comes from: a column's name, or a constant."""
        named = {argument: getattr(self, role) for role, argument in PUBLIC.items()}
        return {argument: name for argument, name in named.items() if name is not None}

    @property
    def is_shared(self) -> bool:
        """Whether every list has a score for each row of ``candidates``, in that order."""
        return self.candidate is None and self.candidates is not None

    def is_joined(self, name: object) -> bool:
        """Tell whether a column of public numbers is one of ``candidates``."""
        opened = isinstance(self.candidates, pa.Table)
        return opened and name != self.candidate and name in self.candidates.column_names

    def check(
        self,
        schema: pa.Schema,
        table: str = "the table",
        *,
        names: Sequence[str] | None = None,
        text: bool = False,
        lists: bool = False,
    ) -> bool:
        """Check the columns of a table. Return whether it has a row of lists for each unit; ``lists`` says it must.

        The table may have more columns than can be read (``names``), and numbers in text (``text``).
        """
        if not (self.candidates is None or isinstance(self.candidates, pa.Table)):
            raise LayoutError("candidates must be an Arrow table here: only select_table and release open others")
        for role in ("candidate", "score"):
            if self.unit is not None and getattr(self, role) == self.unit:
                raise LayoutError(f"unit and {role} must be two columns, not both {self.unit!r}")
        known = schema.names if names is None else names
        for role in ("unit", "candidate", "score", *PUBLIC):
            name = getattr(self, role)
            if not isinstance(name, str):
                continue
            if not (role in PUBLIC and self.is_joined(name)):
                check_column(known, name, role, table)
            elif name in known:
                raise TwoColumnsError(name, role, table)
        lists = lists or is_list(schema.field(self.score).type)
        if lists and self.unit is None:
            raise LayoutError(f"{table} must have a row for each candidate, not lists, if there is no unit")
        if not lists and self.candidate is None:
            raise LayoutError(
                f"{table} has a row for each candidate, and candidates by position need lists of scores; name the "
                "column of candidates and leave out --by-position"
            )
        for name in self.columns:
            self._check_kind(name, schema.field(name).type, text=text, lists=lists and name != self.unit)
        return lists

    def check_mechanism(self, mechanism: Mechanism, names: Sequence[str], table: str = "the table") -> None:
        """Raise if a mechanism needs sensitivities that are not there, or takes no offsets or weights."""
        if self.sensitivity is None and mechanism.uses_sensitivities:
            if self.candidate_columns:
                raise LayoutError(ONE_OR_EACH)
            raise UnknownColumnError(SENSITIVITY, "sensitivity", table, names)
        for role in ("offset", "weight"):
            if getattr(self, role) is not None and PUBLIC[role] not in mechanism.takes:
                raise LayoutError(f"{role} must not be given: {type(mechanism).__name__} takes no {PUBLIC[role]}")

    def _check_kind(self, name: str, kind: pa.DataType, *, text: bool, lists: bool) -> None:
        if lists and not is_list(kind):
            raise ValueError(f"column {name!r} must hold a list for each unit, not {kind}")
        entry = kind.value_type if lists else kind
        named = name in {self.unit, self.candidate}
        if not (text or (is_identifier(entry) if named else is_number(entry))):
            content = "integers, text or bytes" if named else "numbers"
            wanted, found = (f"lists of {content}", f"of {entry}") if lists else (content, entry)
            pandas, polars = ('"Int64"', "Int64") if is_number(entry) else ("str", "String")
            if not named:
                pandas, polars = "float", "Float64"
            raise ValueError(
                f"column {name!r} must hold {wanted}, not {found}: convert it, with astype({pandas}) in pandas or "
                f"cast(pl.{polars}) in polars"
            )

    @cached_property
    def joined(self) -> dict[str, FloatArray]:
        """The public numbers of the second table by column, NaN where missing."""
        names = [name for name in self.public_columns.values() if isinstance(name, str) and self.is_joined(name)]
        return {name: as_floats(name, self.candidates[name].combine_chunks()) for name in names}

    def join(self, name: str, identifiers: pa.Array) -> FloatArray:
        """Return the public numbers of these candidates, NaN for those that the second table lacks."""
        if identifiers.type not in self._identifiers:
            self._identifiers[identifiers.type] = self._cast(identifiers.type)
        places = pc.fill_null(pc.index_in(identifiers, value_set=self._identifiers[identifiers.type]), -1)
        known = np.append(self.joined[name], np.nan)  # the last is for those that are not there
        return np.asarray(known[to_numpy(places)], dtype=np.float64)

    @cached_property
    def _identifiers(self) -> dict[pa.DataType, pa.ChunkedArray]:
        """The identifiers of the second table, in the types that tables of units have had so far."""
        return {}

    def _cast(self, kind: pa.DataType) -> pa.ChunkedArray:
        known = self.candidates[self.pick_name]
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
                f"{known.type} but are the same {kind}, as in the other table; write 1 and not also 01"
            )
        return cast
