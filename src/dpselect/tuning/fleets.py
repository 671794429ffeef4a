"""Fleets of users, and the exact errors of mechanisms on them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dpselect import parameters as check
from dpselect.candidates import Batch, Numbers, read_batch
from dpselect.evaluation import mean_errors
from dpselect.kernels.arrays import FloatArray
from dpselect.mechanisms import Mechanism
from dpselect.parallel import cut_rows
from dpselect.pools import read_members
from dpselect.progress import tracked

__all__ = ["MOST_USERS", "Fleet", "fleet_errors"]

MOST_USERS = 2**28
"""The sum of this number of errors stays below 2⁵³, so float64 holds it exactly."""

BLOCK = 2**20
"""The number of candidates read at once, which bounds the memory."""


def fleet_errors(
    pool: Sequence[Mechanism],
    scores: Numbers,
    sensitivities: Numbers,
    *,
    power: float = 2,
    progress: bool | None = False,
) -> FloatArray:
    """Return the exact expected error of each user under each mechanism: a row for each mechanism.

    **Not private**: :func:`tune` adds these errors up before it cuts them off and adds noise. Use it on public or
    synthetic fleets to see what tuning would find.

    Args:
        pool: The mechanisms.
        scores: A row for each user, in any form that mechanisms accept.
        sensitivities: The sensitivities, which broadcast against scores.
        power: The power of the error: 2 for the mean squared error.
        progress: Whether to show a progress bar; ``None`` for a terminal only.

    Example:
        >>> import dpselect as dps
        >>> pool = [dps.Uniform(), dps.RandomizedResponse(epsilon=50.0)]
        >>> dps.tuning.fleet_errors(pool, [[0.0, 2.0], [1.0, 1.0]], 1.0).round(3)
        array([[2., 0.],
               [0., 0.]])
    """
    fleet = Fleet.read(scores, sensitivities)
    exponent = check.positive("power", power)
    members = read_members(pool)
    parts = [(number, part) for number in range(len(members)) for part in fleet.parts()]
    found = np.empty((len(members), fleet.users))
    for number, part in tracked(parts, total=len(parts), label="errors", shown=progress):
        found[number, part] = fleet.errors(members[number], part, exponent)
    return found


@dataclass(frozen=True, slots=True)
class Fleet:
    """The scores of all users and the public numbers that go with them, readable in parts."""

    batch: Batch

    @classmethod
    def read(cls, scores: Numbers, sensitivities: Numbers) -> "Fleet":
        """Validate a row of scores for each user."""
        batch = read_batch(scores, sensitivities)
        if batch.shape is not None and len(batch.shape) != 1:
            raise ValueError("scores must have two axes: a row for each user, a column for each candidate")
        if batch.rows == 0:
            raise ValueError("scores must hold at least one user")
        if batch.rows > MOST_USERS:
            raise ValueError(f"scores must hold at most 2^{MOST_USERS.bit_length() - 1} users")
        batch.check_scores()
        return cls(batch)

    @property
    def users(self) -> int:
        """The number of users."""
        return self.batch.rows

    def parts(self) -> Iterator[slice]:
        """Return slices of users, none with more candidates than a block unless it is a single user."""
        return (slice(*block) for block in cut_rows(self.batch.table.bounds, BLOCK))

    def errors(self, mechanism: Mechanism, part: slice, power: float) -> FloatArray:
        """Return the exact expected error of some users.

        In compiled code a user's error depends on that user's row alone, to the last bit: not on other rows, their
        number or the threads. So rounding does not change the sensitivity of the sums.
        """
        return mean_errors(mechanism, self.batch.rows_between(part.start, part.stop), power)
