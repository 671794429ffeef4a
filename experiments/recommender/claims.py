"""Claims R1 to R4 and A3, judged on each run's tables with clipped scores, and what unclipped scores show.

Verdicts rest on the paper's datasets, or on the part of them that is available (:mod:`.evidence`). Without clipping
the stated sensitivities are false and nothing is private, so clipped scores are judged. A row says where unclipped
ones reverse the verdict. The table below the figure has a verdict for each run.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

import dpselect as dps
from experiments.curves import span
from experiments.ledger import Claim, Finding, Verdict, judge
from experiments.mechanisms import PAPER, STYLES
from experiments.recommender.evidence import PAPER_SETS, judged, substitutes
from experiments.recommender.figures import runs_of
from experiments.tables import Tables, where

__all__ = ["CLAIMS", "checkable", "per_run", "unclipped"]

Verdicts: TypeAlias = Mapping[str, tuple[dict[str, bool], str]]
"""For each run: whether each part of a claim holds, and what was measured."""

SMALL = (0.01, 0.1)
"""The small values of ε that the claims are about."""
FEW = 30
"""The fewest users with negative correlation for a verdict on their ratios."""
SOME = 0.01
"""The least share of users that counts as some: two of 50,000 are none."""

INSTEAD = {
    "no user has a negative correlation": "some users have a negative correlation",
    "some users have a negative correlation": f"less than {SOME:.0%} of the users have a negative correlation",
    "the ratio grows with the correlation": "the ratio falls with the correlation",
    "the trend goes on below zero": "the ratio does not grow with the correlation below zero",
}
"""What is true where a part fails."""


def _facts(data: Tables, run: str) -> dict[str, str]:
    table = where(data["facts"], run=run)
    return dict(zip(table["name"].to_pylist(), map(str, table["value"].to_pylist()), strict=True))


def _errors(data: Tables, run: str, variant: str) -> dict[tuple[str, float], float]:
    table = where(data["errors"], run=run, variant=variant)
    return {(row["mechanism"], float(row["epsilon"])): row["mean_squared_error"] for row in table.to_pylist()}


def _is_amazon(run: str) -> bool:
    return run.startswith("Amazon")


def _median(data: Tables, run: str, variant: str) -> float:
    return float(_facts(data, run)[f"correlation_{variant}_quantile_50"])


def _r1(data: Tables, variant: str = "clipped") -> Verdicts:
    found: dict[str, tuple[dict[str, bool], str]] = {}
    for run in runs_of(data):
        facts, median = _facts(data, run), _median(data, run, variant)
        users, undefined = (int(float(facts[f"correlation_{variant}_{name}"])) for name in ("users", "undefined"))
        known = (users - undefined) / users
        negative = float(facts[f"correlation_{variant}_negative_share"])  # of those whose correlation is defined
        parts = {"correlations are mostly positive": median > 0 and (1 - negative) * known > 0.5}
        if _is_amazon(run):
            parts["some users have a negative correlation"] = negative * known >= SOME
        else:
            parts["no user has a negative correlation"] = negative == 0
        if run == "Netflix Prize":
            parts["no dataset has a larger median"] = median >= max(
                _median(data, other, variant) for other in judged(runs_of(data))
            )
        found[run] = (
            parts,
            f"median {median:.2f}, negative for {negative * (users - undefined):,.0f} of {users:,} users, "
            f"undefined for {undefined:,}".replace("-", "−"),
        )
    return found


def _r2(data: Tables) -> Verdicts:
    found: dict[str, tuple[dict[str, bool], str]] = {}
    for run in runs_of(data):
        facts = _facts(data, run)
        trend, negative = float(facts["ratio_trend"]), int(float(facts["ratio_negative_users"]))
        parts = {"the ratio grows with the correlation": trend > 0}
        measured = f"the ratio’s rank correlation with the correlation is {trend:.2f}"
        if negative >= FEW:
            below = _trend_below_zero(data, run)
            parts["the trend goes on below zero"] = below > 0
            ratio = float(facts["ratio_mean_ratio_where_negative"])
            measured += (
                f", {below:.2f} among the {negative} users with negative correlation, whose mean log ratio is "
                f"{ratio:.2f}"
            )
        left_out, users = (int(float(facts[f"ratio_{name}"])) for name in ("undefined", "users"))
        if left_out:
            measured += f"; {left_out:,} of {users:,} users are left out, without a correlation or a positive mean"
        found[run] = parts, measured.replace("-", "−")
    return found


def _trend_below_zero(data: Tables, run: str) -> float:
    """Return the rank correlation of ratio and correlation over the users whose correlation is negative."""
    table = where(data["ratios"], run=run, version="exact")
    places, ratios, users = (table[name].to_numpy() for name in ("correlation", "log_ratio", "users"))
    chosen = places < 0
    places, ratios = (np.repeat(values[chosen], users[chosen]) for values in (places, ratios))
    # The arguments are scores and non-negative sensitivities; here, ratios and shifted correlations.
    return float(np.nan_to_num(dps.correlation.spearman(ratios, places + 1)))


def _r3(data: Tables, variant: str = "clipped") -> Verdicts:
    found: dict[str, tuple[dict[str, bool], str]] = {}
    for run in runs_of(data):
        errors = _errors(data, run, variant)
        parts, measured = {}, []
        for epsilon in SMALL:
            best = _best(errors, epsilon)
            parts[f"mGEM is best at ε = {epsilon:g}"] = best == "mgem"
            measured.append(
                f"ε = {epsilon:g}: mGEM {errors['mgem', epsilon]:.2g}, RNM {errors['rnm', epsilon]:.2g}"
                + ("" if best == "mgem" else f", {STYLES[best].label} {errors[best, epsilon]:.2g}")
            )
        epsilons = sorted({epsilon for _, epsilon in errors})
        leads = np.array([_best(errors, e) == "mgem" for e in epsilons])
        found[run] = parts, f"mGEM is best {span(np.array(epsilons), leads)} ({'; '.join(measured)})"
    return found


def _best(errors: Mapping[tuple[str, float], float], epsilon: float) -> str:
    return min(PAPER, key=lambda name: errors.get((name, epsilon), np.inf))


def _r4(data: Tables, variant: str = "clipped") -> Verdicts:
    found: dict[str, tuple[dict[str, bool], str]] = {}
    for run in runs_of(data):
        errors = _errors(data, run, variant)
        epsilons = sorted({epsilon for _, epsilon in errors})
        better = [e for e in epsilons if errors["gem", e] <= errors["rnm", e]]
        parts = {
            "GEM is worse than RNM": not better,
            "GEM is worse than random at small ε": all(errors["gem", e] > errors["uniform", e] for e in SMALL),
        }
        measured = (
            f"ε = 0.01: GEM {errors['gem', 0.01]:.2g}, RNM {errors['rnm', 0.01]:.2g}, "
            f"random {errors['uniform', 0.01]:.2g}"
        )
        if better:
            measured += f"; GEM is at least as good as RNM at ε = {', '.join(f'{e:g}' for e in better)}"
        found[run] = parts, measured
    return found


def _a3(data: Tables, variant: str = "clipped") -> Verdicts:
    found: dict[str, tuple[dict[str, bool], str]] = {}
    for run in runs_of(data):
        errors = _errors(data, run, variant)
        epsilons = sorted({epsilon for _, epsilon in errors})
        pays = [e for e in epsilons if errors["combined-gem", e] <= errors["mgem", e]]
        measured = f"ε = 1: combined GEM {errors['combined-gem', 1.0]:.2g}, mGEM {errors['mgem', 1.0]:.2g}"
        if pays:
            measured += f"; combined GEM is at least as good at ε = {', '.join(f'{e:g}' for e in pays)}"
        found[run] = {"combined GEM is worse than mGEM": not pays}, measured
    return found


_CLIPPED: Mapping[str, Callable[[Tables], Verdicts]] = MappingProxyType(
    {"R1": _r1, "R2": _r2, "R3": _r3, "R4": _r4, "A3": _a3}
)
_UNCLIPPED: Mapping[str, Callable[[Tables], Verdicts]] = MappingProxyType(
    {
        "R1": lambda data: _r1(data, "unclipped"),
        "R3": lambda data: _r3(data, "unclipped"),
        "R4": lambda data: _r4(data, "unclipped"),
        "A3": lambda data: _a3(data, "unclipped"),
    }
)
"""The same on unclipped scores; there are no ratios for R2."""


def _check(id_: str, comment: str, *, only: str = "") -> Callable[[Tables], Finding]:
    """Return the check of a claim about all runs, or about those whose title begins with ``only``."""

    def check(data: Tables) -> Finding:
        clipped, bare = (
            {run: verdict for run, verdict in verdicts(data).items() if run.startswith(only)}
            for verdicts in (_CLIPPED[id_], _UNCLIPPED.get(id_, lambda _: {}))
        )
        own, near = judged(list(clipped)), substitutes(list(clipped))
        said = {
            run: f"{run}: {measured}" + (f"; unclipped: {bare[run][1]}" if run in bare else "")
            for run, (_, measured) in clipped.items()
        }
        measured = ". ".join(said[run] for run in (*own, *near))
        further = ". ".join(text for run, text in said.items() if run not in own and run not in near)
        if further:
            measured += f". Shown but not judged, since the paper did not use them: {further}"
        comment_ = f"{comment} {_judged_on(own, near, only)}".strip()
        if not own:
            return Finding(
                verdict=Verdict.SHOWN, measured=f"{measured}.", comment=comment_, scope="(substitutes alone)"
            )
        finding = judge(
            {f"{name} ({run})": holds for run in own for name, holds in clipped[run][0].items()},
            f"{measured}.",
            comment_,
            instead={
                f"{name} ({run})": f"{INSTEAD[name]} ({run})"
                for run in own
                for name in clipped[run][0]
                if name in INSTEAD
            },
        )
        if finding.verdict is not Verdict.HOLDS:
            return finding
        scopes = [
            *(["on substitutes"] if near or any(run != name for run, name in own.items()) else []),
            *(f"but not on {run}" for run in near if not all(clipped[run][0].values())),
        ]
        reversed_ = [
            run
            for run in (*own, *near)
            if run in bare and all(clipped[run][0].values()) and not all(bare[run][0].values())
        ]
        scope = " ".join(scopes)
        if reversed_:
            scope = f"{scope}, clipped; unclipped scores reverse it on {' and '.join(reversed_)}".lstrip(", ")
        return replace(finding, scope=scope)

    return check


def _judged_on(own: Mapping[str, str], near: Mapping[str, str], only: str) -> str:
    """Say on which datasets a verdict rests, what substitutes there are, and which of the paper's are missing."""
    said = [run if run == name else f"{run}, a part of {name}" for run, name in own.items()]
    missing = [name for name in PAPER_SETS if name.startswith(only) and name not in own.values()]
    parts = [
        f"Judged on {' and '.join(said)}." if said else "",
        *(f"{run} stands for {name} and turns no verdict." for run, name in near.items()),
        f"Not available: {', '.join(missing)}." if missing else "",
    ]
    return " ".join(part for part in parts if part)


