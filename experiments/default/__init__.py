"""The default mechanism, heterogeneous noisy max: where it wins, where it loses, and how far it is from the best.

``scenarios`` draws the guide's picture, ``everywhere`` and ``search`` compare it with noisy max, ``keep`` varies
which candidates compete, and ``optimum`` and ``distance`` compare it with the best possible mechanism.
"""

from experiments.default.distance import OPTIMUM
from experiments.default.everywhere import EVERYWHERE
from experiments.default.keep import KEEP
from experiments.default.scenarios import CORRELATIONS

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = (CORRELATIONS, EVERYWHERE, KEEP, OPTIMUM)
"""In the order of the report."""
