"""What tuning achieves on a fleet, exactly: from each user's expected errors and the exact law of the choice."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

import dpselect as dps
from dpselect.pools import default_pool
from dpselect.tuning import choice_pmf, fleet_errors
from experiments.mechanisms import contenders
from experiments.scenarios import FloatArray
from experiments.tuning.fleets import USERS, Fleet

__all__ = ["BETA", "PAPER", "WITHIN", "measure", "tuning_epsilon"]

BETA = 0.05
PAPER = ("rnm", "rs", "rs-improved", "gem", "mgem", "combined-gem", "krr")
"""The private mechanisms that the paper compares."""
WITHIN = 1.02
"""How much worse than the best of the paper's mechanisms the tuned one may be, to count as at least as good."""


def tuning_epsilon(epsilon: float, users: int) -> float:
    """Return the budget of the tuning, spent once: 0.2, or a hundredth of a pick's budget if that is more.

    That is for 5000 users; for others in inverse proportion, since users × budget is what counts.
    """
    return max(0.2, epsilon / 100) * USERS / users


def measure(build: Callable[[], Fleet], epsilons: Sequence[float]) -> pa.Table:
    """Return a row for each ε: the best of the paper's mechanisms, the best of the pool, and the tuned choice.

    The tuned choice is random; its error is the mean over what may be chosen, however unlikely.
    """
    fleet = build()
    return pa.Table.from_pylist([_row(fleet, float(epsilon)) for epsilon in epsilons])


def _row(fleet: Fleet, epsilon: float) -> dict[str, str | float | int]:
    budget = tuning_epsilon(epsilon, fleet.users)
    plain = _Errors.of(default_pool(epsilon, gammas=(fleet.gamma,), beta=BETA), fleet, None)
    tuned = plain.tuned(budget, fleet)
    anchored = tuned if fleet.anchors is None else _with_anchors(plain, fleet, epsilon).tuned(budget, fleet)
    rivals = contenders(epsilon, beta=BETA, gamma=fleet.gamma)
    published = {name: plain.mean_of(rivals[name]) for name in PAPER}
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
        "anchored_error": anchored.error,
        "anchored_choice": anchored.likeliest,
    }


class _Tuned(NamedTuple):
    """What the private choice comes to."""

    error: float
    """The mean over what may be chosen."""
    likeliest: str
    probability: float


@dataclass(frozen=True)
class _Errors:
    """A pool, and each user's exact errors under its mechanisms."""

    pool: tuple[dps.Mechanism, ...]
    errors: FloatArray

    @classmethod
    def of(cls, pool: Sequence[dps.Mechanism], fleet: Fleet, anchors: FloatArray | None) -> "_Errors":
        return cls(tuple(pool), fleet_errors(pool, fleet.scores, fleet.sensitivities, anchors=anchors))

    @property
    def means(self) -> FloatArray:
        return np.asarray(self.errors.mean(axis=1))

    def mean_of(self, mechanism: dps.Mechanism) -> float:
        """Return the mean error of one of the pool."""
        return float(self.means[self.pool.index(mechanism)])

    def tuned(self, budget: float, fleet: Fleet) -> _Tuned:
        """Return what a private choice among the pool comes to."""
        probabilities = choice_pmf(self.errors, budget, cap=fleet.cap, copies=fleet.copies)
        first = int(probabilities.argmax())
        return _Tuned(float(probabilities @ self.means), self.pool[first].label, float(probabilities[first]))


def _with_anchors(plain: _Errors, fleet: Fleet, epsilon: float) -> _Errors:
    """Return the pool for fleets that have anchors: what takes them gets them; the rest is as without."""
    wide = default_pool(epsilon, anchors=True, gammas=(fleet.gamma,), beta=BETA)
    taking = _Errors.of([member for member in wide if "anchors" in member.takes], fleet, fleet.anchors)
    kept = [place for place, member in enumerate(plain.pool) if "anchors" not in member.takes]
    pool = (*taking.pool, *(plain.pool[place] for place in kept))
    return _Errors(pool, np.concatenate([taking.errors, plain.errors[kept]]))
