"""Private lists: several picks for each row instead of one.

:class:`TopK` picks without replacement, in order. Where a row is about one person, a whole list costs no more than
one pick: :func:`select_list` picks one of :func:`public_lists`, and :class:`TopSet` needs no public rows.
"""

from dpselect.lists.public import public_lists, score_lists, select_list
from dpselect.lists.top_k import TopK
from dpselect.lists.top_set import TopSet

__all__ = ["TopK", "TopSet", "public_lists", "score_lists", "select_list"]
