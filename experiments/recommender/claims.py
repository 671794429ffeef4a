"""Claims R1 to R4 and A3, judged on each run's tables with clipped scores.

A claim about every dataset holds if it holds on every run. The ledger names the runs on which it fails, and the
table below the figure has a verdict for each run.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from experiments.ledger import Claim, Finding, judge
from experiments.mechanisms import PRIVATE, STYLES
from experiments.recommender.figures import runs_of
from experiments.tables import Tables, where

__all__ = ["CLAIMS", "checkable", "per_run", "unclipped"]

Verdicts: TypeAlias = Mapping[str, tuple[dict[str, bool], str]]
"""For each run: whether each part of a claim holds, and what was measured."""

SMALL = (0.01, 0.1)
"""The small values of ε that the claims are about."""
FEW = 30
"""The fewest users with negative correlation for a verdict on their ratios."""
NOT_HERE = "Judged on the datasets named here; the paper’s other datasets were not available"


INSTEAD = {
    "no user has a negative correlation": "some users have a negative correlation",
    "the ratio grows with the correlation": "the ratio falls with the correlation",
    "the mean ratio is negative where the correlation is": "the mean ratio is positive where the correlation is "
    "negative",
}
"""What is true where a part fails."""


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
        found[run] = parts, f"median {median:.2f}, negative for {negative:.2%} of the users"
    return found


def _r2(data: Tables) -> Verdicts:
    found: dict[str, tuple[dict[str, bool], str]] = {}
    for run in runs_of(data):
        facts = _facts(data, run)
        trend, negative = float(facts["ratio_trend"]), int(float(facts["ratio_negative_users"]))
        parts = {"the ratio grows with the correlation": trend > 0}
        measured = f"the ratio’s rank correlation with the correlation is {trend:.2f}"
        if negative >= FEW:
            ratio = float(facts["ratio_mean_ratio_where_negative"])
            parts["the mean ratio is negative where the correlation is"] = ratio < 0
            measured += f", the mean log ratio {ratio:.2f} for the {negative} users with negative correlation"
        found[run] = parts, measured
    return found


def _r3(data: Tables) -> Verdicts:
    found: dict[str, tuple[dict[str, bool], str]] = {}
    for run in runs_of(data):
        errors = _errors(data, run)
        parts, measured = {}, []
        for epsilon in SMALL:
            best = min(PRIVATE, key=lambda name: errors[name, epsilon])
            parts[f"mGEM is best at ε = {epsilon:g}"] = best == "mgem"
            measured.append(
                f"ε = {epsilon:g}: mGEM {errors['mgem', epsilon]:.2g}, RNM {errors['rnm', epsilon]:.2g}"
                + ("" if best == "mgem" else f", {STYLES[best].label} {errors[best, epsilon]:.2g}")
            )
        found[run] = parts, "; ".join(measured)
    return found


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
        parts = {f"{name} ({run})": holds for run, (each, _) in found.items() for name, holds in each.items()}
        instead = {
            f"{name} ({run})": f"{fact} ({run})"
            for run, (each, _) in found.items()
            for name in each
            if (fact := INSTEAD.get(name))
        }
        measured = ". ".join(f"{run}: {measured}" for run, (_, measured) in found.items())
        return judge(parts, f"{measured}.", comment, instead=instead)

    return check


_VERDICTS: Mapping[str, Callable[[Tables], Verdicts]] = {"R1": _r1, "R2": _r2, "R3": _r3, "R4": _r4, "A3": _a3}

CLAIMS = (
    Claim(
        id="A3",
        text="On Amazon Books, spending budget on the choice does not pay.",
        check=_over_runs(
            _a3,
            "Combined GEM is compared with mGEM at every ε, on four fifths of the training interactions.",
            only="Amazon",
        ),
    ),
    Claim(
        id="R1",
        text="Per-user Spearman correlation is mostly positive in every dataset; Netflix most; only Amazon Books "
        "has negative users.",
        check=_over_runs(_r1, f"{NOT_HERE}, so “Netflix most” is not judged."),
    ),
    Claim(
        id="R2",
        text="The log ratio of mean selected score mGEM/GEM grows with the user’s correlation, and is negative "
        "where the correlation is.",
        check=_over_runs(
            _r2,
            f"Means are exact, at ε = 1. Signs are judged if at least {FEW} users have a negative correlation. "
            f"{NOT_HERE}.",
        ),
    ),
    Claim(
        id="R3",
        text="mGEM is the best mechanism at small ε in every dataset.",
        check=_over_runs(_r3, f"The best of the paper’s private mechanisms, without other tilts. {NOT_HERE}."),
    ),
    Claim(
        id="R4",
        text="GEM is worse than RNM in every dataset, and worse than random at small ε.",
        check=_over_runs(_r4, f"“Worse than RNM” means at every ε from 0.01 to 16. {NOT_HERE}."),
    ),
)


def checkable(runs: Sequence[str]) -> list[Claim]:
    """Return the claims that runs of these titles can decide."""
    return [claim for claim in CLAIMS if claim.id != "A3" or any(map(_is_amazon, runs))]


def unclipped(data: Tables) -> dict[str, str]:
    """Return what each run's unclipped scores show. Their sensitivities are false, so nothing is private."""
    found: dict[str, str] = {}
    for run in runs_of(data):
        errors = _errors(data, run, "unclipped")
        chosen = min((errors[name, SMALL[0]], name) for name in PRIVATE)[1]
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
