"""Tuning on a fleet: one private choice of the mechanism that suits all users best.

Scores and sensitivities often correlate in the same way for all users of an application. So it pays to learn that
once, from all users, rather than from every user's own budget:

1. Compute the *exact* expected error of each user under every mechanism of a pool, divide it by a public cap, cut
   it off at 1 and round it to a grid of 2⁻²⁴.
2. Add up the errors over users. One user changes each sum by at most 1, so one noisy max over the pool picks the
   best mechanism at a cost of ``tuning_epsilon``, for pools of any size.
3. That mechanism then makes every user's own pick, at ``epsilon``.

docs/theory/tuning.md has the proof, and says who is protected against what.
"""

from dpselect.tuning.choice import Tuned, choice_guarantee, choice_pmf, tune
from dpselect.tuning.fleets import fleet_errors

__all__ = ["Tuned", "choice_guarantee", "choice_pmf", "fleet_errors", "tune"]
