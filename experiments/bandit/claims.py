"""The paper's claims about bandits, checked on the table of runs."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from experiments.arrays import BoolArray, FloatArray
from experiments.bandit.outcomes import Estimate, Outcomes, estimate, median
from experiments.bandit.policies import BUDGETS, PRINTED
from experiments.bandit.runs import ALPHAS, PROBLEM, optimist
from experiments.bandit.styles import POLICY_STYLES
from experiments.bandit.summaries import CLOSE, NEAR, QUANTILES
from experiments.curves import scope, span
from experiments.ledger import Claim, Finding, Verdict, judge
from experiments.tables import Tables

__all__ = ["CLAIMS"]

PRIVATE = tuple(name for name in PRINTED if POLICY_STYLES[name].private)
"""The paper's private policies."""
WITH_QUANTILES = tuple(name for name, budget in BUDGETS.items() if budget.quantiles)
OFTEN = 0.8
START = np.array([1])


def _name(policy: str) -> str:
    return POLICY_STYLES[policy].label


def _old_arm_share(runs: Outcomes, policy: str) -> Estimate:
    """Return the share of pulls after the shift that still go to the old best arm."""
    return estimate(runs.of(policy, "old_arm"))


def _alphas(data: Tables) -> tuple[FloatArray, Outcomes]:
    """Return UCB's values of α, and its runs with each."""
    return np.array(ALPHAS), Outcomes(data["optimism"])


def _check_earnings_after(data: Tables) -> Finding:
    runs = Outcomes(data["worlds"])
    alphas, optimists = _alphas(data)
    leads = {
        alpha: {p: estimate(runs.after(p) - optimists.after(optimist(alpha))) for p in PRIVATE} for alpha in alphas
    }
    stuck = {alpha: _old_arm_share(optimists, optimist(alpha)).mean for alpha in alphas}
    holds = np.array([all(one.is_positive for one in leads[a].values()) and stuck[a] > 0.5 for a in alphas])
    shown = alphas[holds][-1] if holds.any() else alphas[-1]
    common, printed = alphas[-1], bool(holds[-1])
    behind = [_name(p) for p, lead in leads[common].items() if Estimate(-lead.mean, lead.margin).is_positive]
    thompson = {p: estimate(runs.after(p) - runs.after("thompson")) for p in PRIVATE}
    claim = "every private policy earns more than UCB, and UCB stays on the old arm"
    return _at_printed(
        {claim: printed},
        f"Reward after the shift minus that of UCB with α = {shown:.3g}: "
        + ", ".join(f"{_name(policy)} {lead}" for policy, lead in leads[shown].items())
        + ". UCB’s share of pulls of the old arm after the shift: "
        + ", ".join(f"{stuck[alpha]:.1%} at α = {alpha:.3g}" for alpha in alphas)
        + ". Reward minus Thompson sampling’s: "
        + ", ".join(f"{_name(policy)} {lead}" for policy, lead in thompson.items())
        + ".",
        "The paper calls α = √2 common and does not say which it used. A large α makes UCB try the other arm now "
        "and then, and one good reward raises that arm’s bound by more than the pull lowers it.",
        alphas,
        holds,
        instead={
            claim: "UCB earns more than "
            f"{'every private policy' if len(behind) == len(PRIVATE) else ', '.join(behind)}"
            if behind
            else "not every private policy earns more than UCB while UCB stays on the old arm"
        },
    )


def _at_printed(
    parts: Mapping[str, bool],
    measured: str,
    comment: str,
    alphas: FloatArray,
    holds: BoolArray,
    instead: Mapping[str, str],
) -> Finding:
    """Return the finding on a claim that depends on UCB's α: it is judged at the only value that the paper prints.

    Args:
        parts: Whether each part holds at that value.
        measured: The numbers.
        comment: What else to say.
        alphas: The values of α.
        holds: For which of them the whole claim holds.
        instead: What is true where a part fails.
    """
    finding = judge(parts, measured, comment, instead=instead)
    if finding.verdict is Verdict.HOLDS:
        return finding
    elsewhere = scope(alphas, holds, "α") if holds.any() else "for no α"
    words = f"at α = √2, the only value printed; holds {elsewhere}"
    return replace(finding, verdict=Verdict.FAILS, scope=words)


