"""The paper's claims about bandits, checked on the table of runs."""

import numpy as np

from experiments.arrays import FloatArray
from experiments.bandit.outcomes import Estimate, Outcomes, estimate, median
from experiments.bandit.policies import BUDGETS, PRINTED
from experiments.bandit.runs import ALPHAS, PROBLEM, optimist
from experiments.bandit.styles import POLICY_STYLES
from experiments.bandit.summaries import NEAR, QUANTILES
from experiments.curves import scope, span
from experiments.ledger import Claim, Finding, judge
from experiments.tables import Tables

__all__ = ["CLAIMS"]

PRIVATE = tuple(name for name in PRINTED if POLICY_STYLES[name].private)
"""The paper's private policies."""
WITH_QUANTILES = tuple(name for name, budget in BUDGETS.items() if budget.quantiles)
OFTEN = 0.8


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
    common = alphas[-1]
    behind = [_name(p) for p, lead in leads[common].items() if Estimate(-lead.mean, lead.margin).is_positive]
    thompson = {p: estimate(runs.after(p) - runs.after("thompson")) for p in PRIVATE}
    claim = "every private policy earns more than UCB, and UCB stays on the old arm"
    return judge(
        {claim: bool(holds.any())},
        f"Reward after the shift minus that of UCB with α = {shown:.3g}: "
        + ", ".join(f"{_name(policy)} {lead}" for policy, lead in leads[shown].items())
        + ". UCB’s share of pulls of the old arm after the shift: "
        + ", ".join(f"{stuck[alpha]:.1%} at α = {alpha:.3g}" for alpha in alphas)
        + ". Reward minus Thompson sampling’s: "
        + ", ".join(f"{_name(policy)} {lead}" for policy, lead in thompson.items())
        + ".",
        f"The paper calls α = √2 common and does not say which it used. At α = {common:.3g} UCB earns more than "
        f"{', '.join(behind) or 'no private policy'}. A large α makes it try the other arm now and then, and one "
        "good reward raises that arm’s bound by more than the pull lowers it.",
        instead={claim: "for no α does every private policy earn more than UCB while UCB stays on the old arm"},
        scope=scope(alphas, holds, "α"),
    )


def _check_totals(data: Tables) -> Finding:
    runs = Outcomes(data["worlds"])
    alphas, optimists = _alphas(data)
    leads = {
        policy: estimate(runs.total("mgem") - runs.total(policy))
        for policy in (*(name for name in PRIVATE if name != "mgem"), "thompson")
    }
    over_ucb = {alpha: estimate(runs.total("mgem") - optimists.total(optimist(alpha))) for alpha in alphas}
    holds = np.array([lead.is_positive for lead in over_ucb.values()])
    poor = estimate(runs.total("uniform") - runs.total("gem"))
    ends = np.array([1, PROBLEM.horizon])
    low, high, means = (
        np.array([PROBLEM.truth(arm, quantity, ends) for arm in (0, 1)]) for quantity in ("p10", "p90", "mean")
    )
    return judge(
        {
            **{f"mGEM earns more than {_name(policy)}": lead.is_positive for policy, lead in leads.items()},
            "mGEM earns more than UCB": bool(holds.any()),
            "GEM earns less than random choice": poor.is_positive,
            "the better arm is the more sensitive one before and after the shift": bool(
                (np.argmax(high - low, axis=0) == np.argmax(means, axis=0)).all()
            ),
        },
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
        f"{estimate(runs.total('combined-gem'))}.",
        instead={
            **{
                f"mGEM earns more than {_name(policy)}": f"{_name(policy)} earns more than mGEM"
                for policy, lead in leads.items()
                if Estimate(-lead.mean, lead.margin).is_positive
            },
            "mGEM earns more than UCB": "mGEM earns more than UCB for no α",
        },
        scope=scope(alphas, holds, "α"),
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
        | {over_ucb: bool(holds.any())},
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
        | {over_ucb: "UCB adapts at least as fast as mGEM or RSᵧ for every α"},
        scope=scope(alphas, holds, "α"),
    )


def _check_quantiles(data: Tables) -> Finding:
    runs = Outcomes(data["worlds"])
    parts: dict[str, bool] = {}
    said: list[str] = []
    for policy in WITH_QUANTILES:
        near = [estimate(runs.of(policy, f"near_{name}")) for name in QUANTILES]
        worst = min(near, key=lambda share: share.mean)
        parts[f"{_name(policy)}: each quantile is within {NEAR} of the truth {OFTEN:.0%} of the time"] = all(
            share.mean >= OFTEN for share in near
        )
        said.append(
            f"{_name(policy)} {np.mean([share.mean for share in near]):.1%} (worst quantile {worst}), "
            f"median error {np.median(runs.of(policy, 'miss')):.3f}"
        )
    return judge(
        parts,
        f"Share of estimates within {NEAR} of the truth, in the second half of each phase: "
        + "; ".join(said)
        + ".",
        f"We read the claim as: each quantile is within {NEAR} at least {OFTEN:.0%} of the time. The 90th "
        "percentile of the narrow arm has the largest errors: no reward lies between the largest of a window and "
        "the end of the range, and the exponential mechanism puts some probability there. A range that is too wide "
        "stays until the arm has been pulled 200 times more, which takes long under GEM.",
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
)
