"""Combined GEM: ask privately whether scores and sensitivities correlate, then run GEM or modified GEM."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

import dpselect.parameters as check
from dpselect import exact, kernels
from dpselect.candidates import Batch, Numbers, read_batch
from dpselect.guarantees import Guarantee
from dpselect.kernels.arrays import FloatArray, IndexArray
from dpselect.mechanisms.composition import Composition
from dpselect.mechanisms.gem import gem_composition
from dpselect.mechanisms.protocol import stream_of
from dpselect.mechanisms.rows import pick_rows
from dpselect.parallel import over_rows
from dpselect.parameters import store
from dpselect.randomness import Randomness

__all__ = ["CombinedGEM"]


@final
@dataclass(frozen=True, kw_only=True)
class CombinedGEM:
    r"""Ask by randomised response whether Spearman's correlation is ≥ 0; run modified GEM if so, else GEM.

    The question takes ε_c = correlation_share · ε and is answered truly with probability e^ε_c/(1 + e^ε_c);
    the pick takes ε_g = ε − ε_c:

        Pr[a] = w · Pr_mGEM[a] + (1 − w) · Pr_GEM[a],
        w = the probability of the answer "≥ 0".

    It pays where correlations differ between rows and cannot be guessed: where they can, the budget
    is better spent on the pick. A correlation that is undefined because the scores or the sensitivities are
    all equal counts as 0. The correlation's sign is computed in integers, so it is exact, ties included.

    Privacy:
        ε-DP, ε = ε_c + ε_g by composition, assuming public sensitivities and candidates.

    Cost:
        O(k log k); ``pmf`` that of two GEMs.

    Args:
        epsilon: The privacy budget of one pick, for the question and the pick together.
        beta: The failure probability in t, which is GEM's at ε_g.
        correlation_share: The part of ε spent on the question, strictly between 0 and 1.

    Example:
        >>> import dpselect as dps
        >>> scores, sensitivities = [1.0, 0.0, 0.0], [1.8, 1.0, 1.0]
        >>> dps.CombinedGEM(epsilon=4.0).pmf(scores, sensitivities).round(3)
        array([0.731, 0.134, 0.134])

    References:
        D. Antonova et al., Private selection with heterogeneous sensitivities, 2025, algorithm 2.
    """

    epsilon: float
    beta: float = 0.05
    correlation_share: float = 0.6

    def __post_init__(self) -> None:
        store(
            self,
            epsilon=check.positive("epsilon", self.epsilon),
            beta=check.inside_unit_interval("beta", self.beta),
            correlation_share=check.inside_unit_interval("correlation_share", self.correlation_share),
        )

    @property
    def guarantee(self) -> Guarantee:
        """ε-DP: the question's budget and the pick's add up."""
        return Guarantee(
            epsilon=self.epsilon,
            flat_epsilon=self.question_epsilon,
            theorem="randomised response on one bit at ε_c, then GEM at ε_g: (ε_c + ε_g)-DP by composition",
            reference="Antonova et al. 2025, algorithm 2; Dwork and Roth 2014, theorem 3.14",
        )

    @property
    def question_epsilon(self) -> float:
        """The budget of the question, ε_c."""
        return self.correlation_share * self.epsilon

    @property
    def pick_epsilon(self) -> float:
        """The budget of the pick, ε_g: what is left, rounded so that the two never exceed ε."""
        rest = self.epsilon - self.question_epsilon
        exceeds = Fraction(rest) + Fraction(self.question_epsilon) > Fraction(self.epsilon)
        return math.nextafter(rest, 0.0) if exceeds else rest

    def pmf(self, scores: Numbers, sensitivities: Numbers) -> Any:  # noqa: ANN401
        """Return the exact probability of each candidate. Not private: it reveals scores."""
        batch = read_batch(scores, sensitivities)
        truth = 1.0 / (1.0 + math.exp(-self.question_epsilon))
        lie = math.exp(-self.question_epsilon) * truth
        positive = np.repeat(self._positive(batch), batch.sizes) == 1
        modified = self._gem(batch, -1.0).pmf(batch)
        original = self._gem(batch, 1.0).pmf(batch)
        return batch.restore_candidates(
            np.where(positive, truth * modified + lie * original, lie * modified + truth * original)
        )

    def select(self, scores: Numbers, sensitivities: Numbers, *, randomness: Randomness | None = None) -> Any:  # noqa: ANN401
        """Return the index of one candidate for each row, drawn privately."""
        batch = read_batch(scores, sensitivities)
        source = stream_of(self, randomness)
        source.units(batch.rows)  # refuses a wrong number of units before the work
        positive = self._positive(batch)
        answers = pick_rows(
            batch,
            source.lane("correlation"),
            lambda first, last, units, width, picks: kernels.rows.noisy_signs(
                first, last, positive, self.question_epsilon, units, width, picks
            ),
            lambda row, stream: exact.report_sign(int(positive[row]), self.question_epsilon, stream),
        )
        tilts = np.where(answers == 1, -1.0, 1.0)
        return batch.restore_rows(self._gem(batch, tilts).select(batch, source.lane("pick")))

    def _gem(self, batch: Batch, tilt: float | FloatArray) -> Composition:
        return gem_composition(batch, self.pick_epsilon, self.beta, tilt)

    def _positive(self, batch: Batch) -> IndexArray:
        """Return, for each row, 1 if the correlation is at least 0 and 0 otherwise."""
        signs = np.empty(batch.rows, dtype=np.int64)
        if batch.rows:
            over_rows(
                batch.table.bounds,
                lambda first, last: kernels.rows.correlation_signs(first, last, batch.table, signs),
                seconds=1e-7,
            )
        return signs