def _check_totals(data: Tables) -> Finding:
    runs = Outcomes(data["worlds"])
    alphas, optimists = _alphas(data)
    leads = {
        policy: estimate(runs.total("mgem") - runs.total(policy))
        for policy in (*(name for name in PRIVATE if name != "mgem"), "thompson")
    }
    over_ucb = {alpha: estimate(runs.total("mgem") - optimists.total(optimist(alpha))) for alpha in alphas}
    poor = estimate(runs.total("uniform") - runs.total("gem"))
    ends = np.array([1, PROBLEM.horizon])
    low, high, means = (
        np.array([PROBLEM.truth(arm, quantity, ends) for arm in (0, 1)]) for quantity in ("p10", "p90", "mean")
    )
    private = {
        **{f"mGEM earns more than {_name(policy)}": lead.is_positive for policy, lead in leads.items()},
        "GEM earns less than random choice": poor.is_positive,
        "the better arm is the more sensitive one before and after the shift": bool(
            (np.argmax(high - low, axis=0) == np.argmax(means, axis=0)).all()
        ),
    }
    ahead = np.array([lead.is_positive for lead in over_ucb.values()])
    behind = over_ucb[alphas[-1]]
    return _at_printed(
        {**private, "mGEM earns more than UCB": bool(ahead[-1])},
        f"mGEM’s total reward is {estimate(runs.total('mgem'))}. mGEM’s reward minus the others’: "
        + ", ".join(f"{_name(policy)} {lead}" for policy, lead in leads.items())
        + "; UCB "
        + ", ".join(f"{over_ucb[alpha]} at α = {alpha:.3g}" for alpha in (alphas[0], *alphas[-5:]))
        + (
            f". Random choice earns {poor} more than GEM."
            if poor.mean > 0
            else f". GEM earns {Estimate(-poor.mean, poor.margin)} more than random choice."
        ),
        f"Beyond the paper, discounted UCB (not private) earns {estimate(runs.total('discounted-ucb'))}, UCB on "
        f"private means at the same total ε {estimate(runs.total('private-ucb'))}, and combined GEM "
        f"{estimate(runs.total('combined-gem'))}."
        + (
            " Whatever α, mGEM earns most of the private policies, and GEM less than random choice."
            if all(private.values())
            else ""
        ),
        alphas,
        ahead & all(private.values()),
        instead={
            **{
                f"mGEM earns more than {_name(policy)}": f"{_name(policy)} earns more than mGEM"
                for policy, lead in leads.items()
                if Estimate(-lead.mean, lead.margin).is_positive
            },
            "mGEM earns more than UCB": f"UCB earns {Estimate(-behind.mean, behind.margin)} more than mGEM",
        },
    )


def _check_adaptation(data: Tables) -> Finding:
    runs = Outcomes(data["worlds"])
    alphas, optimists = _alphas(data)
    times = {policy: median(runs.half_times(policy)) for policy in (*PRIVATE, "thompson")}
    ucb = {alpha: median(optimists.half_times(optimist(alpha))) for alpha in alphas}
    fastest, rest = ("mgem", "rs"), ("krr", "rnm", "gem", "thompson")
    holds = np.array([all(times[fast].high < time.low for fast in fastest) for time in ucb.values()])
    pairs = {f"{_name(fast)} adapts faster than {_name(slow)}": (fast, slow) for fast in fastest for slow in rest}
    over_ucb = "mGEM and RSᵧ adapt faster than UCB"
    return judge(
        {part: times[fast].high < times[slow].low for part, (fast, slow) in pairs.items()}
        | {over_ucb: bool(holds[-1])},
        "Steps until the estimated mean of the new best arm has covered half of its rise (median over runs and its "
        "95 % confidence interval): "
        + ", ".join(f"{_name(policy)} {time}" for policy, time in times.items())
        + "; UCB "
        + ", ".join(f"{ucb[alpha]} at α = {alpha:.3g}" for alpha in (alphas[0], *alphas[-5:]))
        + f". mGEM and RSᵧ adapt faster than UCB {span(alphas, holds).replace('ε', 'α')}.",
        "A mean over the whole past adapts faster if the arm is pulled less before the shift and more after it. "
        "mGEM and RSᵧ adapt fast because of their picks, not because of their estimates.",
        instead={
            part: f"{_name(slow)} adapts faster than {_name(fast)}"
            if times[slow].high < times[fast].low
            else f"{_name(fast)} and {_name(slow)} are not significantly different"
            for part, (fast, slow) in pairs.items()
        }
        | {
            over_ucb: "UCB adapts at least as fast as mGEM or RSᵧ "
            + (
                f"at α = √2, the only value printed, though not {scope(alphas, holds, 'α')}"
                if holds.any()
                else "for every α"
            )
        },
    )


