"""Private lists: several picks for each row instead of one.

:class:`TopK` picks without replacement, in order. :func:`rank_probabilities` and :func:`inclusion` say how likely
each candidate is at each rank or in the list. These two read scores and are **not private**.
"""

from dpselect.lists.laws import inclusion, rank_probabilities
from dpselect.lists.top_k import TopK

__all__ = ["TopK", "inclusion", "rank_probabilities"]
