"""Laws: the distributions of picks, each with its pmf, its sampler and the sampler's exact twin."""

from dpselect.laws.base import Law, RowLaw

__all__ = ["Law", "RowLaw"]
