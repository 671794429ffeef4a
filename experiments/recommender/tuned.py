"""The tuned mechanism: one private choice for all users, out of three normalisations and many tilts."""

import numpy as np
from numpy.typing import NDArray

import dpselect as dps
from experiments.recommender.protocol import BETA, Lists, Row

__all__ = ["pool", "tuned_row"]

TUNING_EPSILON = 0.1
CAP = (1e-8, 1.0)
"""Squared errors are looked for between these: predicted scores are probabilities of a like, more or less."""
TILTS = (-32.0, -16.0, -8.0, -4.0, -2.0, -1.0, 0.0, 1.0)


def pool(epsilon: float) -> list[dps.Mechanism]:
    """Return the mechanisms that compete: all with a fast exact law."""
    return [
        *(dps.GEM(epsilon=epsilon, beta=BETA, tilt=tilt) for tilt in TILTS),
        *(dps.NoisyMax(epsilon=epsilon, beta=BETA, tilt=tilt) for tilt in TILTS),
        *(dps.StandardizedNoisyMax(epsilon=epsilon, beta=BETA, tilt=tilt) for tilt in TILTS),
        dps.RandomizedResponse(epsilon=epsilon),
    ]


def tuned_row(users: Lists, anchors: NDArray[np.float64], epsilon: float, *, seed: int) -> Row:
    """Tune on the users, and return what was chosen and how it does next to mGEM and noisy max.

    The middles of the items' ranges are anchors: as public, or not, as the ranges are.
    """
    tuned = dps.tuning.tune(
        users.scores,
        users.sensitivities,
        epsilon,
        TUNING_EPSILON,
        cap=CAP,
        pool=pool(epsilon),
        anchors=anchors,
        randomness=dps.Randomness.seeded(seed),
        progress=False,
    )
    rivals = [tuned.mechanism, dps.ModifiedGEM(epsilon=epsilon, beta=BETA), dps.NoisyMax(epsilon=epsilon)]
    errors = dps.tuning.fleet_errors(rivals, users.scores, users.sensitivities, anchors=anchors).mean(axis=1)
    return {
        "epsilon": epsilon,
        "tuning_epsilon": TUNING_EPSILON,
        "chosen": str(tuned),
        "mean_squared_error": float(errors[0]),
        "mgem": float(errors[1]),
        "rnm": float(errors[2]),
        "users": len(users),
    }