CLAIMS = (
    Claim(
        id="A3",
        text="On Amazon Books, spending budget on the choice does not pay.",
        check=_check("A3", "Combined GEM is compared with mGEM at every ε.", only="Amazon"),
    ),
    Claim(
        id="R1",
        text="Per-user Spearman correlation is mostly positive in every dataset; Netflix most; only Amazon Books "
        "has negative users.",
        check=_check(
            "R1",
            "“Mostly” counts users without a correlation among the others, and “some” means at least "
            f"{SOME:.0%} of the users. “Netflix most” is judged only if Netflix is available.",
        ),
    ),
    Claim(
        id="R2",
        text="The log ratio of mean selected score mGEM/GEM grows with the user’s correlation, and the trend goes "
        "on below zero (“the more negative, the better GEM”: a trend, not a sign).",
        check=_check(
            "R2",
            "Means are exact, at ε = 1, on clipped scores. The trend below zero is judged if at least "
            f"{FEW} users have a negative correlation.",
        ),
    ),
    Claim(
        id="R3",
        text="mGEM is the best mechanism at small ε in every dataset.",
        check=_check("R3", "The best of the paper’s private mechanisms, without other tilts."),
    ),
    Claim(
        id="R4",
        text="GEM is worse than RNM in every dataset, and worse than random at small ε.",
        check=_check("R4", "“Worse than RNM” means at every ε from 0.01 to 16."),
    ),
)


