"""The exact error of a mechanism on given scores, from its probabilities."""

from dataclasses import dataclass, field
from itertools import pairwise
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
    mechanism: Mechanism,
    scores: Numbers,
    sensitivities: Numbers | None = None,
    power: float = 2,
    **public: Numbers,
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
    law = _ErrorLaw.of(mechanism, scores, sensitivities, public)
    with np.errstate(over="ignore"):  # an error beyond float64 is infinite
        return law.mean(law.errors**exponent)


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
    law = _ErrorLaw.of(mechanism, scores, sensitivities, public)
    return law.mean(law.errors == 0)


def error_quantile(
    mechanism: Mechanism,
    scores: Numbers,
    sensitivities: Numbers | None = None,
    level: float = 0.95,
    **public: Numbers,
) -> Any:
    """Return a quantile of the error of the pick, one for each row.

    It is the smallest error that the pick exceeds with a probability of at most 1 − level. Probabilities are summed
    from the largest error down, so it is accurate for levels very close to 1 too, and ``level=1`` gives the largest
    possible error. An excess of one part in 10¹² over 1 − level counts as rounding. **Not private**: it reads the
    scores and reveals them.

    Args:
        mechanism: Any mechanism.
        scores: The scores, in any form that ``mechanism.pmf`` accepts.
        sensitivities: The sensitivities, for mechanisms that need them.
        level: A number above 0 and at most 1; 0.5 gives the median.
        **public: ``offsets=`` or ``weights=`` for mechanisms that take them.

    Example:
        >>> import dpselect as dps
        >>> float(dps.error_quantile(dps.Uniform(), [0.0, 1.0, 2.0, 4.0], 1.0, level=0.75))
        3.0
        >>> float(dps.error_quantile(dps.NoisyMax(epsilon=8.0), [0.0, 1.0, 2.0, 4.0], 1.0, level=0.99))
        0.0
    """
    excess = (1 - check.probability("level", level)) * (1 + 1e-12)
    law = _ErrorLaw.of(mechanism, scores, sensitivities, public)
    batch, errors, chances = law.batch, law.errors, law.probabilities
    if batch.shape is not None:
        rows = (batch.rows, batch.row_size)
        return batch.restore_rows(_quantiles(errors.reshape(rows), chances.reshape(rows), excess))
    ends = pairwise(batch.table.bounds.tolist())
    return np.array([_quantiles(errors[first:last], chances[first:last], excess) for first, last in ends])


def _quantiles(errors: FloatArray, probabilities: FloatArray, excess: float) -> FloatArray:
    """Return the smallest error of each row that is exceeded with a probability of at most ``excess``."""
    falling = np.argsort(-errors, axis=-1)
    reached = np.cumsum(np.take_along_axis(probabilities, falling, axis=-1), axis=-1) > excess
    reached[..., -1] = True
    place = np.take_along_axis(falling, reached.argmax(axis=-1, keepdims=True), axis=-1)
    return np.take_along_axis(errors, place, axis=-1)[..., 0]


def mean_errors(mechanism: Mechanism, batch: Batch, power: float) -> FloatArray:
    """Return :func:`expected_error` of each row of a batch whose scores have been checked, one after the other."""
    law = _ErrorLaw.of_batch(batch, mechanism.law(batch.sizes).pmf(batch))
    with np.errstate(over="ignore"):
        return np.asarray(law.mean(law.errors**power)).reshape(-1)


@dataclass(frozen=True, slots=True)
class _ErrorLaw:
    """The law of best score − picked score: the error and the probability of each candidate, flat."""

    batch: Batch
    errors: FloatArray = field(repr=False)
    probabilities: FloatArray = field(repr=False)

    @classmethod
    def of(
        cls, mechanism: Mechanism, scores: Numbers, sensitivities: Numbers | None, public: dict[str, Any]
    ) -> "_ErrorLaw":
        """Return the law of the error of the pick. It is as private as the scores."""
        require_mechanism(mechanism)
        scores, others, _ = split_labels(to_host(scores), sensitivities=sensitivities, **public)
        sensitivities, public = others.pop("sensitivities"), others
        weights = mechanism.pmf(scores, sensitivities, **public)
        batch = read_batch(scores, 0.0 if sensitivities is None else sensitivities, **public)
        return cls.of_batch(batch, np.asarray(weights.flatten()) if batch.arrow else weights.reshape(-1))

    @classmethod
    def of_batch(cls, batch: Batch, probabilities: FloatArray) -> "_ErrorLaw":
        """Return the law of the error for a batch and its flat probabilities."""
        values = batch.spread(batch.table.scores)
        return cls(batch, np.repeat(batch.reduced(values, np.maximum), batch.sizes) - values, probabilities)

    def mean(self, numbers: FloatArray) -> Any:
        """Return the mean of a function of the pick. Impossible candidates do not count, even at infinity."""
        possible = self.probabilities != 0
        parts = np.multiply(self.probabilities, numbers, out=np.zeros(possible.size), where=possible)
        return self.batch.restore_rows(self.batch.reduced(parts, np.add))
