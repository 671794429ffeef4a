"""Laws: the distributions that mechanisms pick from, each with its probabilities, sampler and exact twin."""

from dpselect.laws.base import Law, RowLaw

__all__ = ["Law", "RowLaw"]