def _check_start(data: Tables) -> Finding:
    runs = Outcomes(data["worlds"])
    alphas, optimists = _alphas(data)
    leads = {p: estimate(runs.before(p) - runs.before("rnm")) for p in ("mgem", "rs", "gem")}
    over_ucb = {p: estimate(runs.before(p) - runs.before("ucb")) for p in PRIVATE}
    best = max(PRIVATE, key=lambda policy: float(runs.before(policy).mean()))
    lowest = min(alphas[1:], key=lambda alpha: float(optimists.before(optimist(alpha)).mean()))
    parts = {
        f"{_name(p)}, with noise for each arm, earns more than RNM": one.is_positive for p, one in leads.items()
    }
    noise = "some private policy earns more than UCB"
    return judge(
        {**parts, noise: any(one.is_positive for one in over_ucb.values())},
        "Reward before the shift: "
        + ", ".join(f"{_name(policy)} {estimate(runs.before(policy))}" for policy in PRIVATE)
        + f"; without noise, UCB {estimate(runs.before('ucb'))} with α = √2 and at least "
        f"{estimate(optimists.before(optimist(lowest)))} with any α from {alphas[1]:g} on, Thompson sampling "
        f"{estimate(runs.before('thompson'))}. Minus RNM’s: "
        + ", ".join(f"{_name(policy)} {one}" for policy, one in leads.items())
        + ".",
        f"Judged on the rewards of the first {PROBLEM.shift:,} steps: noise in proportion to each arm’s "
        "sensitivity against RNM’s equal noise, and private policies against UCB. Of the private ones "
        f"{_name(best)} earns most"
        + (", which has four times the budget for a pick and uses no sensitivities." if best == "krr" else "."),
        instead={
            **{part: f"{_name(p)} earns less than RNM" for (p, _), part in zip(leads.items(), parts, strict=True)},
            noise: "every private policy earns less than UCB",
        },
    )


def _check_quantiles(data: Tables) -> Finding:
    runs = Outcomes(data["worlds"])
    ranges = [float((PROBLEM.truth(arm, "p90", START) - PROBLEM.truth(arm, "p10", START))[0]) for arm in (0, 1)]
    parts: dict[str, bool] = {}
    instead: dict[str, str] = {}
    said: list[str] = []
    for policy in WITH_QUANTILES:
        close, near = (
            [estimate(runs.of(policy, f"{word}_{name}")) for name in QUANTILES] for word in ("close", "near")
        )
        worst = min(close, key=lambda share: share.mean)
        part = f"{_name(policy)}: each quantile is close to the truth {OFTEN:.0%} of the time"
        parts[part] = worst.mean >= OFTEN
        instead[part] = f"{_name(policy)}’s worst quantile is close to the truth {worst} of the time"
        said.append(
            f"{_name(policy)} {np.mean([share.mean for share in close]):.1%} (worst quantile {worst}; within "
            f"{NEAR}: {np.mean([share.mean for share in near]):.1%}), median error "
            f"{np.median(runs.of(policy, 'miss')):.3f}"
        )
    return judge(
        parts,
        f"Share of estimates within {CLOSE:.0%} of the arm’s range, in the second half of each phase: "
        + "; ".join(said)
        + ".",
        f"The tolerance is our choice: {CLOSE:.0%} of the distance between the arm’s true 10th and 90th "
        f"percentiles, so {CLOSE * min(ranges):.3f} for the narrow arm and {CLOSE * max(ranges):.3f} for the wide "
        f"one, at least {OFTEN:.0%} of the time. ({NEAR} would be {NEAR / min(ranges):.0%} and "
        f"{NEAR / max(ranges):.0%} of the ranges.) The 90th percentile of the narrow arm has the largest errors: "
        "no reward lies between the largest of a window and the end of the range, and the exponential mechanism "
        "puts some probability there. A range that is too wide stays until the arm has been pulled 200 times more, "
        "which takes long under GEM.",
        instead=instead,
    )


CLAIMS = (
    Claim(
        id="B1",
        text=(
            "After the shift every private policy out-earns UCB, which keeps pulling the arm that was best before."
        ),
        check=_check_earnings_after,
    ),
    Claim(
        id="B2",
        text="mGEM earns most; GEM does badly (positive correlation both before and after).",
        check=_check_totals,
    ),
    Claim(
        id="B3",
        text="mGEM’s and RSᵧ’s mean estimates adapt fastest.",
        check=_check_adaptation,
    ),
    Claim(
        id="B4",
        text="The private quantile estimates track the true 10th and 90th percentiles.",
        check=_check_quantiles,
    ),
    Claim(
        id="B5",
        text="Noise is beneficial from the start, before any shift.",
        check=_check_start,
    ),
)
