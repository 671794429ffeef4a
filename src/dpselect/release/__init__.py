"""Releases: compute picks, pay for them, and publish them, in one call.

Results are computed first, where nobody else can see them. Then the inputs are checked to be unchanged, the release
is charged to a ledger or bound to a key file, and the output appears under its name. So bad input costs nothing, a
crash leaves nothing unpaid, and the same call made again costs nothing and gives the same picks.

>>> import tempfile, pathlib, pyarrow as pa, dpselect as dps
>>> from dpselect.budget import Ledger
>>> from dpselect.release import Charge, release
>>> home = tempfile.TemporaryDirectory()
>>> ledger = Ledger.create(pathlib.Path(home.name) / "budget.db")
>>> ledger.add_population("readers", epsilon=10.0)
>>> table = pa.table({"user": [1, 1], "candidate": ["tea", "rum"], "score": [9.0, 1.0], "sensitivity": [0.1, 0.1]})
>>> charge = Charge(ledger, "readers", "spring")
>>> released = release(table, dps.GEM(epsilon=5.0), payment=charge)
>>> (released.picks.to_pylist(), released.receipt.charged, released.receipt.epsilon_spent)
([{'user': 1, 'candidate': 'tea'}], True, 5.0)
>>> again = release(table, dps.GEM(epsilon=5.0), pathlib.Path(home.name) / "picks.csv", payment=charge)
>>> (again.picked, again.receipt.charged)
(1, False)
>>> ledger.close(); home.cleanup()
"""

from dpselect.engines import Limits
from dpselect.errors import KeyReuseError, OutputExistsError
from dpselect.release.payment import Charge, FreshKey, KeyFile, Payment, Receipt
from dpselect.release.releases import Released, release
from dpselect.tables.csv_files import Csv
from dpselect.tables.layout import Layout

__all__ = [
    "Charge",
    "Csv",
    "FreshKey",
    "KeyFile",
    "KeyReuseError",
    "Layout",
    "Limits",
    "OutputExistsError",
    "Payment",
    "Receipt",
    "Released",
    "release",
]
