"""The numbers that the captions state, read from the tables."""

import math
from collections.abc import Iterable, Mapping

from experiments.recommender import figures
from experiments.tables import Tables, unique, where

__all__ = ["error_numbers", "tilt_numbers", "unclipped_numbers"]


def _span(values: Iterable[float]) -> str:
    """Return the smallest and the largest of some multiples: "0.47 to 0.83"."""
    found = sorted(values)
    low, high = f"{found[0]:.2f}", f"{found[-1]:.2f}"
    return low if low == high else f"{low} to {high}"


def _share(count: int, of: int) -> str:
    return f"all {count}" if count == of else f"{count} of {of}"


def _stated(data: Tables) -> float:
    """Return the shown ε, or the next one of a coarser table."""
    return float(min(each for each in unique(data["errors"], "epsilon") if each >= figures.SHOWN_EPSILON))


def _multiples(data: Tables, mechanism: str, variant: str = "clipped") -> dict[str, float]:
    """Return a mechanism's error over a random pick's at the stated ε, for each run that has it."""
    found: dict[str, float] = {}
    for run in unique(data["errors"], "run"):
        epsilons, values, _ = figures.over_random(where(data["errors"], run=run, variant=variant), mechanism)
        if (at := epsilons == _stated(data)).any():
            found[run] = float(values[at][0])
    return found


def error_numbers(data: Tables) -> Mapping[str, str]:
    """Return in how many runs the ratio grows, and errors over a random pick's."""
    facts = [row for row in data["facts"].to_pylist() if row["name"] == "ratio_trend"]
    growing = sum(float(row["value"]) > 0 for row in facts)
    spans = {name: _span(_multiples(data, name).values()) for name in ("mgem", "rnm", "gem")}
    unclipped = _span(_multiples(data, "mgem", "unclipped").values())
    default = _multiples(data, "heterogeneous-rnm").values()
    epsilon = f"{_stated(data):g}"
    return {
        "epsilon": epsilon,
        "growing": _share(growing, len(facts)),
        "unclipped": unclipped,
        "constant": _constant(data),
        "default": f", heterogeneous noisy max’s {_span(default)}" if default else "",
        **spans,
    }


def _constant(data: Tables) -> str:
    """Explain the ratios of the run in which most items have equal percentiles, if there is one."""
    facts = {(row["run"], row["name"]): row["value"] for row in data["facts"].to_pylist()}
    shares = {run: float(value) for (run, name), value in facts.items() if name == "items with equal percentiles"}
    run = max(shares, key=shares.__getitem__, default="")
    if not run or shares[run] < 0.5:
        return ""
    ratio = math.exp(float(facts[run, "ratio_mean_ratio_where_positive"]))
    return (
        f" On {run} mGEM’s mean score is {ratio:,.0f} times GEM’s (a geometric mean, over users with positive "
        f"correlation): {shares[run]:.0%} of its items have equal percentiles and so the sensitivity 10⁻⁶. GEM "
        "prefers these items, and their clipped score is constant, mostly 0."
    )


def unclipped_numbers(data: Tables) -> Mapping[str, str]:
    """Return where GEM gains most from scores that are not clipped."""
    found, clipped = (_multiples(data, "gem", variant) for variant in ("unclipped", "clipped"))
    least = min(found, key=found.__getitem__)
    return {"lowest": f"{found[least]:.2f}", "where": least, "clipped": f"{clipped[least]:.2f}"}


def tilt_numbers(data: Tables) -> Mapping[str, str]:
    """Return errors over noisy max's, and where a strong tilt beats mGEM."""
    found: dict[str, list[float]] = {"tilted": [], "mgem": [], "tuned": []}
    for run in figures.runs_of(data):
        table, tuned = (where(data[name], run=run) for name in ("tilts", "tuned"))
        for name, family, tilt in (("tilted", "tilted-rnm", -8.0), ("mgem", "gem", -1.0)):
            places, values, chosen = figures.over_noisy_max(table, tuned, family)
            found[name].extend(values[places == tilt])
        found["tuned"].append(chosen)
    ahead = sum(strong < mild for strong, mild in zip(found["tilted"], found["mgem"], strict=True))
    return {"ahead": _share(ahead, len(found["mgem"])), **{name: _span(values) for name, values in found.items()}}
