"""The cost of many picks together, by other libraries' accountants.

A guarantee is for one pick. :meth:`dpselect.Guarantee.compose` adds guarantees up. :func:`total_guarantee` finds
a smaller ε for many of them, at a small δ, through dp_accounting. :func:`epsilon_per_pick` is its inverse, and
:func:`to_pld` exports a guarantee to dp_accounting. docs/theory/accounting.md justifies each conversion. Wrong
conversions are refused. The functions need the extra ``accounting``.
"""

from dpselect.accounting.distributions import to_pld
from dpselect.accounting.totals import epsilon_per_pick, total_guarantee

__all__ = ["epsilon_per_pick", "to_pld", "total_guarantee"]
