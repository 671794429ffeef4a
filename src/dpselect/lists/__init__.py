"""Private lists: several picks for each row instead of one.

:class:`TopK` picks without replacement, in order. :func:`rank_probabilities` and :func:`inclusion` say how likely
each candidate is at each rank or in the list, and :func:`list_quality` how good the list is. These three read
scores and are **not private**.
"""

from dpselect.lists.laws import Inclusion, inclusion, rank_probabilities
from dpselect.lists.quality import ListQuality, list_quality
from dpselect.lists.top_k import TopK

__all__ = ["Inclusion", "ListQuality", "TopK", "inclusion", "list_quality", "rank_probabilities"]
