"""Fleets of users, and the exact errors of mechanisms on them."""

from collections.abc import Sequence

import numpy as np

from dpselect import parameters as check
from dpselect.candidates import Batch, read_batch
from dpselect.evaluation import mean_errors
from dpselect.inputs import Numbers
from dpselect.kernels.arrays import FloatArray
from dpselect.mechanisms import Mechanism
from dpselect.parallel import cut_rows
from dpselect.pools import read_members

MOST_USERS = 2**28
"""The sum of this number of errors stays below 2⁵³, so float64 holds it exactly."""

BLOCK = 2**20
"""The number of candidates read at once, which bounds the memory."""


def fleet_errors(
    pool: Sequence[Mechanism], scores: Numbers, sensitivities: Numbers, *, power: float = 2
) -> FloatArray:
    """Return the exact expected error of each user under each mechanism: a row for each mechanism.

    **Not private**: :func:`tune` adds these errors up before it cuts them off and adds noise. Use it on public or
    synthetic fleets to see what tuning would find.

    Args:
        pool: The mechanisms.
        scores: A row for each user, in any form that mechanisms accept.
        sensitivities: The sensitivities, which broadcast against scores.
        power: The power of the error: 2 for the mean squared error.

    Example:
        >>> import dpselect as dps
        >>> pool = [dps.Uniform(), dps.RandomizedResponse(epsilon=50.0)]
        >>> dps.tuning.fleet_errors(pool, [[0.0, 2.0], [1.0, 1.0]], 1.0).round(3)
        array([[2., 0.],
               [0., 0.]])
    """
    fleet = read_fleet(scores, sensitivities)
    exponent = check.positive("power", power)
    members = read_members(pool)
    found = np.empty((len(members), fleet.rows))
    for first, last in cut_rows(fleet.table.bounds, BLOCK):
        part = fleet.rows_between(first, last)
        found[:, first:last] = [mean_errors(member, part, exponent) for member in members]
    return found


def read_fleet(scores: Numbers, sensitivities: Numbers) -> Batch:
    """Validate a row of scores for each user, and the public numbers that go with them."""
    batch = read_batch(scores, sensitivities)
    if batch.shape is not None and len(batch.shape) != 1:
        raise ValueError("scores must have two axes: a row for each user, a column for each candidate")
    if batch.rows == 0:
        raise ValueError("scores must hold at least one user")
    if batch.rows > MOST_USERS:
        raise ValueError(f"scores must hold at most 2^{MOST_USERS.bit_length() - 1} users")
    return batch
