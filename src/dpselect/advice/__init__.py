"""Which mechanism to use, from public knowledge: a ranking by exact expected error, and the reasons in words.

The choice depends on how scores and sensitivities correlate, and on the size of the budget. You may know both
without looking at private data: from an expected correlation, last year's public catalogue or a simulation. If all
you have is private, :func:`dpselect.tuning.tune` pays for looking at it.
"""

from dpselect.advice.priors import PrivateSample, Public
from dpselect.advice.ranking import Advice, advise
from dpselect.advice.reasons import Ranked

__all__ = ["Advice", "PrivateSample", "Public", "Ranked", "advise"]
