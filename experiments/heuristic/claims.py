"""Claims G6, G7 and G10, checked on the errors in all settings."""

import numpy as np

from experiments.bandit.outcomes import estimate
from experiments.bandit.styles import POLICY_STYLES
from experiments.curves import number, span
from experiments.heuristic.settings import Setting, basis, counted, runs, scenarios, scorecard, short
from experiments.ledger import Claim, Finding, judge
from experiments.mechanisms import STYLES
from experiments.scenarios import TITLES
from experiments.tables import Tables, unique, where

__all__ = ["CLAIMS", "by_trial"]

POSITIVE = (TITLES[1], TITLES[4], "t = 0.3", "t = 0.8", "t = 5")
"""The settings with positive correlation by construction."""
CLOSE = 1.1
"""An error up to this many times the lowest is close to it."""
GOOD = 0.9
"""A rule that is right at least this often predicts."""
CLEAR = 0.1
"""A correlation of at least this size is clear."""


def _check_close(data: Tables) -> Finding:
    synthetic, real = scenarios(data["errors"]), runs(data)
    largest = {each.title: float(each.distances[each.small].max()) for each in (*synthetic, *real)}
    names = [*(each.title for each in synthetic), *counted(data)]
    parts = {f"for ε ≤ 1 within {CLOSE:g} times the lowest error ({short(name)})": name for name in names}
    ten = [each.at(10.0) for each in synthetic]
    ahead = [each.best(place) for each, place in zip(synthetic, ten, strict=True)]
    far = max(float(each.distances[place]) for each, place in zip(synthetic, ten, strict=True))
    first = {each.title: each.epsilons[each.distances > CLOSE] for each in (*synthetic, *real)}
    return judge(
        {part: largest[name] <= CLOSE for part, name in parts.items()},
        "The better error of GEM and mGEM, divided by the lowest of the paper’s mechanisms, is for ε ≤ 1 at most: "
        + ", ".join(f"{short(name)} {number(ratio)}" for name, ratio in largest.items())
        + f". It exceeds {CLOSE:g} from ε = "
        + ", ".join(f"{found.min():.3g} ({short(name)})" for name, found in first.items() if found.size)
        + f" on. At ε = 10 kRR has the lowest error in {ahead.count('krr')} of {len(ahead)} scenarios, and the "
        f"better of the two up to {number(far)} times that.",
        f"The paper names no ε. Judged for ε ≤ 1; “close to optimal” is read as at most {CLOSE:g} times. "
        f"{basis(data)}",
        instead={
            part: f"for ε ≤ 1 it has up to {number(largest[name])} times the lowest error in {short(name)}"
            for part, name in parts.items()
        },
    )


def by_trial(data: Tables) -> dict[str, float]:
    """Return how often a trial's own sign names the better one, over all its ε, for each setting with signs."""
    found = {}
    for title in unique(data["signs"], "setting"):
        table = where(data["signs"], setting=title)
        right, signed = (int(table[name].to_numpy().sum()) for name in ("right", "signed"))
        if signed:
            found[title] = right / signed
    return found


def _check_sign(data: Tables) -> Finding:
    card, trials = scorecard(data), by_trial(data)
    scored = [case for case in card if case.counts and case.predicted]
    right = float(np.mean([case.is_right for case in scored]))
    clear = [case.is_right for case in scored if abs(case.correlation) >= CLEAR]
    others = [case.is_right for case in card if not case.counts]
    wrong = dict.fromkeys(short(case.title) for case in scored if not case.is_right)
    unsigned = dict.fromkeys(short(case.title) for case in card if case.counts and not case.predicted)
    users = [f"{row['run']} {row['right'] / row['users']:.0%}" for row in data["users"].to_pylist()]
    medians = {row["run"]: row["correlation"] for row in where(data["data"], variant="unclipped").to_pylist()}
    bare = [(each.winner(1.0) == "mgem") == (medians[each.title] > 0) for each in runs(data, "unclipped")]
    mean = f"the sign of a setting’s correlation names the better one in at least {GOOD:.0%} of the cases"
    return judge(
        {mean: right >= GOOD},
        f"The sign of a setting’s correlation names the better one of GEM and mGEM in "
        f"{sum(case.is_right for case in scored)} of {len(scored)} cases (ε = 0.01, 0.1 and 1)"
        + (f"; it is wrong in {', '.join(wrong)}" if wrong else "")
        + (f"; there is no sign in {', '.join(unsigned)}" if unsigned else "")
        + f". Where the correlation is at least {CLEAR:g} in size: {sum(clear)} of {len(clear)}. In runs that the "
        f"paper did not use: {sum(others)} of {len(others)}. Trial by trial, each with its own sign: "
        + ", ".join(f"{short(title)} {share:.0%}" for title, share in trials.items())
        + f". User by user at ε = 1: {', '.join(users)}. On unclipped scores, whose sensitivities are false, the "
        f"sign is right in {sum(bare)} of {len(bare)} runs at ε = 1.",
        "A setting’s correlation is the mean over its trials, or the median over users. Where it is weak, the sign "
        f"of a single trial says little. The paper itself says that there are exceptional cases. {basis(data)}",
        instead={
            mean: f"the sign of a setting’s correlation is right in {right:.0%} of the cases",
        },
        scope=f"over settings; of single trials, the sign is right in {min(trials.values()):.0%} "
        f"({short(min(trials, key=trials.__getitem__))}) to {max(trials.values()):.0%}",
    )


