"""The default against noisy max, user by user: for how many users it is worse, and by how much."""

from collections.abc import Sequence

import numpy as np

import dpselect as dps
from experiments.arrays import FloatArray
from experiments.mechanisms import BETA
from experiments.recommender.protocol import Lists, Row

__all__ = ["EPSILONS", "WORSE", "gain_rows"]

EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
WORSE = 1 + 1e-6
"""The ratio of errors above which a user is worse off. The offsets of the default are solved to 1e-6."""


def gain_rows(users: Lists, epsilons: Sequence[float] = EPSILONS) -> list[Row]:
    """Return for each ε how the users' exact errors with the default relate to those with noisy max."""
    return [_gain_row(users, epsilon) for epsilon in epsilons]


def _gain_row(users: Lists, epsilon: float) -> Row:
    ours = _errors(dps.HeterogeneousNoisyMax(epsilon=epsilon, beta=BETA), users)
    theirs = _errors(dps.NoisyMax(epsilon=epsilon), users)
    # A user whose scores are all equal has no error, whatever is picked.
    ratios = ours[theirs > 0] / theirs[theirs > 0]
    return {
        "epsilon": epsilon,
        "users": len(users),
        "worse": int((ratios > WORSE).sum()),
        "largest_ratio": float(ratios.max(initial=0.0)),
        "median_ratio": float(np.median(ratios)),
        "default": float(ours.mean()),
        "rnm": float(theirs.mean()),
    }


def _errors(mechanism: dps.Mechanism, users: Lists) -> FloatArray:
    parts = [dps.expected_error(mechanism, part.scores, part.sensitivities) for part in users.batches()]
    return np.concatenate(parts)
