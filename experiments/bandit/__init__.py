"""The paper's bandit: two arms swap their rewards, and policies have to adapt.

Its parts can be used on their own: private running sums (:mod:`~experiments.bandit.sums`), private quantiles
(:mod:`~experiments.bandit.quantiles`), the problem (:mod:`~experiments.bandit.problem`), the policies
(:mod:`~experiments.bandit.policies`), the loop (:mod:`~experiments.bandit.simulation`) and the privacy
loss of one reward (:mod:`~experiments.bandit.exposure`).

A full run plays everything. A fast run shows the tables of a full run that are kept in ``results``
(:mod:`~experiments.bandit.kept`); ``python -m experiments.bandit`` makes them again.

The noise of sums and quantiles is floating point from NumPy's generator. Use it for simulations, not for releases.
"""

from experiments.bandit.others import BANDIT_OTHERS
from experiments.bandit.privacy import BANDIT_PRIVACY
from experiments.bandit.robustness import BANDIT_ROBUSTNESS
from experiments.bandit.shift import BANDIT

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = (BANDIT, BANDIT_OTHERS, BANDIT_PRIVACY, BANDIT_ROBUSTNESS)
"""In the order of the report."""
