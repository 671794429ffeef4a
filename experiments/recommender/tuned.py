"""The tuned mechanism: one private choice for all users, from two normalisations and many tilts."""

import dpselect as dps
from experiments.mechanisms import BETA, TILTED, build
from experiments.recommender.protocol import Lists, Row

__all__ = ["pool", "tuned_row"]

TUNING_EPSILON = 0.1
CAP = (1e-8, 1.0)
"""The range of caps on squared errors. Predicted scores are roughly probabilities of a like."""
TILTS = (-32.0, -16.0, -8.0, -4.0, -2.0, -1.0, 0.0, 1.0)
ORDER = ("tilted-gem", "tilted-rnm")
"""Committed results of an earlier version also had standardized noisy max in the pool."""


def pool(epsilon: float) -> list[dps.Mechanism]:
    """Return the mechanisms to choose from. All have a fast exact pmf."""
    return [
        *(TILTED[name](epsilon=epsilon, beta=BETA, tilt=tilt) for name in ORDER for tilt in TILTS),
        build("krr", epsilon),
    ]


def tuned_row(users: Lists, epsilon: float, *, seed: int) -> Row:
    """Tune on the users, and return the choice and its error next to mGEM's and noisy max's."""
    tuned = dps.tuning.tune(
        users.scores,
        users.sensitivities,
        epsilon,
        TUNING_EPSILON,
        cap=CAP,
        pool=pool(epsilon),
        randomness=dps.Randomness.seeded(seed),
    )
    rivals = [tuned.mechanism, build("mgem", epsilon), build("rnm", epsilon)]
    errors = dps.tuning.fleet_errors(rivals, users.scores, users.sensitivities).mean(axis=1)
    return {
        "epsilon": epsilon,
        "tuning_epsilon": TUNING_EPSILON,
        "chosen": str(tuned),
        "mean_squared_error": float(errors[0]),
        "mgem": float(errors[1]),
        "rnm": float(errors[2]),
        "users": len(users),
    }
