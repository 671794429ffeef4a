"""Claims R1 to R4 and A3, judged on each run's tables, on clipped scores.

A claim about every dataset holds if it does on every run; the ledger names those on which it does not, and the
table below the figure has a verdict for each.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from experiments.ledger import Claim, Finding, judge
from experiments.mechanisms import STYLES
from experiments.tables import Tables, where

__all__ = ["CLAIMS", "checkable", "per_run", "unclipped"]

Verdicts: TypeAlias = Mapping[str, tuple[dict[str, bool], str]]
"""For each run, the parts of a claim and whether they hold, and what was measured."""

SMALL = (0.01, 0.1)
"""Small ε, where the paper claims most."""
FEW = 30
"""So many users with negative correlation are needed to judge their ratios."""
NOT_HERE = "Judged on the sets named here; a set of the paper that is not among them was not at hand"


def _runs(data: Tables) -> list[str]:
    return list(data["facts"]["run"].unique().to_pylist())


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
    for run in _runs(data):
        facts = _facts(data, run)
        median = float(facts["correlation_clipped_quantile_50"])
        negative = float(facts["correlation_clipped_negative_share"])
        parts = {"mostly positive": median > 0 and negative < 0.5}
        if _is_amazon(run):
            parts["some users negative"] = negative > 0
        else:
            parts["no user negative"] = negative == 0
        found[run] = parts, f"median {median:.2f}, {negative:.2%} of users negative"
    return found


def _r2(data: Tables) -> Verdicts:
    found: dict[str, tuple[dict[str, bool], str]] = {}
    for run in _runs(data):
        facts = _facts(data, run)
        trend, negative = float(facts["ratio_trend"]), int(float(facts["ratio_negative_users"]))
        parts = {"the ratio grows": trend > 0}
        measured = f"rank correlation of ratio and correlation {trend:.2f}"
        if negative >= FEW:
            ratio = float(facts["ratio_mean_ratio_where_negative"])
            parts["negative where the correlation is"] = ratio < 0
            measured += f", mean log ratio {ratio:.2f} for the {negative} users of negative correlation"
        found[run] = parts, measured
    return found


def _r3(data: Tables) -> Verdicts:
    found: dict[str, tuple[dict[str, bool], str]] = {}
    private = [name for name, style in STYLES.items() if style.private]
    for run in _runs(data):
        errors = _errors(data, run)
        parts, measured = {}, []
        for epsilon in SMALL:
            best = min(private, key=lambda name: errors[name, epsilon])
            parts[f"best at ε = {epsilon:g}"] = best == "mgem"
            measured.append(
                f"ε = {epsilon:g}: mGEM {errors['mgem', epsilon]:.2g}, RNM {errors['rnm', epsilon]:.2g}"
                + ("" if best == "mgem" else f", {STYLES[best].label} {errors[best, epsilon]:.2g}")
            )
        found[run] = parts, "; ".join(measured)
    return found


def _r4(data: Tables) -> Verdicts:
    found: dict[str, tuple[dict[str, bool], str]] = {}
    for run in _runs(data):
        errors = _errors(data, run)
        epsilons = sorted({epsilon for _, epsilon in errors})
        better = [e for e in epsilons if errors["gem", e] <= errors["rnm", e]]
        parts = {
            "worse than RNM": not better,
            "worse than random at small ε": all(errors["gem", e] > errors["uniform", e] for e in SMALL),
        }
        measured = (
            f"ε = 0.01: GEM {errors['gem', 0.01]:.2g}, RNM {errors['rnm', 0.01]:.2g}, "
            f"random {errors['uniform', 0.01]:.2g}"
        )
        if better:
            measured += f"; GEM is not worse than RNM at ε = {', '.join(f'{e:g}' for e in better)}"
        found[run] = parts, measured
    return found


def _a3(data: Tables) -> Verdicts:
    found: dict[str, tuple[dict[str, bool], str]] = {}
    for run in _runs(data):
        errors = _errors(data, run)
        epsilons = sorted({epsilon for _, epsilon in errors})
        pays = [e for e in epsilons if errors["combined-gem", e] <= errors["mgem", e]]
        measured = f"ε = 1: combined GEM {errors['combined-gem', 1.0]:.2g}, mGEM {errors['mgem', 1.0]:.2g}"
        if pays:
            measured += f"; it pays at ε = {', '.join(f'{e:g}' for e in pays)}"
        found[run] = {"does not pay": not pays}, measured
    return found


def _over_runs(
    verdicts: Callable[[Tables], Verdicts], comment: str, *, only: str = ""
) -> Callable[[Tables], Finding]:
    """Return the check of a claim about all runs, or about those whose title begins with ``only``."""

    def check(data: Tables) -> Finding:
        found = {run: verdict for run, verdict in verdicts(data).items() if run.startswith(only)}
        parts = {f"{name} ({run})": holds for run, (each, _) in found.items() for name, holds in each.items()}
        return judge(parts, ". ".join(f"{run}: {measured}" for run, (_, measured) in found.items()) + ".", comment)

    return check


_VERDICTS: Mapping[str, Callable[[Tables], Verdicts]] = {"R1": _r1, "R2": _r2, "R3": _r3, "R4": _r4, "A3": _a3}

CLAIMS = (
    Claim(
        id="A3",
        text="On Amazon Books, spending budget on the choice does not pay.",
        check=_over_runs(
            _a3, "Combined GEM against mGEM, at every ε. Four fifths of the training interactions.", only="Amazon"
        ),
    ),
    Claim(
        id="R1",
        text="Per-user Spearman correlation is mostly positive in every dataset; Netflix most; only Amazon Books "
        "has negative users.",
        check=_over_runs(_r1, f"{NOT_HERE}, and “Netflix most” is not judged."),
    ),
    Claim(
        id="R2",
        text="The log ratio of mean selected score mGEM/GEM grows with the user’s correlation, and is negative "
        "where the correlation is.",
        check=_over_runs(
            _r2, f"Exact means at ε = 1; signs are judged where at least {FEW} users are negative. {NOT_HERE}."
        ),
    ),
    Claim(
        id="R3",
        text="mGEM is the best mechanism at small ε in every dataset.",
        check=_over_runs(_r3, f"Best of all private mechanisms of the paper, tilts aside. {NOT_HERE}."),
    ),
    Claim(
        id="R4",
        text="GEM is worse than RNM in every dataset, and worse than random at small ε.",
        check=_over_runs(_r4, f"Worse than RNM at every ε from 0.01 to 16. {NOT_HERE}."),
    ),
)


def checkable(runs: Sequence[str]) -> list[Claim]:
    """Return the claims that runs of these titles can decide."""
    return [claim for claim in CLAIMS if claim.id != "A3" or any(map(_is_amazon, runs))]


def unclipped(data: Tables) -> dict[str, str]:
    """Return what each run's unclipped scores show: where sensitivities are false, so that nothing is private."""
    found: dict[str, str] = {}
    private = [name for name, style in STYLES.items() if style.private]
    for run in _runs(data):
        errors = _errors(data, run, "unclipped")
        chosen = min((errors[name, SMALL[0]], name) for name in private)[1]
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
