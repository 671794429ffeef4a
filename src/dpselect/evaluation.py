"""The exact error of a mechanism on given scores, from its probabilities."""

from typing import Any

import numpy as np

from dpselect import parameters as check
from dpselect.arrays import to_host
from dpselect.candidates import Batch, read_batch
from dpselect.inputs import Numbers
from dpselect.kernels.arrays import FloatArray
from dpselect.labels import split_labels
from dpselect.mechanisms.base import Mechanism, require_mechanism


def expected_error(
    mechanism: Mechanism, scores: Numbers, sensitivities: Numbers | None = None, power: float = 2, **public: Numbers
) -> Any:
    """Return the exact mean of ``|best score − picked score| ** power``, one for each row.

    ``power=2`` gives the mean squared error, ``power=1`` the expected regret. **Not private**: it reads the scores
    and reveals them.

    Args:
        mechanism: Any mechanism.
        scores: The scores, in any form that ``mechanism.pmf`` accepts.
        sensitivities: The sensitivities, for mechanisms that need them.
        power: A positive number. A power of an error beyond float64 counts as infinite.
        **public: ``offsets=`` or ``weights=`` for mechanisms that take them. They change the pick,
            not the error of a candidate.

    Example:
        >>> import dpselect as dps
        >>> float(dps.expected_error(dps.Uniform(), [0.0, 2.0], 1.0))
        2.0
    """
    exponent = check.positive("power", power)
    return _mean_error(*_read_law(mechanism, scores, sensitivities, public), exponent)


def probability_of_best(
    mechanism: Mechanism, scores: Numbers, sensitivities: Numbers | None = None, **public: Numbers
) -> Any:
    """Return the exact probability that the pick has the best score, one for each row.

    If several candidates share the best score, each of them counts. **Not private**: it reads the scores and
    reveals them.

    Args:
        mechanism: Any mechanism.
        scores: The scores, in any form that ``mechanism.pmf`` accepts.
        sensitivities: The sensitivities, for mechanisms that need them.
        **public: ``offsets=`` or ``weights=`` for mechanisms that take them.

    Example:
        >>> import dpselect as dps
        >>> float(dps.probability_of_best(dps.Uniform(), [0.0, 2.0, 2.0, 1.0], 1.0))
        0.5
    """
    batch, pmf = _read_law(mechanism, scores, sensitivities, public)
    return _mean(batch, pmf, _errors(batch) == 0)


def mean_errors(mechanism: Mechanism, batch: Batch, power: float) -> FloatArray:
    """Return :func:`expected_error` of each row of a batch whose scores have been checked, one after the other."""
    return np.asarray(_mean_error(batch, mechanism.law(batch.sizes).pmf(batch), power)).reshape(-1)


def _read_law(
    mechanism: Mechanism, scores: Numbers, sensitivities: Numbers | None, public: dict[str, Any]
) -> tuple[Batch, FloatArray]:
    """Return the rows and the probabilities of all candidates, flat."""
    require_mechanism(mechanism)
    scores, others, _ = split_labels(to_host(scores), sensitivities=sensitivities, **public)
    sensitivities, public = others.pop("sensitivities"), others
    pmf = mechanism.pmf(scores, sensitivities, **public)
    batch = read_batch(scores, 0.0 if sensitivities is None else sensitivities, **public)
    return batch, np.asarray(pmf.flatten()) if batch.arrow else pmf.reshape(-1)


def _errors(batch: Batch) -> FloatArray:
    """Return best score − score of all candidates, flat."""
    values = batch.spread(batch.table.scores)
    return np.asarray(np.repeat(batch.reduced(values, np.maximum), batch.sizes) - values)


def _mean_error(batch: Batch, pmf: FloatArray, power: float) -> Any:
    with np.errstate(over="ignore"):  # an error beyond float64 is infinite
        return _mean(batch, pmf, _errors(batch) ** power)


def _mean(batch: Batch, pmf: FloatArray, numbers: FloatArray) -> Any:
    """Return the mean of a function of the pick. Impossible candidates do not count, even at infinity."""
    parts = np.multiply(pmf, numbers, out=np.zeros(pmf.size), where=pmf != 0)
    return batch.restore_rows(batch.reduced(parts, np.add))