def checkable(runs: Sequence[str]) -> list[Claim]:
    """Return the claims that runs of these titles can decide, or show on substitutes."""
    counted = {**judged(runs), **substitutes(runs)}
    return [claim for claim in CLAIMS if counted and (claim.id != "A3" or any(map(_is_amazon, counted)))]


def unclipped(data: Tables) -> dict[str, str]:
    """Return what each run's unclipped scores show. Their sensitivities are false, so nothing is private."""
    found: dict[str, str] = {}
    for run in runs_of(data):
        errors = _errors(data, run, "unclipped")
        chosen = _best(errors, SMALL[0])
        found[run] = f"best at ε = {SMALL[0]:g}: {STYLES[chosen].label}; " + ", ".join(
            f"{STYLES[name].label} {errors[name, SMALL[0]]:.2g}" for name in ("mgem", "gem", "rnm", "uniform")
        )
    return found


def per_run(data: Tables) -> dict[str, dict[str, str]]:
    """Return the verdict and the numbers of each claim on each run, on clipped and on unclipped scores."""
    found = {}
    for id_, verdicts in _CLIPPED.items():
        found[id_] = {run: _worded(each) for run, each in verdicts(data).items()}
        if id_ in _UNCLIPPED:
            found[f"{id_}, unclipped"] = {run: _worded(each) for run, each in _UNCLIPPED[id_](data).items()}
    return found


def _worded(verdict: tuple[dict[str, bool], str]) -> str:
    parts, measured = verdict
    return f"{judge(parts, '').verdict}: {measured}"
