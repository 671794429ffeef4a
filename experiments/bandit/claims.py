"""The paper's claims about bandits, checked on the table of runs."""

import numpy as np

from experiments.bandit.outcomes import Estimate, Outcomes, estimate, median
from experiments.bandit.styles import POLICY_STYLES
from experiments.ledger import Claim, Finding, judge
from experiments.tables import Tables

__all__ = ["CLAIMS", "PRINTED", "WITH_QUANTILES"]

PRINTED = ("krr", "rnm", "rs", "gem", "mgem")
"""The paper's private policies."""
WITH_QUANTILES = ("rnm", "rs", "gem", "mgem", "combined-gem")
NEAR = 0.1
OFTEN = 0.8


def _name(policy: str) -> str:
    return POLICY_STYLES[policy].label


def _old_arm_share(runs: Outcomes, policy: str) -> Estimate:
    """Return the share of pulls after the shift that still go to the old best arm."""
    gap = abs(np.subtract(*(runs.truth(arm, "mean")[-1] for arm in (0, 1))))
    steps = runs.problem.horizon - runs.problem.shift
    return estimate(runs.after(policy, "regret") / (gap * steps))


def _check_earnings_after(data: Tables) -> Finding:
    runs = Outcomes(data["runs"])
    leads = {policy: estimate(runs.after(policy) - runs.after("ucb")) for policy in PRINTED}
    stuck = _old_arm_share(runs, "ucb")
    greedy = {policy: estimate(runs.after(policy) - runs.after("greedy")) for policy in PRINTED}
    ahead = [_name(policy) for policy, lead in greedy.items() if lead.is_positive]
    return judge(
        {
            **{f"{_name(policy)} earns more than UCB": lead.is_positive for policy, lead in leads.items()},
            "UCB keeps pulling the old arm": stuck.mean > 0.5,
        },
        "Reward after the shift minus UCB’s: "
        + ", ".join(f"{_name(policy)} {lead}" for policy, lead in leads.items())
        + f". UCB pulls the old arm in {stuck.mean:.1%} of the steps after the shift.",
        "With α = √2 and ln T, UCB occasionally tries the other arm. One good reward then raises that arm’s bound "
        "by more than the pull lowers it, so UCB switches at once. With α = 0 it behaves as the paper says: "
        f"{_old_arm_share(runs, 'greedy').mean:.1%} of its pulls go to the old arm, and "
        f"{', '.join(ahead) or 'no policy'} earn more.",
        instead={
            **{
                f"{_name(policy)} earns more than UCB": f"UCB earns more than {_name(policy)}" for policy in PRINTED
            },
            "UCB keeps pulling the old arm": "UCB switches to the new arm",
        },
    )


def _check_totals(data: Tables) -> Finding:
    runs = Outcomes(data["runs"])
    leads = {
        policy: estimate(runs.total("mgem") - runs.total(policy))
        for policy in (*(name for name in PRINTED if name != "mgem"), "ucb", "thompson")
    }
    poor = estimate(runs.total("uniform") - runs.total("gem"))
    widths = [
        [runs.truth(arm, "high")[place] - runs.truth(arm, "low")[place] for arm in (0, 1)] for place in (0, -1)
    ]
    means = [[runs.truth(arm, "mean")[place] for arm in (0, 1)] for place in (0, -1)]
    return judge(
        {
            **{f"mGEM earns more than {_name(policy)}": lead.is_positive for policy, lead in leads.items()},
            "GEM earns less than random choice": poor.is_positive,
            "the better arm is the more sensitive one before and after the shift": all(
                np.argmax(width) == np.argmax(mean) for width, mean in zip(widths, means, strict=True)
            ),
        },
        f"mGEM’s total reward is {estimate(runs.total('mgem'))}. mGEM’s reward minus the others’: "
        + ", ".join(f"{_name(policy)} {lead}" for policy, lead in leads.items())
        + (
            f". Random choice earns {poor} more than GEM."
            if poor.mean > 0
            else f". GEM earns {Estimate(-poor.mean, poor.margin)} more than random choice."
        ),
        f"Beyond the paper, discounted UCB (not private) earns {estimate(runs.total('discounted-ucb'))}, UCB on "
        f"private means at the same total ε {estimate(runs.total('private-ucb'))}, and combined GEM "
        f"{estimate(runs.total('combined-gem'))}.",
        instead={
            f"mGEM earns more than {_name(policy)}": f"{_name(policy)} earns more than mGEM"
            for policy, lead in leads.items()
            if Estimate(-lead.mean, lead.margin).is_positive
        },
    )


def _check_adaptation(data: Tables) -> Finding:
    runs = Outcomes(data["runs"])
    times = {policy: median(runs.half_times(policy)) for policy in (*PRINTED, "ucb", "thompson")}
    return judge(
        {
            f"{_name(fast)} adapts faster than {_name(slow)}": times[fast].high < times[slow].low
            for fast in ("mgem", "rs")
            for slow in ("krr", "rnm", "gem", "ucb", "thompson")
        },
        "Steps until the estimated mean of the new best arm has covered half of its rise (median over runs and its "
        "95 % confidence interval): "
        + ", ".join(f"{_name(policy)} {time}" for policy, time in times.items())
        + ".",
        "A mean over the whole past adapts faster if the arm is pulled less before the shift and more after it. "
        "mGEM and RSᵧ adapt fast because of their picks, not because of their estimates.",
        instead={
            f"{_name(fast)} adapts faster than {_name(slow)}": f"{_name(slow)} adapts faster than {_name(fast)}"
            if times[slow].high < times[fast].low
            else f"{_name(fast)} and {_name(slow)} are not significantly different"
            for fast in ("mgem", "rs")
            for slow in ("krr", "rnm", "gem", "ucb", "thompson")
        },
    )


def _check_quantiles(data: Tables) -> Finding:
    runs = Outcomes(data["runs"])
    # In the second half of each phase no window straddles the shift, even for arms that are seldom pulled.
    middle = runs.shift // 2
    steady = np.r_[middle : runs.shift + 1, (runs.shift + len(runs.times)) // 2 : len(runs.times)]
    parts: dict[str, bool] = {}
    said: list[str] = []
    for policy in WITH_QUANTILES:
        misses = [
            np.abs(runs.of(policy, f"{end}_{arm}")[:, steady] - runs.truth(arm, end)[steady])
            for end in ("low", "high")
            for arm in (0, 1)
        ]
        near = [estimate((miss <= NEAR).mean(axis=1)) for miss in misses]
        worst = min(near, key=lambda share: share.mean)
        parts[f"{_name(policy)}: each quantile is within {NEAR} of the truth {OFTEN:.0%} of the time"] = all(
            share.mean >= OFTEN for share in near
        )
        said.append(
            f"{_name(policy)} {np.mean([share.mean for share in near]):.1%} (worst quantile {worst}), "
            f"median error {np.median(misses):.3f}"
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
        text="After the shift every private policy out-earns UCB, which keeps pulling what was the best arm.",
        check=_check_earnings_after,
        needs_full_run=True,
    ),
    Claim(
        id="B2",
        text="mGEM earns most; GEM does badly, since scores and sensitivities correlate all the time.",
        check=_check_totals,
        needs_full_run=True,
    ),
    Claim(
        id="B3",
        text="The mean estimates of mGEM and RSᵧ adapt fastest.",
        check=_check_adaptation,
        needs_full_run=True,
    ),
    Claim(
        id="B4",
        text="The private quantile estimates track the true 10th and 90th percentiles.",
        check=_check_quantiles,
        needs_full_run=True,
    ),
)
