"""All exceptions of this package, and the exit codes that they have on the command line.

Bad input is a plain :class:`ValueError` (exit code 3) whose message names the argument or the column and the rule.
The classes below are for what a program may want to tell apart. All of them are ``ValueError``, too::

    ValueError                     3  bad input
    ├── RepeatedUnitsError         3  two rows have the same unit, and would share their noise
    ├── BadUnitsError              3  units of a batch break a rule
    ├── MissingFileError           3  there is no such file; a FileNotFoundError, too
    ├── UsageError                 2  options of the command line that do not fit together
    ├── OutputError                2  the output cannot be written: its format or folder is unknown
    ├── LayoutError                2  a layout contradicts itself, or does not fit the table
    │   ├── UnknownColumnError     2  the table has no column of that name
    │   └── TwoColumnsError        2  both tables have a column of public numbers
    ├── BudgetError                4  a release is refused
    │   ├── BudgetExhaustedError   4  it would exceed the cap
    │   └── ReleaseConflictError   4  its name belongs to a release with other inputs
    ├── KeyReuseError              4  the key belongs to another release
    ├── OutputExistsError          4  the output may hold a release of the same scores
    └── DatabaseError              5  the database of a budget cannot be used
        └── LedgerError            5  the ledger is damaged, foreign, or of another version

No message shows a score.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any


class RepeatedUnitsError(ValueError):
    """Two rows have the same identifier and would share their noise."""


class BadUnitsError(ValueError):
    """Units of a batch break a rule: which column, which rule, how many units, and the row of the first."""

    def __init__(self, problems: Any) -> None:  # noqa: ANN401 - of Arrow: a text for each bad unit, null for others
        self.row = int(problems.is_valid().index(True).as_py())
        self.count = len(problems) - problems.null_count
        others = "" if self.count == 1 else f" ({self.count} bad units in this batch)"
        self.problem = f"{problems[self.row].as_py()}{others}"
        super().__init__(f"row {self.row}: {self.problem}")


class MissingFileError(ValueError, FileNotFoundError):
    """There is no such file."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"there is no file {str(path)!r}")


class UsageError(ValueError):
    """Options that do not fit together."""

    exit_code = 2


class OutputError(ValueError):
    """The output cannot be written: its format is unknown, or its folder is missing."""

    exit_code = 2


class LayoutError(ValueError):
    """A layout contradicts itself, or does not fit the table."""

    exit_code = 2


class UnknownColumnError(LayoutError):
    """The table has no column of that name."""

    def __init__(self, column: str, role: str, table: str, names: Sequence[str]) -> None:
        self.role = role
        self.problem = f"unknown column {column!r}: {table} has {', '.join(map(repr, names))}"
        wide = ", or all columns of candidates with candidate_columns=" if role == "candidate" else ""
        super().__init__(f"{self.problem}; name it with {role}={wide}")


class TwoColumnsError(LayoutError):
    """A column of public numbers is in both tables, and one of them would be ignored."""

    def __init__(self, column: str, role: str, table: str) -> None:
        super().__init__(
            f"both {table} and the table of candidates have a column {column!r}: drop it from one of them, or name "
            f"another column for the {role}"
        )


class BudgetError(ValueError):
    """A release is refused."""

    exit_code = 4


class BudgetExhaustedError(BudgetError):
    """The release would exceed the cap."""


class ReleaseConflictError(BudgetError):
    """The name belongs to a release with other inputs."""


class KeyReuseError(ValueError):
    """The key belongs to another release."""

    exit_code = 4


class OutputExistsError(ValueError):
    """The output may hold a release of the same scores, and another one would cost as much again."""

    exit_code = 4

    def __init__(self, output: Path, epsilon: float) -> None:
        self.problem = (
            f"{output.name!r} exists. If it holds picks for these users, picking again with a fresh key is a "
            f"second release and costs ε = {epsilon:g} again"
        )
        super().__init__(
            f"{self.problem}. payment=FreshKey(overwrite=True) replaces it; with KeyFile(…) or Charge(…) the same "
            "call gives the same picks for nothing"
        )


class DatabaseError(ValueError):
    """The database cannot be used. The message says why."""

    exit_code = 5


class LedgerError(DatabaseError):
    """The ledger is damaged, belongs to another program, or has another version."""
