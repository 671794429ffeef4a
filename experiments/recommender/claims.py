"""Claims R1 to R4 and A3, judged on each run's tables with clipped scores.

A claim about every dataset is judged on the paper's datasets, or on substitutes where these are missing. Runs on
other datasets and with other settings are shown, and never turn a verdict. The ledger names the runs on which a
claim fails, and the table below the figure has a verdict for each run.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

import dpselect as dps
from experiments.curves import span
from experiments.ledger import Claim, Finding, judge
from experiments.mechanisms import PAPER, STYLES
from experiments.recommender.figures import runs_of
from experiments.tables import Tables, where

__all__ = ["CLAIMS", "checkable", "judged", "per_run", "unclipped"]

Verdicts: TypeAlias = Mapping[str, tuple[dict[str, bool], str]]
"""For each run: whether each part of a claim holds, and what was measured."""

SMALL = (0.01, 0.1)
"""The small values of ε that the claims are about."""
FEW = 30
"""The fewest users with negative correlation for a verdict on their ratios."""
STAND_INS: Mapping[str, str | None] = MappingProxyType(
    {"MovieLens-20M": "MovieLens-1M", "Netflix Prize": None, "Amazon Books": "Amazon Books 84 %, density 5e-5"}
)
"""The runs on the paper's datasets with its settings, and the nearest ones that replace them."""


INSTEAD = {
    "no user has a negative correlation": "some users have a negative correlation",
    "the ratio grows with the correlation": "the ratio falls with the correlation",
    "the trend goes on below zero": "the ratio does not grow with the correlation below zero",
}
"""What is true where a part fails."""


def judged(runs: Sequence[str]) -> dict[str, str]:
    """Return the runs that verdicts rest on, each with the paper's dataset for which it stands."""
    found = {}
    for own, substitute in STAND_INS.items():
        run = own if own in runs else substitute
        if run in runs:
            found[str(run)] = own
    return found


def _facts(data: Tables, run: str) -> dict[str, str]:
    table = where(data["facts"], run=run)
    return dict(zip(table["name"].to_pylist(), map(str, table["value"].to_pylist()), strict=True))


def _errors(data: Tables, run: str, variant: str = "clipped") -> dict[tuple[str, float], float]:
    table = where(data["errors"], run=run, variant=variant)
    return {(row["mechanism"], float(row["epsilon"])): row["mean_squared_error"] for row in table.to_pylist()}


def _is_amazon(run: str) -> bool:
    return run.startswith("Amazon")


def _r1(data: Tables) -> Verdicts:
    found: dict[str, tuple[dict[str, bool], str]] = {}
    for run in runs_of(data):
        facts = _facts(data, run)
        median = float(facts["correlation_clipped_quantile_50"])
        negative = float(facts["correlation_clipped_negative_share"])
        parts = {"correlations are mostly positive": median > 0 and negative < 0.5}
        if _is_amazon(run):
            parts["some users have a negative correlation"] = negative > 0
        else:
            parts["no user has a negative correlation"] = negative == 0
        if run == "Netflix Prize":
            parts["no dataset has a larger median"] = median >= max(
                float(_facts(data, other)["correlation_clipped_quantile_50"]) for other in judged(runs_of(data))
            )
        found[run] = parts, f"median {median:.2f}, negative for {negative:.2%} of the users"
    return found


def _r2(data: Tables) -> Verdicts:
    found: dict[str, tuple[dict[str, bool], str]] = {}
    for run in runs_of(data):
        facts = _facts(data, run)
        trend, negative = float(facts["ratio_trend"]), int(float(facts["ratio_negative_users"]))
        parts = {"the ratio grows with the correlation": trend > 0}
        measured = f"the ratio’s rank correlation with the correlation is {trend:.2f}".replace("-", "−")
        if negative >= FEW:
            below = _trend_below_zero(data, run)
            parts["the trend goes on below zero"] = below > 0
            ratio = float(facts["ratio_mean_ratio_where_negative"])
            measured += (
                f", {below:.2f} among the {negative} users with negative correlation, whose mean log ratio is "
                f"{ratio:.2f}"
            )
        found[run] = parts, measured
    return found


def _trend_below_zero(data: Tables, run: str) -> float:
    """Return the rank correlation of ratio and correlation over the users whose correlation is negative."""
    table = where(data["ratios"], run=run, version="exact")
    places, ratios, users = (table[name].to_numpy() for name in ("correlation", "log_ratio", "users"))
    chosen = places < 0
    places, ratios = (np.repeat(values[chosen], users[chosen]) for values in (places, ratios))
    # The arguments are scores and non-negative sensitivities; here, ratios and shifted correlations.
    return float(np.nan_to_num(dps.correlation.spearman(ratios, places + 1)))


