"""Which mechanism to use, from public knowledge: a ranking by exact expected error.

One question comes first: whose data is in a row of scores? For one person's, use :class:`~dpselect.TopShare`. For
many people's, the choice depends on how scores and sensitivities correlate, and on the budget. You may know both
without looking at private data: from an expected correlation, last year's public catalogue or a simulation. If all
you have is private, :func:`dpselect.tuning.tune` pays for looking at it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from dpselect import parameters as check
from dpselect.candidates import read_batch, read_sensitivities
from dpselect.inputs import Numbers
from dpselect.kernels.arrays import FloatArray
from dpselect.mechanisms import HeterogeneousNoisyMax, Mechanism, NoisyMax, TopShare, Uniform
from dpselect.pools import read_pool
from dpselect.tuning import fleet_errors
from dpselect.weights import FittedShare, fit_top_share, weights_from_picks

__all__ = ["Advice", "FittedShare", "Ranked", "advise", "fit_top_share", "weights_from_picks"]

DRAWS = 240
"""How many score vectors to draw for a correlation. They are seeded: the same question has the same answer."""

GUESSES = (-0.8, 0.0, 0.8)
"""The correlations to average over if none is stated."""

ALIKE = 0.01
"""A relative difference between errors that does not justify a less simple mechanism."""

SHOWN = 8
"""How many mechanisms a printed ranking has."""

MANY_PEOPLE = "a row holds many people's data, each of whom moves a score by at most its sensitivity"
ONE_PERSON = "a row holds one person's data, all of which may change"
ONE_PERSON_NOTES = (
    "For one person's row no private mechanism is better than top share with the right public weights.",
    "Weights from public rows (fit_top_share) or from released picks (weights_from_picks) improve it.",
    "If a row holds many people's data, such as counts or means, give sensitivities.",
)


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """The expected error of one mechanism.

    Attributes:
        mechanism: The mechanism.
        error: Its exact expected error, averaged over the examples.
        of_random: Its error divided by that of a random pick. Above 1 it is worse than random.
        worst: The largest such ratio over the correlations that are possible: the stated one and its opposite, or
            −0.8, 0 and 0.8 if you stated none. ``None`` for a public sample.
    """

    mechanism: Mechanism
    error: float
    of_random: float
    worst: float | None = None


@dataclass(frozen=True, kw_only=True)
class Advice:
    """Mechanisms by expected error; ``print`` it.

    Attributes:
        ranking: The mechanisms, best first; empty for one person's rows.
        best: The mechanism to use: the simplest within 1 % of the smallest error.
        assumption: What the numbers assume.
        notes: Why this mechanism.
    """

    ranking: tuple[Ranked, ...]
    best: Mechanism
    assumption: str
    notes: tuple[str, ...]

    def __str__(self) -> str:
        ranking = sorted(self.ranking, key=lambda ranked: not _is_default(ranked.mechanism))  # the default first
        shown = ranking[:SHOWN]
        lines = [f"Use {self.best.label}: {self.best.law_name}", f"Assumed: {self.assumption}."]
        lines += ["", *_table(shown)] if shown else []
        if len(shown) < len(self.ranking):
            lines.append(f"({len(shown)} of {len(self.ranking)} mechanisms: the default and the best)")
        return "\n".join([*lines, "", *self.notes])


def advise(
    sensitivities: Numbers | None,
    epsilon: float,
    *,
    correlation: float | None = None,
    spread: float | None = None,
    public_scores: Numbers | None = None,
    pool: Sequence[Mechanism] | None = None,
    power: float = 2,
) -> Advice:
    r"""Say which mechanism to use, from public knowledge.

    *Whose data is in a row of scores?* If it is one person's, pass ``None`` for the sensitivities: the advice is
    :class:`~dpselect.TopShare`. If it is many people's, mechanisms are ranked by their exact expected error. Give
    what you know as one of

    - ``correlation``, the rank correlation you expect between scores and sensitivities, from −1 to 1. "The
      sensitive candidates have the high scores" is about 0.8. Scores are then drawn at random (a Gaussian copula);
    - ``public_scores``, a public or synthetic sample of score vectors;
    - neither: the mean error over correlations of −0.8, 0 and 0.8 counts. The advice is the default, unless another
      mechanism is better on average *and* in the worst of the three cases.

    Privacy:
        Advice from public knowledge is free. **Never pass private scores**: choosing a mechanism by looking at them
        is a release. :func:`dpselect.tuning.tune` makes that choice privately.

    Cost:
        One ``pmf`` for each mechanism and example: about a second for 100 candidates.

    Args:
        sensitivities: One for each candidate; ``None`` if each row is about one person.
        epsilon: The privacy budget of a pick.
        correlation: The expected rank correlation of scores and sensitivities.
        spread: The standard deviation of the scores, if you state no sample; the mean sensitivity if absent.
        public_scores: Scores that anyone may see: a row for each example, a column for each candidate.
        pool: The mechanisms to rank, each ε-DP at ``epsilon`` for all scores within the sensitivities;
            :func:`~dpselect.pools.default_pool` if absent.
        power: 2 for the squared error, 1 for the regret.

    Example:
        >>> import numpy as np, dpselect as dps
        >>> advice = dps.advice.advise(np.linspace(0.1, 1.0, 30), 0.5, correlation=0.9)
        >>> advice.best.tilt < 0
        True
        >>> advice.ranking[0].of_random < 0.5
        True
        >>> dps.advice.advise(None, 0.5).best
        TopShare(epsilon=0.5, share=None)

    References:
        D. Antonova et al., Private selection with heterogeneous sensitivities, 2025, for correlation as a guide.
    """
    budget, exponent = check.positive("epsilon", epsilon), check.positive("power", power)
    if sensitivities is None:
        if any(given is not None for given in (correlation, spread, public_scores, pool)):
            raise ValueError(
                "sensitivities must be given with correlation, spread, public_scores or pool; for one person's "
                "rows, fit_top_share learns from public scores"
            )
        return Advice(ranking=(), best=TopShare(budget), assumption=ONE_PERSON, notes=ONE_PERSON_NOTES)
    widths = read_sensitivities(sensitivities)
    if widths.ndim == 0:
        raise ValueError("sensitivities must be one number for each candidate")
    members = read_pool(pool, budget)
    if public_scores is not None:
        if correlation is not None or spread is not None:
            raise ValueError("correlation and spread must be absent if public_scores are given: leave them out")
        batch = read_batch(public_scores, widths)
        if batch.shape is None or len(batch.shape) > 1 or batch.rows == 0:
            raise ValueError("public_scores must be an array: a row for each example, a column for each candidate")
        cases = [np.asarray(public_scores, dtype=np.float64).reshape(-1, widths.size)]
        assumption = f"{MANY_PEOPLE}; future scores are like the public sample"
    else:
        deviation = float(widths.mean()) or 1.0 if spread is None else check.positive("spread", spread)
        guesses = GUESSES if correlation is None else (check.between("correlation", correlation, -1, 1),)
        others = () if correlation is None or widths.min() == widths.max() else (-correlation,)
        cases = [draw_scores(widths, guess, deviation, DRAWS // len(guesses)) for guess in (*guesses, *others)]
        known = "an unknown correlation (−0.8, 0 or 0.8)"
        if correlation is not None:
            known = f"a correlation of {guesses[0]:+.2f}".replace("-", "−")
        scores = f"scores are normal, of standard deviation {deviation:.3g}, with {known} to the sensitivities"
        assumption = f"{MANY_PEOPLE}; {scores}"
    knows_nothing = public_scores is None and correlation is None
    ranking = _rank(members, widths, cases, exponent, counted=len(cases) if knows_nothing else 1)
    best = _advised(ranking, knows_nothing=knows_nothing)
    reason = _reason(ranking, best, budget)
    return Advice(ranking=ranking, best=best.mechanism, assumption=assumption, notes=(reason,))


def draw_scores(widths: FloatArray, correlation: float, deviation: float, draws: int = DRAWS) -> FloatArray:
    """Draw normal scores with a given rank correlation to the sensitivities.

    The ranks of the sensitivities become normal numbers g. Then $r g + √(1 − r²) ξ$ with $r = 2 sin(πρ/6)$ has
    Spearman's correlation ρ with them (K. Pearson, 1907), up to ties.
    """
    guide = np.empty(widths.size)
    quantiles = (np.arange(widths.size) + 0.5) / widths.size
    guide[np.argsort(widths, kind="stable")] = list(map(NormalDist().inv_cdf, quantiles))
    _, group = np.unique(widths, return_inverse=True)
    guide = (np.bincount(group, guide) / np.bincount(group))[group]  # equal sensitivities, equal guides
    noise = np.random.default_rng(20_250_105).normal(size=(draws, widths.size))
    strength = 2 * math.sin(math.pi * correlation / 6)
    return np.asarray(deviation * (strength * guide + math.sqrt(1 - strength**2) * noise))


def _rank(
    members: Sequence[Mechanism], widths: FloatArray, cases: Sequence[FloatArray], power: float, *, counted: int
) -> tuple[Ranked, ...]:
    """Return the mechanisms with their errors, best first. The error is the mean over the first few cases."""
    rivals = [*members, Uniform()]
    errors = np.stack([fleet_errors(rivals, case, widths, power=power).mean(axis=-1) for case in cases])
    errors = np.vstack([errors[:counted].mean(axis=0), errors])
    random = errors[:, [-1]]
    ratios = np.divide(errors, random, out=np.ones_like(errors), where=random > 0)
    worst = ratios.max(axis=0) if len(cases) > 1 else [None] * len(rivals)
    ranking = [
        Ranked(mechanism=member, error=float(error), of_random=float(ratio), worst=None if w is None else float(w))
        for member, error, ratio, w in zip(members, errors[0], ratios[0], worst, strict=False)
    ]
    return tuple(sorted(ranking, key=lambda ranked: ranked.error))


def _advised(ranking: Sequence[Ranked], *, knows_nothing: bool) -> Ranked:
    """Return the simplest mechanism near the best. If nothing is known: the default, unless another dominates."""
    near = [ranked for ranked in ranking if ranked.error <= ranking[0].error * (1 + ALIKE)]
    default = next((ranked for ranked in ranking if _is_default(ranked.mechanism)), None)
    unspent = any(isinstance(ranked.mechanism, Uniform) for ranked in near)
    if knows_nothing and default is not None and not unspent:
        ahead = [r for r in ranking if r.error < default.error and (r.worst or 0.0) < (default.worst or 0.0)]
        return ahead[0] if ahead else default
    return min(near, key=lambda ranked: _complexity(ranked.mechanism))


def _reason(ranking: Sequence[Ranked], best: Ranked, epsilon: float) -> str:
    plain = next((ranked for ranked in ranking if ranked.mechanism == NoisyMax(epsilon=epsilon)), None)
    name = best.mechanism.label
    if isinstance(best.mechanism, Uniform):
        return f"No mechanism beats a random pick by more than {ALIKE:.0%}, and a random pick is free."
    if best is plain:
        return f"No mechanism beats plain noisy max by more than {ALIKE:.0%}."
    if best.error == ranking[0].error:
        reason = "the best"
    elif best.error <= ranking[0].error * (1 + ALIKE):
        reason = f"the simplest within {ALIKE:.0%} of the best"
    else:
        reason = "the default: no other is better both on average and in the worst case"
    sentence = f"{name[:1].upper()}{name[1:]} is {reason}."
    if plain is not None and best.error > 0:
        ratio = plain.error / best.error
        times = "over a million" if ratio > 1e6 else f"{ratio:.3g}"
        sentence += f" The error of plain noisy max is {times} times its error."
    return sentence


def _table(ranking: Sequence[Ranked]) -> list[str]:
    """Return the lines of a table."""
    size = max(len(ranked.mechanism.label) for ranked in ranking)
    has_worst = any(ranked.worst is not None for ranked in ranking)
    lines = [f"{'mechanism':{size}}  {'error':>9}  of random{'  worst case' if has_worst else ''}"]
    for ranked in ranking:
        worst = "" if ranked.worst is None else f"  {ranked.worst:10.2%}"
        lines.append(f"{ranked.mechanism.label:{size}}  {ranked.error:9.3g}  {ranked.of_random:9.2%}{worst}")
    return lines


def _is_default(mechanism: Mechanism) -> bool:
    """Return whether a mechanism is heterogeneous noisy max with its default parameters."""
    return mechanism == HeterogeneousNoisyMax(epsilon=mechanism.guarantee.epsilon or 1.0)


def _complexity(mechanism: Mechanism) -> float:
    """Return how far a mechanism is from the simplest ones: a random pick, and both noisy max."""
    if isinstance(mechanism, Uniform):
        return -1.0
    kept = getattr(mechanism, "keep", (0.0, 1.0)) != (0.0, 1.0)
    simple = isinstance(mechanism, NoisyMax | HeterogeneousNoisyMax)
    return abs(float(getattr(mechanism, "tilt", 0.0))) + (10.0 if kept else 0.0) + (0.0 if simple else 100.0)
