"""Which mechanism to use, from what is public: a ranking by exact expected error, and the reasons in words.

What decides is how scores and sensitivities go together, and how far the budget reaches. Both may be known without
looking at private data: an expected correlation, scores of last year's public catalogue, a simulation. If all you
have is private, :func:`dpselect.tuning.tune` pays for the look.
"""

from dpselect.advice.priors import PrivateSample, Public
from dpselect.advice.ranking import Advice, advise
from dpselect.advice.reasons import Row

__all__ = ["Advice", "PrivateSample", "Public", "Row", "advise"]
