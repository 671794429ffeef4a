"""A ranking of mechanisms by exact expected error, from what is public."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpselect import parameters as check
from dpselect.advice.priors import (
    GUESSES,
    PrivateSample,
    Public,
    draw_scores,
    read_correlation,
    read_sample,
    read_widths,
)
from dpselect.advice.reasons import Facts, Row, is_published, signed
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
        rows: The mechanisms, the best one first. Empty if the advice comes from a private sample: only the choice
            is released, not the errors.
        best: The mechanism to use: the simplest of those within 1 % of the smallest error.
        assumption: What the numbers rest on.
        reasons: Why, in words.
        warnings: What to beware of.
        guarantee: What the advice and one pick for each user cost together if private scores were looked at;
            ``None`` if it rests on public knowledge, which costs nothing.
    """

    rows: tuple[Row, ...]
    best: Mechanism
    assumption: str
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    guarantee: Guarantee | None = None

    def __str__(self) -> str:
        lines = [f"Use {self.best.label}: {self.best!r}", f"Assumed: {self.assumption}."]
        if self.rows:
            lines += ["", *_table(self._shown())]
        for title, sentences in (("Why", self.reasons), ("Beware", self.warnings)):
            if sentences:
                lines += ["", f"{title}:", *(f"- {sentence}" for sentence in sentences)]
        return "\n".join(lines)

    def _shown(self) -> list[Row]:
        """Return the five best, and the published ones wherever they are."""
        return [row for rank, row in enumerate(self.rows) if rank < 5 or is_published(row.mechanism)]


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

    What is known goes in as one of

    - ``correlation``, the rank correlation expected between scores and sensitivities, from −1 to 1: "the sensitive
      candidates are the good ones" is about 0.8. Scores are then drawn at random: normal, of standard deviation
      ``spread``, with that correlation to the sensitivities (a Gaussian copula);
    - ``prior=Public(scores)``, a public or synthetic sample of score vectors;
    - neither: the ranking is then by the mean over correlations of −0.8, 0 and 0.8.

    Privacy:
        Free, as long as what goes in is public. A private sample is refused, unless the look is paid for:
        ``prior=PrivateSample(scores, tuning_epsilon=…, cap=…)`` chooses by :func:`dpselect.tuning.tune`, and the
        advice then carries the guarantee of the whole. **Every rerun of that is another release, and costs
        tuning_epsilon again**, unless it has the same scores and the same key: see :func:`dpselect.tuning.tune`.

    Cost:
        One ``pmf`` for each mechanism and example: about a second for 100 candidates.

    Args:
        sensitivities: One for each candidate, or one for all.
        epsilon: The privacy budget of a pick.
        k: The number of candidates, needed if ``sensitivities`` is a single number.
        correlation: The expected rank correlation of scores and sensitivities.
        prior: A sample of scores.
        spread: How far scores spread, where only a correlation is stated; the mean sensitivity if absent.
        pool: The mechanisms to rank, each ε-DP at ``epsilon`` for all scores within the sensitivities;
            :func:`~dpselect.pools.default_pool` if absent.
        anchors: Public guesses of the scores, for mechanisms that take them.
        power: Which error: 2 is the squared error, 1 the regret.
        randomness: Where the randomness of a paid choice comes from; a fresh secret key if absent. Other advice
            draws nothing that has to be secret.

    Example:
        >>> import numpy as np, dpselect as dps
        >>> advice = dps.advice.advise(np.linspace(0.1, 1.0, 30), 0.5, correlation=0.9)
        >>> advice.best.tilt < 0
        True
        >>> print(advice.reasons[0])
        Good candidates are the sensitive ones (strong positive correlation, +0.90): what favours large
        sensitivities gains, that is, tilts below 0, modified GEM and random stopping; GEM is drawn the wrong way.

    References:
        D. Antonova et al., Private selection with heterogeneous sensitivities, 2025, for correlation as a guide.
    """
    budget, exponent = check.positive("epsilon", epsilon), check.positive("power", power)
    widths = read_widths(sensitivities, k)
    members = read_pool(pool, budget, anchors)
    if isinstance(prior, PrivateSample):
        return _paid_advice(prior, widths, budget, members, anchors, exponent, randomness)
    if randomness is not None:
        raise ValueError("randomness must come with prior=PrivateSample(…): other advice draws nothing in secret")
    if prior is not None and not isinstance(prior, Public):
        raise ValueError(
            "prior must be Public(scores) or PrivateSample(scores, …): say which, since looking at private scores "
            f"costs privacy; got {type(prior).__name__}"
        )
    if prior is not None and (correlation is not None or spread is not None):
        raise ValueError("correlation and spread must be absent where a prior is given: the prior has its own")
    reversed_scores = None
    if prior is not None:
        scores = read_sample(prior.scores, widths)
        assumption = "the public sample is like the scores to come"
    else:
        if anchors is not None:
            raise ValueError(
                "anchors must come with prior=Public(scores): a correlation does not say how good they are"
            )
        # Its picks depend on where scores lie relative to zero, which a correlation does not tell.
        members = tuple(m for m in members if pool is not None or not isinstance(m, StandardizedNoisyMax))
        deviation = float(widths.mean()) or 1.0 if spread is None else check.positive("spread", spread)
        stated = None if correlation is None else read_correlation(correlation)
        scores = draw_scores(widths, GUESSES if stated is None else (stated,), deviation)
        if stated is not None and widths.min() < widths.max():
            reversed_scores = draw_scores(widths, (-stated,), deviation)
        known = (
            "an unknown correlation (−0.8, 0 or 0.8)" if stated is None else f"a correlation of {signed(stated)}"
        )
        assumption = f"normal scores of standard deviation {deviation:.3g}, with {known} to the sensitivities"
    rows = _rank(members, widths, scores, reversed_scores, anchors, exponent)
    facts = Facts.of(rows, widths, scores, budget)
    return Advice(
        rows=rows,
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
            "prior is a private sample, and choosing a mechanism by looking at it is a release: say how it is paid "
            "for, PrivateSample(scores, tuning_epsilon=…, cap=…), which chooses by dpselect.tuning.tune; or give "
            "public knowledge, as correlation=… or prior=Public(scores)"
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
        rows=(),
        best=tuned.mechanism,
        assumption="the users of the private sample are like those to come",
        reasons=(f"It was chosen privately, for {tuned.users} users, at a cost of ε = {tuned.tuning.epsilon:g}.",),
        warnings=(
            "The errors behind the choice are private, and not shown.",
            "Asking again is another release, and costs as much again, unless with the same scores and key.",
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
) -> tuple[Row, ...]:
    """Return a row for each mechanism, by error."""
    rivals = [*members, Uniform()]

    def errors(sample: FloatArray) -> FloatArray:
        return np.asarray(fleet_errors(rivals, sample, widths, anchors=anchors, power=power).mean(axis=-1))

    found = errors(scores)
    ratios = found / found[-1] if found[-1] > 0 else np.ones(found.size)
    turned: list[float | None] = [None] * found.size
    if reversed_scores is not None:
        others = errors(reversed_scores)
        turned = (others / others[-1]).tolist()
    rows = [
        Row(mechanism=member, error=float(error), of_random=float(ratio), if_reversed=other)
        for member, error, ratio, other in zip(members, found, ratios, turned, strict=False)
    ]
    return tuple(sorted(rows, key=lambda row: row.error))


def _table(rows: Sequence[Row]) -> list[str]:
    """Return lines of a table."""
    width = max(len(row.mechanism.label) for row in rows)
    turned = any(row.if_reversed is not None for row in rows)
    lines = [f"{'mechanism':{width}}  {'error':>9}  of random" + ("  if reversed" if turned else "")]
    for row in rows:
        line = f"{row.mechanism.label:{width}}  {row.error:9.3g}  {row.of_random:9.2%}"
        lines.append(line + ("" if row.if_reversed is None else f"  {row.if_reversed:11.2%}"))
    return lines
