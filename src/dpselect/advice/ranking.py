"""A ranking of mechanisms by exact expected error, from public knowledge."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpselect import parameters as check
from dpselect.advice.priors import (
    GUESSES,
    PrivateSample,
    Public,
    draw_scores,
    read_sample,
    read_widths,
)
from dpselect.advice.reasons import Facts, Ranked, is_default, is_published, signed
from dpselect.candidates import Numbers
from dpselect.guarantees import Guarantee
from dpselect.kernels.arrays import FloatArray
from dpselect.mechanisms import Mechanism, StandardizedNoisyMax, Uniform
from dpselect.pools import read_pool
from dpselect.randomness import Randomness
from dpselect.tuning import fleet_errors, tune

__all__ = ["Advice", "advise"]


@dataclass(frozen=True, kw_only=True)
class Advice:
    """Mechanisms by expected error, with reasons and warnings; ``print`` it.

    Attributes:
        ranking: The mechanisms, best first. Empty if the advice comes from a private sample, whose errors are not
            released.
        best: The mechanism to use: the simplest within 1 % of the smallest error.
        assumption: What the numbers assume.
        reasons: Why, in words.
        warnings: What can go wrong.
        guarantee: The cost of the advice and one pick for each user together if the advice looked at private
            scores; ``None`` if it uses public knowledge only, which costs nothing.
    """

    ranking: tuple[Ranked, ...]
    best: Mechanism
    assumption: str
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    guarantee: Guarantee | None = None

    def __str__(self) -> str:
        lines = [f"Use {self.best.label}: {self.best!r}", f"Assumed: {self.assumption}."]
        if self.ranking:
            shown = self._shown()
            lines += ["", *_table(shown)]
            if len(shown) < len(self.ranking):
                lines.append(
                    f"({len(shown)} of {len(self.ranking)} mechanisms: the five best and those of the paper)"
                )
        for title, sentences in (("Why", self.reasons), ("Warnings", self.warnings)):
            if sentences:
                lines += ["", f"{title}:", *(f"- {sentence}" for sentence in sentences)]
        return "\n".join(lines)

    def _shown(self) -> list[Ranked]:
        """Return the default first, then the five best mechanisms and all published ones."""
        default = [one for one in self.ranking if is_default(one.mechanism)]
        others = [one for one in self.ranking if one not in default]
        return default + [one for place, one in enumerate(others) if place < 5 or is_published(one.mechanism)]


def advise(
    sensitivities: Numbers,
    epsilon: float,
    *,
    k: int | None = None,
    correlation: float | None = None,
    prior: Public | PrivateSample | None = None,
    spread: float | None = None,
    pool: Sequence[Mechanism] | None = None,
    anchors: Numbers | None = None,
    power: float = 2,
    randomness: Randomness | None = None,
) -> Advice:
    r"""Rank mechanisms by their exact expected error, from public knowledge, and say why.

    Give what you know as one of

    - ``correlation``, the rank correlation you expect between scores and sensitivities, from −1 to 1. "The
      sensitive candidates have the high scores" is about 0.8. Scores are then drawn at random: normal, with
      standard deviation ``spread`` and that correlation to the sensitivities (a Gaussian copula);
    - ``prior=Public(scores)``, a public or synthetic sample of score vectors;
    - neither: the ranking is then by the mean error over correlations of −0.8, 0 and 0.8. The advice is
      :class:`~dpselect.HeterogeneousNoisyMax`, unless another mechanism is better on average *and* in the worst of
      the three cases.

    Privacy:
        Advice from public knowledge is free. A private sample is refused unless you pay for looking at it:
        ``prior=PrivateSample(scores, tuning_epsilon=…, cap=…)`` chooses by :func:`dpselect.tuning.tune`, and the
        advice then has the guarantee of the whole. **Every rerun is another release and costs tuning_epsilon
        again**, unless it has the same scores and the same key: see :func:`dpselect.tuning.tune`.

    Cost:
        One ``pmf`` for each mechanism and example: about a second for 100 candidates.

    Args:
        sensitivities: One for each candidate, or one for all.
        epsilon: The privacy budget of a pick.
        k: The number of candidates, needed if ``sensitivities`` is a single number.
        correlation: The expected rank correlation of scores and sensitivities.
        prior: A sample of scores.
        spread: The standard deviation of the scores, if you state a correlation; the mean sensitivity if absent.
        pool: The mechanisms to rank, each ε-DP at ``epsilon`` for all scores within the sensitivities;
            :func:`~dpselect.pools.default_pool` if absent.
        anchors: Public guesses of the scores, for mechanisms that take them.
        power: 2 for the squared error, 1 for the regret.
        randomness: The randomness of a paid choice; a fresh secret key if absent. Other advice needs no secret
            randomness.

    Example:
        >>> import numpy as np, dpselect as dps
        >>> advice = dps.advice.advise(np.linspace(0.1, 1.0, 30), 0.5, correlation=0.9)
        >>> advice.best.tilt < 0
        True
        >>> print(advice.reasons[0])
        The sensitive candidates have the high scores (strong positive correlation, +0.90). This suits mechanisms
        that favour large sensitivities: negative tilts, modified GEM, random stopping.

    References:
        D. Antonova et al., Private selection with heterogeneous sensitivities, 2025, for correlation as a guide.
    """
    budget, exponent = check.positive("epsilon", epsilon), check.positive("power", power)
    widths = read_widths(sensitivities, k)
    members = read_pool(pool, budget, anchors)
    if isinstance(prior, PrivateSample):
        return _paid_advice(prior, widths, budget, members, anchors, exponent, randomness)
    if randomness is not None:
        raise ValueError(
            "randomness must come with prior=PrivateSample(…): other advice needs no secret randomness"
        )
    if prior is not None and not isinstance(prior, Public):
        raise ValueError(
            f"prior must be Public(scores) or PrivateSample(scores, …), got {type(prior).__name__}: say which, "
            "because looking at private scores costs privacy"
        )
    if prior is not None and (correlation is not None or spread is not None):
        raise ValueError("correlation and spread must be absent if a prior is given: leave them out")
    reversed_scores = None
    if prior is not None:
        scores = read_sample(prior.scores, widths)
        assumption = "future scores are like the public sample"
    else:
        if anchors is not None:
            raise ValueError(
                "anchors must come with prior=Public(scores): a correlation does not say how good the anchors are"
            )
        # Its picks depend on where scores lie relative to zero, and a correlation says nothing about that.
        members = tuple(m for m in members if pool is not None or not isinstance(m, StandardizedNoisyMax))
        deviation = float(widths.mean()) or 1.0 if spread is None else check.positive("spread", spread)
        stated = None if correlation is None else check.between("correlation", correlation, -1, 1)
        scores = draw_scores(widths, GUESSES if stated is None else (stated,), deviation)
        if stated is not None and widths.min() < widths.max():
            reversed_scores = draw_scores(widths, (-stated,), deviation)
        known = (
            "an unknown correlation (−0.8, 0 or 0.8)" if stated is None else f"a correlation of {signed(stated)}"
        )
        assumption = f"normal scores of standard deviation {deviation:.3g}, with {known} to the sensitivities"
    cases = len(GUESSES) if prior is None and correlation is None else 1
    ranking = _rank(members, widths, scores, reversed_scores, anchors, exponent, cases)
    facts = Facts.of(ranking, widths, scores, budget)
    return Advice(
        ranking=ranking,
        best=facts.advised.mechanism,
        assumption=assumption,
        reasons=facts.reasons(),
        warnings=facts.warnings(),
    )


def _paid_advice(
    prior: PrivateSample,
    widths: FloatArray,
    epsilon: float,
    members: Sequence[Mechanism],
    anchors: Numbers | None,
    power: float,
    randomness: Randomness | None,
) -> Advice:
    if prior.tuning_epsilon is None or prior.cap is None:
        raise ValueError(
            "prior is a private sample, and choosing a mechanism by looking at it is a release. Pay for it with "
            "PrivateSample(scores, tuning_epsilon=…, cap=…), which chooses by dpselect.tuning.tune, or give public "
            "knowledge: correlation=… or prior=Public(scores)"
        )
    tuned = tune(
        prior.scores,
        widths,
        epsilon,
        prior.tuning_epsilon,
        cap=prior.cap,
        pool=members,
        anchors=anchors,
        power=power,
        randomness=randomness,
        progress=False,
    )
    return Advice(
        ranking=(),
        best=next(member for member in members if member == tuned.mechanism),
        assumption="future users are like those of the private sample",
        reasons=(f"The choice was private, for {tuned.users} users, and cost ε = {tuned.tuning.epsilon:g}.",),
        warnings=(
            "The errors behind the choice are private and not shown.",
            "Asking again is another release and costs the same again, unless scores and key are the same.",
        ),
        guarantee=tuned.guarantee,
    )


def _rank(
    members: Sequence[Mechanism],
    widths: FloatArray,
    scores: FloatArray,
    reversed_scores: FloatArray | None,
    anchors: Numbers | None,
    power: float,
    cases: int,
) -> tuple[Ranked, ...]:
    """Return the mechanisms with their errors, best first. Examples i, i + ``cases``, … are one case."""
    rivals = [*members, Uniform()]

    def errors(sample: FloatArray) -> FloatArray:
        return fleet_errors(rivals, sample, widths, anchors=anchors, power=power)

    every = errors(scores)
    found = every.mean(axis=-1)
    worst: list[float | None] = [None] * found.size
    if cases > 1:
        by_case = np.stack([every[:, case::cases].mean(axis=-1) for case in range(cases)], axis=-1)
        worst = (
            np.divide(by_case, by_case[-1], where=by_case[-1] > 0, out=np.ones_like(by_case)).max(axis=-1).tolist()
        )
    ratios = found / found[-1] if found[-1] > 0 else np.ones(found.size)
    turned: list[float | None] = [None] * found.size
    if reversed_scores is not None:
        others = errors(reversed_scores).mean(axis=-1)
        turned = (others / others[-1]).tolist()
    ranking = [
        Ranked(mechanism=member, error=float(error), of_random=float(ratio), if_reversed=other, worst=case)
        for member, error, ratio, other, case in zip(members, found, ratios, turned, worst, strict=False)
    ]
    return tuple(sorted(ranking, key=lambda ranked: ranked.error))


def _table(ranking: Sequence[Ranked]) -> list[str]:
    """Return the lines of a table."""
    width = max(len(ranked.mechanism.label) for ranked in ranking)
    further = {"if_reversed": "if reversed", "worst": "worst case"}
    shown = [name for name in further if any(getattr(ranked, name) is not None for ranked in ranking)]
    lines = [
        "  ".join([f"{'mechanism':{width}}", f"{'error':>9}", "of random", *(further[name] for name in shown)])
    ]
    for ranked in ranking:
        line = f"{ranked.mechanism.label:{width}}  {ranked.error:9.3g}  {ranked.of_random:9.2%}"
        lines.append(line + "".join(f"  {getattr(ranked, name):{len(further[name])}.2%}" for name in shown))
    return lines
