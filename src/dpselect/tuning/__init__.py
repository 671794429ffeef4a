"""Tuning on a fleet: one private choice of the mechanism that suits all users best.

The *exact* expected errors of all users under each mechanism of a pool are divided by a public cap, cut off at 1
and added up. One user changes each sum by at most 1, so one noisy max over the pool picks the best mechanism, for
pools of any size. docs/theory/tuning.md has the proof, and says who is protected against what.
"""

from dpselect.tuning.choice import Tuned, choice_guarantee, choice_pmf, tune
from dpselect.tuning.fleets import fleet_errors

__all__ = ["Tuned", "choice_guarantee", "choice_pmf", "fleet_errors", "tune"]