def _r3(data: Tables) -> Verdicts:
    found: dict[str, tuple[dict[str, bool], str]] = {}
    for run in runs_of(data):
        errors = _errors(data, run)
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
    return min(PAPER, key=lambda name: errors[name, epsilon])


def _r4(data: Tables) -> Verdicts:
    found: dict[str, tuple[dict[str, bool], str]] = {}
    for run in runs_of(data):
        errors = _errors(data, run)
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


def _a3(data: Tables) -> Verdicts:
    found: dict[str, tuple[dict[str, bool], str]] = {}
    for run in runs_of(data):
        errors = _errors(data, run)
        epsilons = sorted({epsilon for _, epsilon in errors})
        pays = [e for e in epsilons if errors["combined-gem", e] <= errors["mgem", e]]
        measured = f"ε = 1: combined GEM {errors['combined-gem', 1.0]:.2g}, mGEM {errors['mgem', 1.0]:.2g}"
        if pays:
            measured += f"; combined GEM is at least as good at ε = {', '.join(f'{e:g}' for e in pays)}"
        found[run] = {"combined GEM is worse than mGEM": not pays}, measured
    return found


def _over_runs(
    verdicts: Callable[[Tables], Verdicts], comment: str, *, only: str = ""
) -> Callable[[Tables], Finding]:
    """Return the check of a claim about all runs, or about those whose title begins with ``only``."""

    def check(data: Tables) -> Finding:
        found = {run: verdict for run, verdict in verdicts(data).items() if run.startswith(only)}
        counted = judged(list(found))
        parts = {f"{name} ({run})": holds for run in counted for name, holds in found[run][0].items()}
        instead = {
            f"{name} ({run})": f"{fact} ({run})"
            for run in counted
            for name in found[run][0]
            if (fact := INSTEAD.get(name))
        }
        said = {run: f"{run}: {measured}" for run, (_, measured) in found.items()}
        measured = ". ".join(said[run] for run in counted)
        further = ". ".join(text for run, text in said.items() if run not in counted)
        if further:
            measured += f". Shown but not judged, since the paper did not use them: {further}"
        return judge(
            parts,
            f"{measured}.",
            f"{comment} {_judged_on(counted, only)}".strip(),
            instead=instead,
            scope="on substitutes" if any(run != own for run, own in counted.items()) else "",
        )

    return check


def _judged_on(counted: Mapping[str, str], only: str) -> str:
    """Say on which datasets a verdict rests, and which of the paper's are missing."""
    said = [run if run == own else f"{run} in place of {own}" for run, own in counted.items()]
    missing = [own for own in STAND_INS if own.startswith(only) and own not in counted.values()]
    return f"Judged on {' and '.join(said)}." + (f" {', '.join(missing)} was not available." if missing else "")


_VERDICTS: Mapping[str, Callable[[Tables], Verdicts]] = {"R1": _r1, "R2": _r2, "R3": _r3, "R4": _r4, "A3": _a3}

CLAIMS = (
    Claim(
        id="A3",
        text="On Amazon Books, spending budget on the choice does not pay.",
        check=_over_runs(_a3, "Combined GEM is compared with mGEM at every ε.", only="Amazon"),
    ),
    Claim(
        id="R1",
        text="Per-user Spearman correlation is mostly positive in every dataset; Netflix most; only Amazon Books "
        "has negative users.",
        check=_over_runs(_r1, "“Netflix most” is judged only if Netflix is available."),
    ),
    Claim(
        id="R2",
        text="The log ratio of mean selected score mGEM/GEM grows with the user’s correlation, and the trend goes "
        "on below zero (“the more negative, the better GEM”: a trend, not a sign).",
        check=_over_runs(
            _r2,
            "Means are exact, at ε = 1. The trend below zero is judged if at least "
            f"{FEW} users have a negative correlation.",
        ),
    ),
    Claim(
        id="R3",
        text="mGEM is the best mechanism at small ε in every dataset.",
        check=_over_runs(_r3, "The best of the paper’s private mechanisms, without other tilts."),
    ),
    Claim(
        id="R4",
        text="GEM is worse than RNM in every dataset, and worse than random at small ε.",
        check=_over_runs(_r4, "“Worse than RNM” means at every ε from 0.01 to 16."),
    ),
)


def checkable(runs: Sequence[str]) -> list[Claim]:
    """Return the claims that runs of these titles can decide."""
    counted = judged(runs)
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
    """Return the verdict and the numbers of each claim on each run."""
    return {
        id_: {run: f"{judge(parts, '').verdict}: {measured}" for run, (parts, measured) in verdicts(data).items()}
        for id_, verdicts in _VERDICTS.items()
    }
