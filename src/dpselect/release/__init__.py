"""Releases: compute picks, pay for them, and publish them, in one call.

Results are computed first, where nobody else can see them. Then the inputs are checked to be unchanged, the release
is charged to a ledger or bound to a key file, and the output appears under its name. So bad input costs nothing, a
crash leaves nothing unpaid, and the same call made again goes on where it stopped or gives the same picks.

>>> import tempfile, pathlib, pyarrow as pa, dpselect as dps
>>> from dpselect.budget import Ledger
>>> from dpselect.release import Charge, release_picks
>>> home = tempfile.TemporaryDirectory()
>>> ledger = Ledger.create(pathlib.Path(home.name) / "budget.db")
>>> ledger.add_population("readers", epsilon=10.0)
>>> table = pa.table({"user": [1, 1], "candidate": ["tea", "rum"], "score": [9.0, 1.0], "sensitivity": [0.1, 0.1]})
>>> charge = Charge(ledger, "readers", "spring")
>>> output = pathlib.Path(home.name) / "picks.csv"
>>> released = release_picks(table, dps.GEM(epsilon=2.0), output, payment=charge)
>>> (released.picked, released.receipt.charged, released.receipt.epsilon_spent)
(1, True, 2.0)
>>> release_picks(table, dps.GEM(epsilon=2.0), output, payment=charge).receipt.charged
False
>>> ledger.close(); home.cleanup()

:func:`release_table` takes any data frame, also one of Spark's, and returns the picks in the same kind of frame.
"""

from dpselect.release.choice import ReleasedChoice, release_choice
from dpselect.release.frames import ReleasedTable, release_table
from dpselect.release.jobs import JobConflictError
from dpselect.release.key_files import KeyReuseError
from dpselect.release.one import ReleasedPick, release_one
from dpselect.release.payment import Charge, FreshKey, KeyFile, OutputExistsError, Payment, Receipt
from dpselect.release.picks import Released, release_picks, write_pmf
from dpselect.tables.csv_files import Csv

__all__ = [
    "Charge",
    "Csv",
    "FreshKey",
    "JobConflictError",
    "KeyFile",
    "KeyReuseError",
    "OutputExistsError",
    "Payment",
    "Receipt",
    "Released",
    "ReleasedChoice",
    "ReleasedPick",
    "ReleasedTable",
    "release_choice",
    "release_one",
    "release_picks",
    "release_table",
    "write_pmf",
]
