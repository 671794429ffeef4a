"""Why a mechanism wins or loses, in words: sentences made of exact numbers."""

import math
from dataclasses import dataclass

import numpy as np

from dpselect.correlation import spearman
from dpselect.kernels.arrays import FloatArray
from dpselect.mechanisms import GEM, HeterogeneousNoisyMax, Mechanism, NoisyMax, RandomizedResponse, Uniform
from dpselect.registry import MECHANISMS

__all__ = ["Facts", "Ranked", "is_default", "is_published", "signed"]

NEGLIGIBLE = 1e-3
"""A mechanism may exceed the error of a random pick by this share of it without a warning."""

ALIKE = 0.01
"""A relative difference between errors that does not justify a less simple mechanism."""


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """The expected error of one mechanism.

    Attributes:
        mechanism: The mechanism.
        error: Its exact expected error, averaged over the examples.
        of_random: Its error divided by that of a random pick. Above 1 it is worse than random.
        if_reversed: The same ratio if the correlation had the opposite sign; ``None`` unless you stated one.
        worst: The largest such ratio over the correlations that are possible; ``None`` if you said what you know.
    """

    mechanism: Mechanism
    error: float
    of_random: float
    if_reversed: float | None = None
    worst: float | None = None


@dataclass(frozen=True)
class Facts:
    """The numbers behind the words."""

    ranking: tuple[Ranked, ...]
    epsilon: float
    candidates: int
    equal: bool
    """Whether all sensitivities are equal."""
    correlation: float
    """The mean rank correlation of scores and sensitivities; NaN if it is undefined."""
    strength: float
    """The mean magnitude of the correlation, in which opposite signs do not cancel."""
    positive_share: float
    """The share of examples with a positive correlation."""
    signal: float
    """ε (best − mean score)/(2 max Δ): how far the best score stands out, in units of the noise."""

    @classmethod
    def of(cls, ranking: tuple[Ranked, ...], widths: FloatArray, scores: FloatArray, epsilon: float) -> "Facts":
        """Return the facts about a ranking on a sample of scores."""
        found = np.atleast_1d(spearman(scores, widths))
        found = found[~np.isnan(found)]
        ahead = float((scores.max(axis=-1) - scores.mean(axis=-1)).mean())
        return cls(
            ranking=ranking,
            epsilon=epsilon,
            candidates=widths.size,
            equal=bool(widths.min() == widths.max()),
            correlation=float(found.mean()) if found.size else math.nan,
            strength=float(np.abs(found).mean()) if found.size else math.nan,
            positive_share=float((found > 0).mean()) if found.size else math.nan,
            signal=epsilon * ahead / (2 * float(widths.max())) if widths.max() > 0 else math.inf,
        )

    @property
    def plain(self) -> Ranked | None:
        """Noisy max without a tilt, the baseline of all gains."""
        return next((ranked for ranked in self.ranking if ranked.mechanism == NoisyMax(epsilon=self.epsilon)), None)

    @property
    def default(self) -> Ranked | None:
        """The mechanism to use if nothing is known."""
        return next((ranked for ranked in self.ranking if is_default(ranked.mechanism)), None)

    @property
    def advised(self) -> Ranked:
        """The simplest mechanism close to the best. If nothing is known: the default, unless another dominates."""
        default = self.default
        near = [ranked for ranked in self.ranking if ranked.error <= self.ranking[0].error * (1 + ALIKE)]
        unspent = any(isinstance(ranked.mechanism, Uniform) for ranked in near)
        if default is not None and default.worst is not None and not unspent:
            ahead = [r for r in self.ranking if r.error < default.error and (r.worst or 0.0) < default.worst]
            return ahead[0] if ahead else default
        return min(near, key=lambda ranked: _oddity(ranked.mechanism))

    def reasons(self) -> tuple[str, ...]:
        """Return the reasons for the ranking."""
        sentences = [self._about_correlation(), self._about_budget(), self._about_best()]
        return tuple(sentence for sentence in sentences if sentence)

    def _about_correlation(self) -> str:
        if self.equal:
            return (
                "All sensitivities are equal: a tilt changes nothing, and GEM is noisy max at half of its budget."
            )
        if math.isnan(self.correlation):
            return "All scores of each example are equal, so all mechanisms do equally well."
        if self.strength >= 0.3 and 0.2 <= self.positive_share <= 0.8:
            return (
                f"The correlation is positive in {self.positive_share:.0%} of the examples and negative in the "
                "others, so no tilt suits all. Heterogeneous noisy max favours no sensitivities; combined GEM "
                "spends a part of ε on estimating the sign."
            )
        named = f"{_strength(self.correlation)} correlation, {signed(self.correlation)}"
        if abs(self.correlation) < 0.1:
            return (
                f"Scores hardly depend on sensitivities ({named}): a tilt gains little. Mechanisms differ mainly "
                "in how they scale their noise."
            )
        if self.correlation > 0:
            return (
                f"The sensitive candidates have the high scores ({named}). This suits mechanisms that favour large "
                f"sensitivities: negative tilts, modified GEM, random stopping.{self._exception()}"
            )
        return (
            f"The candidates of small sensitivity have the high scores ({named}). This suits mechanisms that "
            f"favour small sensitivities: positive tilts, GEM.{self._exception()}"
        )

    def _exception(self) -> str:
        """Say so if the ranking contradicts the rule for the correlation."""
        errors = {
            ranked.mechanism.tilt: ranked.error
            for ranked in self.ranking
            if isinstance(ranked.mechanism, GEM) and abs(ranked.mechanism.tilt) == 1
        }
        if len(errors) < 2 or (errors[-1.0] < errors[1.0]) == (self.correlation > 0):
            return ""
        better, worse = ("GEM", "modified GEM") if self.correlation > 0 else ("modified GEM", "GEM")
        return f" Here the noise matters more: {better} errs less than {worse}."

    def _about_budget(self) -> str:
        needed = math.log(self.candidates) if self.candidates > 1 else 0.0
        size = f"ε (best − mean score)/(2 max Δ) is {self.signal:.2g}, and log k is {needed:.2g}"
        if self.ranking[0].of_random >= 0.95:
            return f"The budget is too small to do much better than a random pick: {size}."
        if self.signal < needed:
            hidden = f"The noise of noisy max hides the scores ({size})"
            return f"{hidden}, so public information decides." if _tilt(self.advised.mechanism) else f"{hidden}."
        return f"The budget is large enough for noisy max to find candidates with high scores: {size}."

    def _about_best(self) -> str:
        best, plain = self.advised, self.plain
        name = best.mechanism.label
        if isinstance(best.mechanism, Uniform):
            return f"No mechanism beats a random pick by more than {ALIKE:.0%}, and a random pick is free."
        if best is plain:
            return f"No mechanism beats plain noisy max by more than {ALIKE:.0%}."
        if best is self.default and best.worst is not None and best is not self.ranking[0]:
            return (
                f"{name[:1].upper()}{name[1:]} is the default: no other mechanism is better both on average and in "
                f"the worst case. The error of plain noisy max is {_times(plain.error / best.error)} its error."
                if plain is not None and best.error > 0
                else f"{name[:1].upper()}{name[1:]} is the default."
            )
        near = f"The simplest mechanism within {ALIKE:.0%} of the best is"
        chosen = "The best mechanism is" if best.error == self.ranking[0].error else near
        if plain is None or best.error == 0:
            return f"{chosen} {name}."
        sentence = f"{chosen} {name}. The error of plain noisy max is {_times(plain.error / best.error)} its error."
        tilt = _tilt(best.mechanism)
        if tilt and abs(self.correlation) >= 0.1 and (tilt > 0) == (self.correlation > 0):
            sentence += " This contradicts the rule of thumb for the correlation, which does not decide alone."
        if isinstance(best.mechanism, RandomizedResponse):
            sentence += " It ignores sensitivities and does well if ε is far above log k."
        return sentence

    def warnings(self) -> tuple[str, ...]:
        """Return which published mechanisms are worse than random, and what a wrong sign would cost."""
        sentences = [
            f"{_capital(ranked.mechanism.label)} is worse than a random pick: "
            f"its error is {_times(ranked.of_random)} that of one."
            for ranked in self.ranking
            if is_published(ranked.mechanism) and ranked.of_random > 1 + NEGLIGIBLE
        ]
        losers = sum(ranked.of_random > 1 + NEGLIGIBLE for ranked in self.ranking)
        if losers > len(sentences):
            sentences.append(
                f"In all, {losers} of the {len(self.ranking)} mechanisms compared are worse than a random pick."
            )
        best = self.advised
        if best.if_reversed is not None and best.if_reversed > 1 + NEGLIGIBLE:
            safe = min(self.ranking, key=lambda ranked: max(ranked.of_random, ranked.if_reversed or 0.0))
            sentences.append(
                f"If the correlation has the opposite sign, the error of {best.mechanism.label} is "
                f"{_times(best.if_reversed)} that of a random pick. {_capital(safe.mechanism.label)} is the safest "
                "for both signs."
            )
        return tuple(sentences)


