"""How good a mechanism is on given scores, exactly."""

from typing import Any

import numpy as np

from dpselect import parameters as check
from dpselect.candidates import Numbers, read_batch
from dpselect.mechanisms.protocol import Mechanism

__all__ = ["expected_error"]


def expected_error(
    mechanism: Mechanism,
    scores: Numbers,
    sensitivities: Numbers,
    power: float = 2,
    **public: Numbers,
) -> Any:  # noqa: ANN401 - a float, or an array with one for each row
    """Return the exact mean of |best score − picked score|^power, one for each row.

    ``power=2`` gives the mean squared error, ``power=1`` the expected regret. Computed from the
    mechanism's exact probabilities, without sampling. **Not private**: it reads the scores and reveals them.

    Args:
        mechanism: Any mechanism.
        scores: The scores, in any form that ``mechanism.pmf`` accepts.
        sensitivities: The sensitivities.
        power: A positive number.
        **public: ``offsets=`` or ``anchors=`` for mechanisms that take them. They enter the draw only:
            errors are measured on ``scores``.

    Example:
        >>> import dpselect as dps
        >>> float(dps.expected_error(dps.Uniform(), [0.0, 2.0], 1.0))
        2.0
    """
    exponent = check.positive("power", power)
    batch = read_batch(scores, sensitivities)
    probabilities = mechanism.pmf(scores, sensitivities, **public)
    if batch.rows == 0:
        return batch.restore_rows(np.empty(0))
    if batch.shape is not None:
        values = np.broadcast_to(np.asarray(scores, dtype=np.float64), probabilities.shape)
        shortfalls = values.max(axis=-1, keepdims=True) - values
        return (probabilities * shortfalls**exponent).sum(axis=-1)[()]
    flat = np.asarray(probabilities.flatten()) if batch.arrow else probabilities
    values, starts = batch.table.scores
    shortfalls = np.repeat(np.maximum.reduceat(values, starts), batch.sizes) - values
    return np.add.reduceat(flat * shortfalls**exponent, starts)
