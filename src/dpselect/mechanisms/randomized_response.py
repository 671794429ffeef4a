"""Mechanisms that ignore sensitivities: k-ary randomised response, and a candidate at random."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

import dpselect.parameters as check
from dpselect import exact, kernels
from dpselect.candidates import Numbers, read_batch
from dpselect.guarantees import ANY_SCORES, Guarantee
from dpselect.mechanisms.protocol import stream_of
from dpselect.mechanisms.rows import pick_rows, weigh_rows
from dpselect.parameters import store
from dpselect.randomness import Randomness

__all__ = ["RandomizedResponse", "Uniform"]


@final
@dataclass(frozen=True, kw_only=True)
class RandomizedResponse:
    r"""k-ary randomised response: the best candidate, or now and then any other.

    Pr[a] = e^ε/(e^ε + k − 1) for the best candidate and 1/(e^ε + k − 1) for every other. Sensitivities play
    no role, and neither does how good the others are: it pays where ε is large, about log k and more. If
    several candidates tie for the best, one of them is taken for it at random.

    Privacy:
        ε-DP even if a person's data may change the scores in any way at all.

    Cost:
        O(k).

    Args:
        epsilon: The privacy budget of one pick.

    Example:
        >>> import math, dpselect as dps
        >>> dps.RandomizedResponse(epsilon=math.log(3)).pmf([0.0, 5.0, 1.0], 1.0)
        array([0.2, 0.6, 0.2])

    References:
        S. L. Warner, Randomized response, 1965.
    """

    epsilon: float

    def __post_init__(self) -> None:
        store(self, epsilon=check.positive("epsilon", self.epsilon))

    @property
    def guarantee(self) -> Guarantee:
        """ε-DP for any change of the scores."""
        return Guarantee(
            epsilon=self.epsilon,
            flat_epsilon=self.epsilon,
            neighbours=ANY_SCORES,
            theorem="no output is more than e^ε times as likely for one best candidate as for another",
            reference="Warner 1965",
        )

    def pmf(self, scores: Numbers, sensitivities: Numbers) -> Any:  # noqa: ANN401
        """Return the exact probability of each candidate. Not private: it reveals the best one."""
        batch = read_batch(scores, sensitivities)
        return batch.restore_candidates(
            weigh_rows(
                batch,
                lambda first, last, pmf: kernels.rows.randomized_response_pmf(
                    first, last, batch.table, self.epsilon, pmf
                ),
            )
        )

    def select(self, scores: Numbers, sensitivities: Numbers, *, randomness: Randomness | None = None) -> Any:  # noqa: ANN401
        """Return the index of one candidate for each row, drawn privately."""
        batch = read_batch(scores, sensitivities)
        return batch.restore_rows(
            pick_rows(
                batch,
                stream_of(self, randomness),
                lambda first, last, units, width, picks: kernels.rows.randomized_response_select(
                    first, last, batch.table, self.epsilon, units, width, picks
                ),
                lambda row, stream: exact.pick_randomized_response(batch.row(row)[0], self.epsilon, stream),
            )
        )


@final
@dataclass(frozen=True, kw_only=True)
class Uniform:
    """A candidate at random: Pr[a] = 1/k. What every mechanism should beat, and some do not.

    Privacy:
        Perfect: the scores are not used.

    Cost:
        O(1).

    Example:
        >>> import dpselect as dps
        >>> dps.Uniform().pmf([0.0, 5.0], 1.0)
        array([0.5, 0.5])

    References:
        None needed.
    """

    @property
    def guarantee(self) -> Guarantee:
        """0-DP: the pick is independent of the data."""
        return Guarantee(
            epsilon=0.0,
            flat_epsilon=0.0,
            neighbours=ANY_SCORES,
            theorem="the pick is independent of the scores",
            reference="by definition",
        )

    def pmf(self, scores: Numbers, sensitivities: Numbers) -> Any:  # noqa: ANN401
        """Return 1/k for each candidate."""
        batch = read_batch(scores, sensitivities)
        return batch.restore_candidates(np.repeat(1.0 / batch.sizes, batch.sizes))

    def select(self, scores: Numbers, sensitivities: Numbers, *, randomness: Randomness | None = None) -> Any:  # noqa: ANN401
        """Return a random index for each row."""
        batch = read_batch(scores, sensitivities)
        return batch.restore_rows(
            pick_rows(
                batch,
                stream_of(self, randomness),
                lambda first, last, units, _, picks: kernels.rows.uniform_select(
                    first, last, batch.table, units, picks
                ),
            )
        )