def is_published(mechanism: Mechanism) -> bool:
    """Return whether the paper has a mechanism, with its default parameters."""
    epsilon = mechanism.guarantee.epsilon or 1.0
    return any(record.in_paper and record(epsilon=epsilon) == mechanism for record in MECHANISMS.values())


def is_default(mechanism: Mechanism) -> bool:
    """Return whether a mechanism is heterogeneous noisy max with its default parameters."""
    return mechanism == HeterogeneousNoisyMax(epsilon=mechanism.guarantee.epsilon or 1.0)


def _tilt(mechanism: Mechanism) -> float:
    """Return a mechanism's tilt; 0 if it has none."""
    return float(getattr(mechanism, "tilt", 0.0))


def _oddity(mechanism: Mechanism) -> float:
    """Return how far a mechanism is from the simplest ones: a random pick, and both noisy max."""
    if isinstance(mechanism, Uniform):
        return -1.0
    kept = getattr(mechanism, "keep", (0.0, 1.0)) != (0.0, 1.0)
    simple = isinstance(mechanism, NoisyMax | HeterogeneousNoisyMax)
    return abs(_tilt(mechanism)) + (10.0 if kept else 0.0) + (0.0 if simple else 100.0)


def _strength(correlation: float) -> str:
    size = abs(correlation)
    sign = "positive" if correlation > 0 else "negative"
    if size < 0.1:
        return "no"
    return f"{'weak' if size < 0.3 else 'moderate' if size < 0.6 else 'strong'} {sign}"


def _capital(label: str) -> str:
    """Write a label at the start of a sentence."""
    return label[:1].upper() + label[1:]


def _times(ratio: float) -> str:
    """Write a ratio of errors."""
    return "over a million times" if ratio > 1e6 else f"{ratio:.3g} times"


def signed(number: float) -> str:
    """Write a correlation with its sign."""
    return f"{number:+.2f}".replace("-", "−")
