"""The exact error of tuning on a fleet: from each user's expected errors and the exact pmf of the choice."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

import dpselect as dps
from dpselect.pools import default_pool
from dpselect.tuning import choice_pmf, fleet_errors
from experiments.arrays import FloatArray
from experiments.mechanisms import COMPARED_IN_PAPER, build
from experiments.tuning.fleets import USERS, Fleet

__all__ = ["PAPER", "WITHIN", "measure", "tuning_epsilon"]

PAPER = tuple(name for name in COMPARED_IN_PAPER if name != "uniform")
"""The mechanisms of the paper that use the scores."""
WITHIN = 1.02
"""The largest ratio of the tuned error to the best of the paper's that counts as at least as good."""


def tuning_epsilon(epsilon: float, users: int) -> float:
    """Return the budget of the tuning, spent once: 0.2, or a hundredth of a pick's budget if that is more.

    This is for 5000 users. Other fleets get a budget in inverse proportion, since only users × budget matters.
    """
    return max(0.2, epsilon / 100) * USERS / users


def measure(make: Callable[[], Fleet], epsilons: Sequence[float]) -> pa.Table:
    """Return a row for each ε: the best of the paper's mechanisms, the best of the pool, and the tuned choice.

    The tuned choice is random. Its error is the mean over the exact distribution of the choice.
    """
    fleet = make()
    return pa.Table.from_pylist([_row(fleet, float(epsilon)) for epsilon in epsilons])


def _row(fleet: Fleet, epsilon: float) -> dict[str, str | float | int]:
    budget = tuning_epsilon(epsilon, fleet.users)
    plain = _Errors.of(default_pool(epsilon, gammas=(fleet.gamma,)), fleet)
    tuned = plain.tuned(budget, fleet)
    published = {name: plain.mean_of(build(name, epsilon, gamma=fleet.gamma)) for name in PAPER}
    best = min(published, key=published.__getitem__)
    return {
        "fleet": fleet.title,
        "users": fleet.users,
        "epsilon": epsilon,
        "tuning_epsilon": budget,
        "paper_best": best,
        "paper_error": published[best],
        "random_error": plain.mean_of(dps.Uniform()),
        "pool_error": float(plain.means.min()),
        "tuned_error": tuned.error,
        "tuned_choice": tuned.likeliest,
        "tuned_probability": tuned.probability,
    }


class _Tuned(NamedTuple):
    """The result of the private choice."""

    error: float
    """The mean over the distribution of the choice."""
    likeliest: str
    probability: float


@dataclass(frozen=True)
class _Errors:
    """A pool, and each user's exact errors under its mechanisms."""

    pool: tuple[dps.Mechanism, ...]
    errors: FloatArray

    @classmethod
    def of(cls, pool: Sequence[dps.Mechanism], fleet: Fleet) -> "_Errors":
        return cls(tuple(pool), fleet_errors(pool, fleet.scores, fleet.sensitivities))

    @property
    def means(self) -> FloatArray:
        return np.asarray(self.errors.mean(axis=1))

    def mean_of(self, mechanism: dps.Mechanism) -> float:
        """Return the mean error of a member of the pool."""
        return float(self.means[self.pool.index(mechanism)])

    def tuned(self, budget: float, fleet: Fleet) -> _Tuned:
        """Return the result of a private choice from the pool."""
        probabilities = choice_pmf(self.errors, budget, cap=fleet.cap, copies=fleet.copies)
        first = int(probabilities.argmax())
        return _Tuned(float(probabilities @ self.means), self.pool[first].label, float(probabilities[first]))
