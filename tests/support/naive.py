"""Naive evaluation of a mechanism on users' lists."""

import numpy as np


def naive_error(mechanism, users):
    """Return the mean squared difference from each user's best score, one user at a time."""
    return np.mean(
        [
            np.sum(mechanism.pmf(q, d) * (q.max() - q) ** 2)
            for q, d in zip(users.scores, users.sensitivities, strict=True)
        ]
    )
