"""Why a mechanism wins or loses, in words: sentences made of exact numbers."""

import math
from dataclasses import dataclass

import numpy as np

from dpselect.correlation import spearman
from dpselect.kernels.arrays import FloatArray
from dpselect.mechanisms import Mechanism, NoisyMax, RandomizedResponse, Uniform
from dpselect.registry import MECHANISMS

__all__ = ["Facts", "Row", "is_published", "signed", "tilt_of"]

NEGLIGIBLE = 1e-3
"""By how much of a random pick's error a mechanism may exceed it without a warning."""

ALIKE = 0.01
"""Relative differences between errors that are not worth a less simple mechanism."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """What is to be expected of one mechanism.

    Attributes:
        mechanism: The mechanism.
        error: Its exact expected error, averaged over the examples.
        of_random: Its error divided by that of a candidate at random. Above 1 it loses to random.
        if_reversed: The same where the correlation had the opposite sign; ``None`` unless one was stated.
    """

    mechanism: Mechanism
    error: float
    of_random: float
    if_reversed: float | None = None


@dataclass(frozen=True)
class Facts:
    """What the words rest on: numbers only."""

    rows: tuple[Row, ...]
    epsilon: float
    candidates: int
    equal: bool
    """Whether all sensitivities are equal."""
    correlation: float
    """The mean rank correlation of scores and sensitivities; NaN if there is none."""
    strength: float
    """The mean of its magnitude: examples of opposite sign do not cancel here."""
    positive_share: float
    """The share of examples in which it is positive."""
    signal: float
    """ε (best − mean score)/(2 max Δ): how far the best stands out, in units of the noise."""

    @classmethod
    def of(cls, rows: tuple[Row, ...], widths: FloatArray, scores: FloatArray, epsilon: float) -> "Facts":
        """Return the facts about a ranking on a sample of scores."""
        found = np.atleast_1d(spearman(scores, widths))
        found = found[~np.isnan(found)]
        ahead = float((scores.max(axis=-1) - scores.mean(axis=-1)).mean())
        return cls(
            rows=rows,
            epsilon=epsilon,
            candidates=widths.size,
            equal=bool(widths.min() == widths.max()),
            correlation=float(found.mean()) if found.size else math.nan,
            strength=float(np.abs(found).mean()) if found.size else math.nan,
            positive_share=float((found > 0).mean()) if found.size else math.nan,
            signal=epsilon * ahead / (2 * float(widths.max())) if widths.max() > 0 else math.inf,
        )

    @property
    def plain(self) -> Row | None:
        """Noisy max without a tilt, which all gains are measured against."""
        return next((row for row in self.rows if row.mechanism == NoisyMax(epsilon=self.epsilon)), None)

    @property
    def advised(self) -> Row:
        """The simplest of those that are next to the best."""
        near = [row for row in self.rows if row.error <= self.rows[0].error * (1 + ALIKE)]
        return min(near, key=lambda row: _oddity(row.mechanism))

    def reasons(self) -> tuple[str, ...]:
        """Return why the ranking is as it is."""
        sentences = [self._about_correlation(), self._about_budget(), self._about_best()]
        return tuple(sentence for sentence in sentences if sentence)

    def _about_correlation(self) -> str:
        if self.equal:
            return (
                "All sensitivities are equal: tilts change nothing, and GEM is noisy max at half of its budget. "
                "What uses sensitivities cannot gain from them."
            )
        if math.isnan(self.correlation):
            return "All scores of each example are equal: every mechanism does as well as any other."
        if self.strength >= 0.3 and 0.2 <= self.positive_share <= 0.8:
            return (
                f"The correlation is strong, but positive in {self.positive_share:.0%} of the examples only, so no "
                "tilt suits all: noisy max hedges; combined GEM asks for the sign and pays for it, where ε allows."
            )
        named = f"{_strength(self.correlation)} correlation, {signed(self.correlation)}"
        if abs(self.correlation) < 0.1:
            return (
                f"Good candidates are neither the sensitive nor the steady ones ({named}): a tilt gains little; "
                "what is left is how each mechanism scales its noise."
            )
        if self.correlation > 0:
            return (
                f"Good candidates are the sensitive ones ({named}): what favours large sensitivities gains, that "
                "is, tilts below 0, modified GEM and random stopping; GEM is drawn the wrong way."
            )
        return (
            f"Good candidates are the steady ones ({named}): what favours small sensitivities gains, that is, "
            "tilts above 0 and GEM; modified GEM and random stopping are drawn the wrong way."
        )

    def _about_budget(self) -> str:
        needed = math.log(self.candidates) if self.candidates > 1 else 0.0
        size = f"ε (best − mean score)/(2 max Δ) is {self.signal:.2g}, and log k is {needed:.2g}"
        if self.rows[0].of_random >= 0.95:
            return f"The budget is too small to do much better than a random pick: {size}."
        if self.signal < needed:
            return f"The scores do not stand out from noisy max's noise ({size}), so what is public decides much."
        return f"The budget is large enough for noisy max to find good candidates by their scores: {size}."

    def _about_best(self) -> str:
        best, plain = self.advised, self.plain
        name = best.mechanism.label
        if isinstance(best.mechanism, Uniform):
            return f"No mechanism does better than a random pick by more than {ALIKE:.0%}, and that is free."
        if best is plain:
            return f"No mechanism does better than plain noisy max by more than {ALIKE:.0%}."
        near = f"The simplest within {ALIKE:.0%} of the best is"
        chosen = "The best is" if best.error == self.rows[0].error else near
        if plain is None or best.error == 0:
            return f"{chosen} {name}."
        sentence = f"{chosen} {name}: plain noisy max errs {plain.error / best.error:.3g} times as much."
        tilt = tilt_of(best.mechanism)
        if tilt and abs(self.correlation) >= 0.1 and (tilt > 0) == (self.correlation > 0):
            sentence += " That is against the rule of thumb for the correlation, which is not the whole story here."
        if isinstance(best.mechanism, RandomizedResponse):
            sentence += " It needs no sensitivities and pays where ε exceeds log k by far."
        return sentence

    def warnings(self) -> tuple[str, ...]:
        """Return which published mechanisms lose to random, and what rests on the sign of the correlation."""
        sentences = [
            f"{row.mechanism.label} would lose to a random pick: {row.of_random:.3g} times its error."
            for row in self.rows
            if is_published(row.mechanism) and row.of_random > 1 + NEGLIGIBLE
        ]
        losers = sum(row.of_random > 1 + NEGLIGIBLE for row in self.rows)
        if losers > len(sentences):
            sentences.append(f"In all, {losers} of {len(self.rows)} mechanisms would lose to a random pick.")
        best = self.advised
        if best.if_reversed is not None and best.if_reversed > 1 + NEGLIGIBLE:
            safe = min(self.rows, key=lambda row: max(row.of_random, row.if_reversed or 0.0))
            sentences.append(
                f"If the correlation had the opposite sign, {best.mechanism.label} would err "
                f"{best.if_reversed:.3g} times as much as a random pick. Safer either way: "
                f"{safe.mechanism.label}."
            )
        return tuple(sentences)


def is_published(mechanism: Mechanism) -> bool:
    """Tell whether a mechanism is one that the paper has, with its default parameters."""
    epsilon = mechanism.guarantee.epsilon or 1.0
    return any(record.in_paper and record(epsilon=epsilon) == mechanism for record in MECHANISMS.values())


def tilt_of(mechanism: Mechanism) -> float | None:
    """Return a mechanism's tilt, if it has one."""
    return getattr(mechanism, "tilt", None)


def _oddity(mechanism: Mechanism) -> float:
    """Return how far a mechanism is from a random pick and from plain noisy max, the two simplest."""
    if isinstance(mechanism, Uniform):
        return -1.0
    return abs(tilt_of(mechanism) or 0.0) + (0.0 if isinstance(mechanism, NoisyMax) else 100.0)


def _strength(correlation: float) -> str:
    size = abs(correlation)
    sign = "positive" if correlation > 0 else "negative"
    if size < 0.1:
        return "no"
    return f"{'weak' if size < 0.3 else 'moderate' if size < 0.6 else 'strong'} {sign}"


def signed(number: float) -> str:
    """Write a correlation with its sign."""
    return f"{number:+.2f}".replace("-", "−")
