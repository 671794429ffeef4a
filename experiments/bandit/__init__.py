"""The paper's bandit: two arms that change places, and policies that have to notice.

Parts, each usable alone: private running sums (:mod:`~experiments.bandit.sums`), private quantiles
(:mod:`~experiments.bandit.quantiles`), the problem (:mod:`~experiments.bandit.problem`), the policies
(:mod:`~experiments.bandit.policies`), the loop (:mod:`~experiments.bandit.simulation`) and what a policy costs the
people whose rewards it sees (:mod:`~experiments.bandit.exposure`).

All noise but that of the picks comes from NumPy's generator, in floats: right for a simulation, not for a release.
"""

from experiments.bandit.privacy import BANDIT_PRIVACY
from experiments.bandit.robustness import BANDIT_ROBUSTNESS
from experiments.bandit.shift import BANDIT

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = (BANDIT, BANDIT_PRIVACY, BANDIT_ROBUSTNESS)
"""In the order of the report."""