def _check_best(data: Tables) -> Finding:
    synthetic = [each for name in ("errors", "slopes") for each in scenarios(data[name]) if each.title in POSITIVE]
    real = runs(data)
    judged = [*synthetic, *(each for each in real if each.title in counted(data))]
    rewards = {
        policy: where(data["bandit"], policy=policy)["reward"].to_numpy()
        for policy in unique(data["bandit"], "policy")
    }
    leads = {
        policy: estimate(rewards["mgem"] - each)
        for policy, each in rewards.items()
        if POLICY_STYLES[policy].private and policy != "mgem"
    }
    parts = {f"mGEM has the lowest error for ε ≤ 1 ({short(each.title)})": each for each in judged}
    bandit = "mGEM earns most of the private policies of the bandit"
    reversed_ = [
        each.title
        for each in runs(data, "unclipped")
        if each.title in counted(data) and not each.led[each.small].all()
    ]
    bare = f"unclipped scores reverse it on {' and '.join(reversed_)}" if reversed_ else ""
    return judge(
        {
            **{part: bool(each.led[each.small].all()) for part, each in parts.items()},
            bandit: all(lead.is_positive for lead in leads.values()),
        },
        "mGEM has the lowest error of the paper’s mechanisms in "
        + "; ".join(
            f"{short(each.title)} {span(each.epsilons, each.led)}{_then(each)}" for each in (*synthetic, *real)
        )
        + ". In the bandit, with ε = 1 for a pick, mGEM’s reward minus that of the other private policies: "
        + ", ".join(f"{POLICY_STYLES[policy].label} {lead}" for policy, lead in leads.items())
        + ".",
        "The paper prints no ε. The synthetic settings are those with positive correlation by construction. UCB, "
        f"which is not private, is compared in B2. {basis(data)}",
        instead={
            part: f"mGEM has the lowest error only {span(each.epsilons, each.led)} ({short(each.title)})"
            for part, each in parts.items()
        },
        scope=f"for ε ≤ {min(_last(each) for each in judged):.3g}" + (f"; {bare}" if bare else ""),
    )


def _last(setting: Setting) -> float:
    """Return the largest ε up to which mGEM always has the lowest error."""
    count = int(np.argmin(setting.led)) if not setting.led.all() else setting.led.size
    return float(setting.epsilons[count - 1]) if count else 0.0


def _then(setting: Setting) -> str:
    """Say who is best at larger ε than mGEM."""
    places = np.flatnonzero(setting.led)
    later = range(int(places[-1]) + 1 if places.size else 0, setting.epsilons.size)
    names = dict.fromkeys(STYLES[setting.best(place)].label for place in later)
    return f", then {' and '.join(names)}" if names else ""


CLAIMS = (
    Claim(
        id="G6",
        text="One of GEM and mGEM is optimal or close to it.",
        check=_check_close,
        needs_full_run=True,
    ),
    Claim(
        id="G7",
        text="The sign of the correlation of scores and sensitivities predicts which of GEM and mGEM is better.",
        check=_check_sign,
        needs_full_run=True,
    ),
    Claim(
        id="G10",
        text="mGEM is best in all three problems of the evaluation: synthetic with positive correlation, real "
        "data, bandit.",
        check=_check_best,
        needs_full_run=True,
    ),
)
