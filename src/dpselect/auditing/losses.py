"""How far apart a mechanism's laws on two neighbouring sets of scores are."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

import dpselect.parameters as check
from dpselect.candidates import read_neighbours, read_numbers
from dpselect.mechanisms.base import Mechanism

__all__ = ["ACCURACY", "PrivacyLoss", "certain_losses", "privacy_loss", "privacy_profile"]

FloatArray: TypeAlias = NDArray[np.float64]

ACCURACY = 1e-12
"""How far a computed probability may be from the true one."""

SMALLEST = 1e-250
"""Two probabilities below this are not compared: float64 runs out of digits there, then of numbers."""


class PrivacyLoss(NamedTuple):
    """The largest log-ratio of probabilities, in both directions: numbers, or arrays with one for each row."""

    forward: Any
    """max_a log(Pr[a | scores] / Pr[a | neighbour])."""
    backward: Any
    """max_a log(Pr[a | neighbour] / Pr[a | scores])."""

    @property
    def epsilon(self) -> Any:  # noqa: ANN401 - a number, or an array
        """The larger of the two: the smallest ε that covers this pair."""
        return np.maximum(self.forward, self.backward)[()]


def privacy_loss(
    mechanism: Mechanism,
    scores: ArrayLike,
    neighbour: ArrayLike,
    sensitivities: ArrayLike,
    *,
    accuracy: float = 0.0,
    **public: ArrayLike,
) -> PrivacyLoss:
    """Return the exact privacy loss of one pick on two neighbouring sets of scores.

    max_a log(Pr[a | q] / Pr[a | q']) and the same with q and q' exchanged, from the exact probabilities. It is
    infinite if a candidate is possible on one side only. A mechanism is ε-DP if the loss is at most ε for all
    neighbours; :func:`audit` searches for the worst ones. **Not private**: meant for synthetic scores.

    Args:
        mechanism: Any object with a ``pmf``.
        scores: Scores, last axis candidates, leading axes a batch of pairs.
        neighbour: Scores of the same shape, each within its sensitivity of ``scores``.
        sensitivities: The sensitivities; they broadcast against the scores.
        accuracy: How far each probability may be from the true one. Zero takes the computed ones at their word;
            1e-12 gives a loss that is certainly reached, whatever the rounding.
        **public: ``offsets=`` or ``anchors=`` for mechanisms that take them.

    Cost:
        Two calls of ``pmf``.

    Example:
        >>> import dpselect as dps
        >>> from dpselect.auditing import privacy_loss
        >>> loss = privacy_loss(dps.NoisyMax(epsilon=1.0), [0.0, 2.0], [1.0, 1.0], 1.0)
        >>> round(float(loss.forward), 4), round(float(loss.backward), 4)
        (0.4899, 1.0)
        >>> naive = dps.unsafe.HeterogeneousNoisyMax(epsilon=1.0)
        >>> float(privacy_loss(naive, [0.0, 0.5], [0.0, -0.5], [0.0, 1.0]).epsilon)
        inf

    References:
        C. Dwork, A. Roth, The Algorithmic Foundations of Differential Privacy, 2014, definition 2.4.
    """
    before, after = _both_laws(mechanism, scores, neighbour, sensitivities, public)
    forward, backward = certain_losses(before, after, check.real("accuracy", accuracy))
    return PrivacyLoss(forward.max(axis=-1)[()], backward.max(axis=-1)[()])


def privacy_profile(
    mechanism: Mechanism,
    scores: ArrayLike,
    neighbour: ArrayLike,
    sensitivities: ArrayLike,
    epsilons: ArrayLike,
    **public: ArrayLike,
) -> FloatArray:
    r"""Return the δ that each ε leaves uncovered on two neighbouring sets of scores: the hockey-stick curve.

    δ(ε) = max of Σ_a max(0, Pr[a | q] − e^ε Pr[a | q']) and the same with q and q' exchanged. It falls in ε, and
    is zero from the :func:`privacy_loss` on. **Not private**: meant for synthetic scores.

    Args:
        mechanism: Any object with a ``pmf``.
        scores: Scores, last axis candidates, leading axes a batch of pairs.
        neighbour: Scores of the same shape, each within its sensitivity of ``scores``.
        sensitivities: The sensitivities; they broadcast against the scores.
        epsilons: One number, or a row of them, which becomes the last axis of the result.
        **public: ``offsets=`` or ``anchors=`` for mechanisms that take them.

    Cost:
        Two calls of ``pmf``, and O(k) for each ε.

    Example:
        >>> import dpselect as dps
        >>> from dpselect.auditing import privacy_profile
        >>> mechanism = dps.RandomizedResponse(epsilon=1.0)
        >>> privacy_profile(mechanism, [0.0, 1.0], [1.0, 0.0], 1.0, [0.0, 0.5, 1.0]).round(3)
        array([0.462, 0.288, 0.   ])

    References:
        G. Barthe, F. Olmedo, Beyond differential privacy: composition theorems and relational logic for
        f-divergences between probabilistic programs, 2013.
    """
    losses = read_numbers("epsilons", epsilons)
    if losses.ndim > 1 or np.isnan(losses).any():
        raise ValueError("epsilons must be one number, or a row of them")
    with np.errstate(over="ignore"):  # nothing is left uncovered by an ε beyond float64's e^ε
        factors = np.exp(losses)
    before, after = (
        law[..., np.newaxis, :] for law in _both_laws(mechanism, scores, neighbour, sensitivities, public)
    )
    flat = np.atleast_1d(factors)[:, np.newaxis]
    excess: FloatArray = np.maximum(
        np.maximum(before - flat * after, 0).sum(axis=-1), np.maximum(after - flat * before, 0).sum(axis=-1)
    )
    return excess if factors.ndim else excess[..., 0]


def certain_losses(before: FloatArray, after: FloatArray, accuracy: float) -> tuple[FloatArray, FloatArray]:
    """Return what each candidate's log-ratios are at least, both ways, if probabilities are off by ``accuracy``."""
    comparable = np.maximum(before, after) > SMALLEST
    with np.errstate(divide="ignore", invalid="ignore"):
        forward = np.log(np.maximum(before - accuracy, 0)) - np.log(after + accuracy)
        backward = np.log(np.maximum(after - accuracy, 0)) - np.log(before + accuracy)
    return np.where(comparable, forward, -np.inf), np.where(comparable, backward, -np.inf)


def _both_laws(
    mechanism: Mechanism,
    scores: ArrayLike,
    neighbour: ArrayLike,
    sensitivities: ArrayLike,
    public: dict[str, ArrayLike],
) -> tuple[FloatArray, FloatArray]:
    """Return the probabilities on both sides, once they are known to be neighbours."""
    check.require_attributes("mechanism", mechanism, "pmf")
    here, there, bounds = read_neighbours(scores, neighbour, sensitivities)
    return mechanism.pmf(here, bounds, **public), mechanism.pmf(there, bounds, **public)
