"""A ledger of releases that cannot be overspent.

Every release about a population is charged to its budget before anything is published, in one transaction. So a
crash never leaves an unpaid release. A release has a name and is bound to its inputs. Charging it again with the
same inputs costs nothing and returns the same key, and so the same picks. Charging it with other inputs is refused.

>>> import tempfile, pathlib, dpselect as dps
>>> from dpselect.budget import Ledger
>>> home = tempfile.TemporaryDirectory()
>>> ledger = Ledger.create(pathlib.Path(home.name) / "budget.db")
>>> ledger.add_population("readers", epsilon=1.0)
>>> mechanism = dps.GEM(epsilon=0.6)
>>> first = ledger.charge("readers", "spring", mechanism, fingerprint="scores of March")
>>> again = ledger.charge("readers", "spring", mechanism, fingerprint="scores of March")
>>> (first.charged, again.charged, first.key == again.key)
(True, False, True)
>>> ledger.charge("readers", "summer", mechanism, fingerprint="scores of June")
Traceback (most recent call last):
    ...
dpselect.errors.BudgetExhaustedError: 'summer' is refused: with it 'readers' would have spent ε = 1.2, and
its cap is 1 (spent so far: 0.6)
>>> ledger.close(); home.cleanup()
"""

from dpselect.budget.keys import KeyStore
from dpselect.budget.ledger import Ledger
from dpselect.budget.records import Release, Statement
from dpselect.errors import BudgetError, BudgetExhaustedError, LedgerError, ReleaseConflictError

__all__ = [
    "BudgetError",
    "BudgetExhaustedError",
    "KeyStore",
    "Ledger",
    "LedgerError",
    "Release",
    "ReleaseConflictError",
    "Statement",
]
