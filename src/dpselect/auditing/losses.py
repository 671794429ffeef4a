"""The distance between a mechanism's laws on two neighbouring sets of scores."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpselect.candidates import read_neighbours
from dpselect.mechanisms.base import Mechanism, require_mechanism
from dpselect.mechanisms.given import Given

FloatArray: TypeAlias = NDArray[np.float64]

ACCURACY = 1e-12
"""How far a computed probability may be from the true one."""

FLOOR = 1e-250
"""The law of every mechanism is right to 1e-9 of each probability from here on up.

Below, a probability is only known to be small: it counts as nothing where a loss needs it to be large, and as FLOOR
where a loss needs it to be small.
"""


class PrivacyLoss(NamedTuple):
    """The largest log-ratio of probabilities, in both directions: numbers, or arrays with one for each row."""

    forward: Any
    """$max_a log(Pr[a | q] / Pr[a | q'])$, with q the scores and q' the neighbour."""
    backward: Any
    """The same with the two exchanged."""

    @property
    def epsilon(self) -> Any:
        """The larger of the two, which is the smallest ε for this pair."""
        return np.maximum(self.forward, self.backward)[()]


def privacy_loss(
    mechanism: Mechanism, scores: ArrayLike, neighbour: ArrayLike, sensitivities: ArrayLike, **public: ArrayLike
) -> PrivacyLoss:
    """Return the exact privacy loss of one pick on two neighbouring sets of scores.

    The loss is $max_a log(Pr[a | q] / Pr[a | q'])$, and the same with q and q' exchanged. It is infinite if a
    candidate is possible on one side only. A mechanism is ε-DP if the loss is at most ε for all neighbours;
    :func:`audit` searches for the worst ones. **Not private**: use synthetic scores.

    Probabilities below 1e-250 are only known to be small. They never add to a loss, and are read as 1e-250 where
    the other one is larger. A zero is read as impossible only if the loss exceeds the mechanism's ε even so.

    Args:
        mechanism: Any mechanism of single picks.
        scores: Scores, last axis candidates, leading axes a batch of pairs.
        neighbour: Scores of the same shape, each within its sensitivity of ``scores``.
        sensitivities: The sensitivities; they broadcast against the scores.
        **public: ``offsets=`` for mechanisms that take them.

    Cost:
        Two calls of ``pmf``.

    Example:
        >>> import dpselect as dps
        >>> from dpselect.auditing import privacy_loss
        >>> loss = privacy_loss(dps.NoisyMax(epsilon=1.0), [0.0, 2.0], [1.0, 1.0], 1.0)
        >>> round(float(loss.forward), 4), round(float(loss.backward), 4)
        (0.4899, 1.0)
        >>> naive = dps.unsafe.NaiveHeterogeneousNoisyMax(epsilon=1.0)
        >>> float(privacy_loss(naive, [0.0, 0.5], [0.0, -0.5], [0.0, 1.0]).epsilon)
        inf

    References:
        C. Dwork, A. Roth, The Algorithmic Foundations of Differential Privacy, 2014, definition 2.4.
    """
    require_mechanism(mechanism, single=True)
    here, there, bounds = read_neighbours(scores, neighbour, sensitivities)
    before, after = (mechanism.pmf(side, bounds, **public) for side in (here, there))
    floor, _ = precision(mechanism)
    forward, backward = certain_losses(before, after, 0.0, claimed_epsilon(mechanism) or 0.0, floor)
    return PrivacyLoss(forward.max(axis=-1)[()], backward.max(axis=-1)[()])


def precision(mechanism: object) -> tuple[float, float]:
    """Return the smallest probability that counts, and how far one may be off.

    What :func:`dpselect.from_pmf` made samples from its floats as they are, so each of them counts, and a zero is a
    zero. All other probabilities describe a sampler that is more precise than they are.
    """
    return (0.0, 0.0) if isinstance(mechanism, Given) else (FLOOR, ACCURACY)


def certain_losses(
    before: FloatArray, after: FloatArray, accuracy: float, promised: float = 0.0, floor: float = FLOOR
) -> tuple[FloatArray, FloatArray]:
    """Return lower bounds of each candidate's log-ratios, both ways, if probabilities are off by ``accuracy``.

    A probability of zero may also be one too small for a float. It is taken for impossible only if that makes no
    difference to whether a loss of ``promised`` is exceeded.
    """
    return _one_way(before, after, accuracy, promised, floor), _one_way(after, before, accuracy, promised, floor)


def _one_way(more: FloatArray, less: FloatArray, accuracy: float, promised: float, floor: float) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.log(np.maximum(more - accuracy, 0)) - np.log(np.maximum(less, floor) + accuracy)
    impossible = (less + accuracy == 0) & (losses > promised)
    return np.where(more > floor, np.where(impossible, np.inf, losses), -np.inf)


def claimed_epsilon(mechanism: Mechanism) -> float | None:
    """Return the ε that the mechanism claims, in its guarantee or in its field ``epsilon``."""
    guarantee = getattr(mechanism, "guarantee", None)
    if guarantee is not None and guarantee.is_private:
        return float(guarantee.epsilon)
    nominal = getattr(mechanism, "epsilon", None)
    return None if nominal is None else float(nominal)
