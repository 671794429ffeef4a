"""Which noise to use for many picks on one budget."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

import dpselect.parameters as check
from dpselect.accounting.totals import epsilon_per_pick
from dpselect.candidates import Numbers
from dpselect.evaluation import expected_error
from dpselect.mechanisms import Mechanism, NoisyMax
from dpselect.parameters import Noise

__all__ = ["NoiseComparison", "compare_noises"]


@dataclass(frozen=True, kw_only=True)
class NoiseComparison:
    """Exponential against Gumbel noise, for one number of picks."""

    picks: int
    exponential_epsilon: float
    """The budget of a pick with exponential noise."""
    gumbel_epsilon: float
    """The budget of a pick with Gumbel noise."""
    exponential_error: float
    """The expected error of a pick with exponential noise, averaged over rows."""
    gumbel_error: float
    """The expected error of a pick with Gumbel noise, averaged over rows."""

    @property
    def better(self) -> Noise:
        """The noise with the smaller error."""
        return "gumbel" if self.gumbel_error < self.exponential_error else "exponential"


def compare_noises(
    scores: Numbers,
    sensitivities: Numbers,
    *,
    total_epsilon: float,
    delta: float,
    picks: Iterable[int],
    make: Callable[..., Mechanism] = NoisyMax,
    power: float = 2,
    **public: Numbers,
) -> list[NoiseComparison]:
    """Compare exponential and Gumbel noise at a total budget, for several numbers of picks.

    At the same ε, noisy max with exponential noise is never worse. But its privacy loss may lie anywhere between −ε
    and ε, while that of Gumbel noise lies in an interval of length ε. So many picks with Gumbel noise cost about
    half as much, and each gets up to twice the budget. Exponential noise wins for few picks, Gumbel noise for many.

    **Not private**: it reads the scores and reveals them. Pass public or synthetic ones.

    Args:
        scores: Scores, in any form that ``pmf`` accepts.
        sensitivities: Their sensitivities.
        total_epsilon: The ε of all picks together.
        delta: The δ of all picks together.
        picks: The numbers of picks to compare.
        make: The mechanism, as a function of ``epsilon=`` and ``noise=``: ``NoisyMax``, ``GEM``,
            ``StandardizedNoisyMax``, or a ``functools.partial`` of one of them.
        power: As in :func:`dpselect.expected_error`.
        **public: ``offsets=`` or ``anchors=``.

    Cost:
        Two calls of :func:`epsilon_per_pick` and of ``pmf`` for each number of picks.

    Example:
        >>> from dpselect import accounting
        >>> few, many = accounting.compare_noises(
        ...     [0.0, 1.0, 2.0], 0.1, total_epsilon=1.0, delta=1e-6, picks=[1, 100]
        ... )
        >>> few.better, many.better
        ('exponential', 'gumbel')

    References:
        R. McKenna, D. Sheldon, Permute-and-Flip: A new mechanism for differentially private selection, 2020.
        D. Durfee, R. Rogers, Practical differentially private top-k selection with pay-what-you-get composition,
        2019.
    """
    if not callable(make):
        raise ValueError("make must be a function of epsilon and noise that returns a mechanism, such as NoisyMax")

    def evaluate(number: int, noise: Noise) -> tuple[float, float]:
        epsilon = epsilon_per_pick(total_epsilon, delta=delta, picks=number, noise=noise)
        errors: Any = expected_error(make(epsilon=epsilon, noise=noise), scores, sensitivities, power, **public)
        if not np.size(errors):
            raise ValueError("scores must hold at least one row")
        return epsilon, float(np.mean(errors))

    rows = []
    for number in check.as_tuple("picks", picks):
        exponential_epsilon, exponential_error = evaluate(number, "exponential")
        gumbel_epsilon, gumbel_error = evaluate(number, "gumbel")
        rows.append(
            NoiseComparison(
                picks=number,
                exponential_epsilon=exponential_epsilon,
                gumbel_epsilon=gumbel_epsilon,
                exponential_error=exponential_error,
                gumbel_error=gumbel_error,
            )
        )
    return rows
