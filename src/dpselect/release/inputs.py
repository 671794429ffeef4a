"""What a release is computed from: a table, perhaps a second one of candidates, and where their columns are."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Self

from dpselect.budget import fingerprint_files
from dpselect.tables.layout import Layout
from dpselect.tables.stored import AnyTable, Csv, Format, StoredTable, open_table

__all__ = ["Inputs"]


class Inputs(NamedTuple):
    """The tables of a release, in the state in which they were opened."""

    table: StoredTable
    candidates: StoredTable | None
    layout: Layout

    @classmethod
    def open(
        cls,
        table: AnyTable,
        layout: Layout | None,
        candidates: AnyTable | None,
        format: Format | Csv | None,
    ) -> Self:
        """Open the tables. The second one may be part of the layout, or come by itself."""
        columns = layout or Layout()
        opened = open_table(table, format, columns.names, columns.number_names)
        if candidates is not None:
            csv = format if isinstance(format, Csv) else None
            second = open_table(candidates, csv, columns.names, columns.number_names)
            return cls(opened, second, columns.with_candidates(second))
        return cls(opened, None if columns.candidates is None else open_table(columns.candidates), columns)

    def settings(self, *, one: bool = False) -> dict[str, object]:
        """Return what decides, besides the contents of tables, what is read out of them."""
        columns = self.layout
        chosen = {} if columns.public_from is None else {"public_from": columns.public_from}
        return chosen | {
            "unit": columns.unit,
            "candidate": columns.pick_name,
            "score": columns.score,
            "sensitivity": str(columns.sensitivity),
            "offset": columns.offset,
            "anchor": None,  # a column that older versions had: releases paid then still match
            "by_position": columns.candidate is None,
            "on_bad_unit": columns.on_bad_unit,
            "one": one,
            "readings": [[role, *reading] for role, table in self._tables() for reading in table.read_options()],
        }

    def fingerprint(self, settings: Mapping[str, object]) -> str:
        """Return a fingerprint of the contents of the tables and of settings."""
        return fingerprint_files([path for _, table in self._tables() for path in table.files], settings)

    def state(self) -> list[list[str | int]]:
        """Return what tells these inputs from others, without reading them."""
        return [state for _, table in self._tables() for state in table.state()]

    def check_unchanged(self) -> None:
        """Raise if a table is not what it was when it was opened."""
        for _, table in self._tables():
            table.check_unchanged()

    def _tables(self) -> Iterator[tuple[str, StoredTable]]:
        yield "input", self.table
        if self.candidates is not None:
            yield "candidates", self.candidates
