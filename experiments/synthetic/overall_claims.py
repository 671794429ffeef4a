"""Claims G1 to G5 and G8, checked on the errors in all eight scenarios; G4 on the kept runs on real data too."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from experiments.arrays import BoolArray, FloatArray
from experiments.curves import Curves, number, span
from experiments.ledger import Claim, Finding, judge
from experiments.mechanisms import GAMMA, STYLES
from experiments.recommender.evidence import judged
from experiments.scenarios import TITLES
from experiments.tables import Tables, unique, where

__all__ = ["CLAIMS", "GAMMAS", "HETEROGENEOUS", "NEW"]

GAMMAS = (GAMMA, 0.02, 0.005, 0.001)
"""The paper's γ on synthetic data and smaller ones; its smallest on real data is 0.0008."""
HETEROGENEOUS = ("rs", "rs-improved", "gem", "mgem", "combined-gem")
"""The paper's mechanisms that use the differences between sensitivities."""
NEW = "heterogeneous-rnm"
"""Noise that fits each candidate, and private."""
POSITIVE = (TITLES[1], TITLES[4])
"""The scenarios in which scores and sensitivities correlate positively."""
TIE = 1e-9
SLIGHTLY = 1.25
"""An error up to this many times another's is slightly worse."""
ALIKE = 0.8
"""Two mechanisms behave alike if they agree in at least this share of the cases."""


def _name(mechanism: str) -> str:
    return STYLES[mechanism].label


def _short(title: str) -> str:
    return title.partition(":")[0]


def _ratios(curves: Curves, mechanism: str, other: str) -> FloatArray:
    """Return one mechanism's error divided by another's: (scenarios, ε)."""
    # Where both errors are negligible, neither is ahead.
    return np.stack(
        [
            np.where(
                curves.below(title, mechanism, other) & curves.below(title, other, mechanism),
                1.0,
                curves.of(title, mechanism) / curves.of(title, other),
            )
            for title in curves.scenarios
        ]
    )


def _extreme(curves: Curves, ratios: FloatArray) -> str:
    """Write the largest ratio, and where it is."""
    scenario, place = np.unravel_index(int(ratios.argmax()), ratios.shape)
    where_ = f"{_short(curves.scenarios[int(scenario)]).lower()}, ε = {curves.epsilons[int(place)]:.3g}"
    return f"{number(float(ratios.max()))} ({where_})"


def _of_new(curves: Curves) -> str:
    """Say how heterogeneous noisy max compares with RNM, if the table has it."""
    if NEW not in unique(curves.table, "mechanism"):
        return ""
    pairs = [(curves.of(title, NEW), curves.of(title, "rnm")) for title in curves.scenarios]
    # An error may underflow to 0.
    ratios = np.concatenate([new[base > 0] / base[base > 0] for new, base in pairs])
    ahead = (
        "has a lower error than RNM in every scenario at every ε"
        if ratios.max() < 1
        else f"has a lower error than RNM in {(ratios < 1).mean():.1%} of the cases"
    )
    return (
        f"Beyond the paper, heterogeneous noisy max {ahead}: {number(float(ratios.min()))} to "
        f"{ratios.max():.4f} times RNM’s. That is no theorem."
    )


def _check_some_mechanism(data: Tables) -> Finding:
    curves = Curves(data["errors"])
    ahead = {
        title: {name: curves.of(title, name) < curves.of(title, "rnm") * (1 - TIE) for name in HETEROGENEOUS}
        for title in curves.scenarios
    }
    somebody: dict[str, BoolArray] = {
        title: np.logical_or.reduce(list(masks.values())) for title, masks in ahead.items()
    }
    parts = {f"some mechanism beats RNM in {_short(title).lower()}": m.any() for title, m in somebody.items()}
    said = "; ".join(
        f"{_short(title).lower()} {span(curves.epsilons, mask)}"
        + (
            f" ({', '.join(_name(name) for name, each in ahead[title].items() if each.any())})"
            if mask.any()
            else ""
        )
        for title, mask in somebody.items()
    )
    return judge(
        {part: bool(holds) for part, holds in parts.items()},
        f"Some heterogeneous mechanism of the paper has a lower error than RNM in {said}.",
        "A scenario counts if there is any such ε. " + _of_new(curves),
        instead={part: f"no mechanism beats RNM in {part.rpartition(' in ')[2]} at any ε" for part in parts},
    )


def _check_nobody_everywhere(data: Tables) -> Finding:
    curves = Curves(data["errors"])
    largest = {name: _ratios(curves, name, "rnm") for name in HETEROGENEOUS}
    return judge(
        {f"{_name(name)} is worse than RNM somewhere": bool(ratios.max() > 1) for name, ratios in largest.items()},
        "The largest error, divided by RNM’s, for ε ≤ 10: "
        + "; ".join(f"{_name(name)} {_extreme(curves, _small(curves, ratios))}" for name, ratios in largest.items())
        + ".",
        _of_new(curves),
        instead={f"{_name(name)} is worse than RNM somewhere": f"{_name(name)} is never worse" for name in largest},
    )


def _small(curves: Curves, ratios: FloatArray) -> FloatArray:
    """Return the ratios for ε up to 10. Beyond, all errors are tiny and ratios are not."""
    return ratios[:, curves.epsilons <= 10.001]


def _check_worse_than_random(data: Tables) -> Finding:
    curves = Curves(data["errors"])
    ratios = {name: _ratios(curves, name, "uniform") for name in ("rs", "gem", "mgem")}
    return judge(
        {f"{_name(name)} can be worse than a random pick": bool(r.max() > 1) for name, r in ratios.items()},
        "The largest error, divided by that of a random pick: "
        + "; ".join(f"{_name(name)} {_extreme(curves, found)}" for name, found in ratios.items())
        + ".",
        instead={f"{_name(name)} can be worse than a random pick": f"{_name(name)} never is" for name in ratios},
    )


def _wins(table: pa.Table, titles: list[str]) -> FloatArray:
    """Return in which share of these scenarios mGEM has a lower error, for each ε."""
    rows = [where(table, scenario=title) for title in titles]
    return np.asarray(np.mean([r["mgem"].to_numpy() < r["mean_squared_error"].to_numpy() for r in rows], axis=0))


def _on_real_data(table: pa.Table) -> tuple[bool, str]:
    """Return whether mGEM is ahead of random stopping on the paper's datasets, and where it is on all of them."""
    if not table.num_rows:
        return True, "There are no runs on real data"
    rows = where(table, variant="clipped").to_pylist()
    errors = {(row["run"], row["mechanism"], row["epsilon"]): row["mean_squared_error"] for row in rows}
    ahead = {
        (run, epsilon): value < errors[run, "rs", epsilon]
        for (run, name, epsilon), value in errors.items()
        if name == "mgem"
    }
    ratios = [errors[run, "mgem", epsilon] / errors[run, "rs", epsilon] for run, epsilon in ahead]
    counted = judged(unique(table, "run"))
    said = (
        f"On real data (clipped, γ = 0.008) mGEM has the lower error in {sum(ahead.values())} of {len(ahead)} "
        f"cells of run and ε, {number(min(ratios))} to {number(max(ratios))} times RSᵧ’s"
    )
    return all(holds for (run, _), holds in ahead.items() if run in counted), said


def _check_modified_gem(data: Tables) -> Finding:
    stopping = data["stopping"]
    real, said = _on_real_data(data["data"])
    titles, positive = unique(stopping, "scenario"), [t for t in unique(stopping, "scenario") if t in POSITIVE]
    epsilons = np.asarray(where(stopping, scenario=titles[0], gamma=GAMMA)["epsilon"].to_numpy())
    usual = (epsilons >= 0.0999) & (epsilons <= 1.001)
    one = int(np.argmin(np.abs(epsilons - 1)))
    gammas = sorted(unique(stopping, "gamma"), reverse=True)
    everywhere, there = (
        {gamma: _wins(where(stopping, gamma=gamma), chosen) for gamma in gammas} for chosen in (titles, positive)
    )
    smallest = min(gammas)
    most = f"mGEM has the lower error in most scenarios at γ = {GAMMA:g}"
    small = f"with positive correlation mGEM has the lower error at γ = {smallest:g} too"
    first = {
        gamma: where(stopping, scenario=titles[0], gamma=gamma)["mean_squared_error"][one].as_py()
        for gamma in gammas
    }
    own = where(stopping, scenario=titles[0], gamma=GAMMA)["mgem"][one].as_py()
    counts = ", ".join(f"{everywhere[gamma][one] * len(titles):.0f} at γ = {gamma:g}" for gamma in gammas)
    return judge(
        {
            f"with positive correlation mGEM has the lower error at γ = {GAMMA:g}": bool(
                (there[GAMMA][usual] == 1).all()
            ),
            most: bool((everywhere[GAMMA][usual] > 0.5).all()),
            small: bool((there[smallest][usual] == 1).all()),
            "on real data mGEM has the lower error": real,
        },
        f"{_short(titles[0])} at ε = 1: mGEM {number(own)}; RSᵧ "
        + ", ".join(f"{number(first[gamma])} at γ = {gamma:g}" for gamma in gammas)
        + f". mGEM has the lower error in this many of {len(titles)} scenarios at ε = 1: {counts}. {said}.",
        "Judged for ε from 0.1 to 1, where the mechanisms differ most. Positive correlation: scenarios 1 and 4. A "
        "smaller γ makes RSᵧ gain more there, and lose more elsewhere.",
        instead={
            most: f"at γ = {GAMMA:g} mGEM has the lower error in {everywhere[GAMMA][one] * len(titles):.0f} of "
            f"{len(titles)} scenarios at ε = 1",
            small: f"at γ = {smallest:g} RSᵧ has the lower error with positive correlation",
        },
    )


def _check_unknown_correlation(data: Tables) -> Finding:
    curves = Curves(data["errors"])
    others = [name for name in ("rnm", "krr", "uniform", NEW) if name in curves.mechanisms]
    ratios = {name: _ratios(curves, "combined-gem", name) for name in others}
    means: dict[str, FloatArray] = {name: np.exp(np.log(found).mean(axis=0)) for name, found in ratios.items()}
    usual = (curves.epsilons >= 0.0999) & (curves.epsilons <= 10.001)
    best = np.logical_and.reduce([found < 1 for found in ratios.values()])
    shown = [title for title in curves.scenarios if best[curves.scenarios.index(title)].any()]
    average = {name: f"on average over all scenarios combined GEM is better than {_name(name)}" for name in others}
    low = {name: float(mean[usual].min()) for name, mean in means.items()}
    rivals = ", ".join(_name(name) for name in others)
    return judge(
        {
            f"in scenario 7 combined GEM is better than {rivals} for some ε": TITLES[7] in shown,
            **{average[name]: low[name] < 1 for name in others},
        },
        "Combined GEM’s error divided by that of others, as a geometric mean over the eight scenarios, at ε = "
        "0.1, 1 and 10: "
        + "; ".join(
            f"{_name(name)} {', '.join(number(_at(curves, mean, e)) for e in (0.1, 1.0, 10.0))}"
            for name, mean in means.items()
        )
        + f". The largest, divided by RNM’s, for ε ≤ 10: {_extreme(curves, _small(curves, ratios['rnm']))}. "
        f"Combined GEM is better than {rivals} in "
        + (
            "; ".join(
                f"{_short(title).lower()} {span(curves.epsilons, best[curves.scenarios.index(title)])}"
                for title in shown
            )
            or "no scenario"
        )
        + ".",
        "“On average” means the geometric mean at the best ε from 0.1 to 10. The paper itself also says that RNM "
        "is the safer option if the correlation is weak or unknown.",
        instead={
            average[name]: f"on average over all scenarios {_name(name)} is better at every ε from 0.1 to 10"
            for name in others
        },
    )


def _check_like_naive(data: Tables) -> Finding:
    curves = Curves(data["errors"])
    small, one = curves.epsilons <= 1.001, int(np.argmin(np.abs(curves.epsilons - 1)))
    ratios = _ratios(curves, "rs", "rnmh")
    sides = [_ratios(curves, name, "rnm")[:, small] < 1 for name in ("rs", "rnmh")]
    same = float((sides[0] == sides[1]).mean())
    at_one = {_number(title): float(ratios[place, one]) for place, title in enumerate(curves.scenarios)}
    worse = {place: ratio for place, ratio in at_one.items() if ratio > SLIGHTLY}
    better = {place: ratio for place, ratio in at_one.items() if ratio < 1}
    # Random stopping of other γ has fewer trials, so its error is scaled by that of the usual γ on the same trials.
    least = min(GAMMAS)
    draws = [
        at_one[_number(title)]
        * _nearest(where(data["stopping"], scenario=title, gamma=least), 1.0)
        / _nearest(where(data["stopping"], scenario=title, gamma=GAMMA), 1.0)
        for title in curves.scenarios
    ]
    follows = f"RSᵧ is on the same side of RNM as naive noisy max in at least {ALIKE:.0%} of the cells with ε ≤ 1"
    slightly = f"at γ = {GAMMA:g} its error is 1 to {SLIGHTLY:g} times naive noisy max’s at ε = 1"
    return judge(
        {
            follows: same >= ALIKE,
            slightly: not worse and not better,
            f"at γ = {least:g} its error is 1 to {SLIGHTLY:g} times naive noisy max’s at ε = 1": all(
                1 <= ratio <= SLIGHTLY for ratio in draws
            ),
        },
        f"For ε ≤ 1, RSᵧ (γ = {GAMMA:g}) is on the same side of RNM as naive noisy max in {same:.0%} of the "
        "cells of scenario "
        "and ε. Its error divided by naive noisy max’s at ε = 1 in scenarios 1 to 8: "
        + ", ".join(number(ratio) for ratio in at_one.values())
        + f"; at γ = {least:g}: "
        + ", ".join(number(ratio) for ratio in draws)
        + f". At ε = 10 it is up to {number(float(ratios[:, np.argmin(np.abs(curves.epsilons - 10))].max()))}.",
        f"“Slightly worse” is read as at most {SLIGHTLY:g} times. The paper says it of small γ. With few draws "
        "RSᵧ "
        "is between naive noisy max and a random pick: worse where naive noisy max is good, better where naive "
        "noisy max is bad.",
        instead={
            slightly: f"at the paper’s γ = {GAMMA:g} and ε = 1 "
            + "; ".join(
                f"it is {kind} in {_listed(found)} ({number(min(found.values()))} to "
                f"{number(max(found.values()))} "
                "times)"
                for kind, found in (("much worse", worse), ("better", better))
                if found
            ),
            follows: f"it is on the same side of RNM in {same:.0%} of the cells with ε ≤ 1",
        },
    )


def _number(title: str) -> int:
    """Return a scenario's number."""
    return next(place for place, known in TITLES.items() if known == title)


def _listed(places: Iterable[int]) -> str:
    """Write scenarios: ``scenarios 1 and 4``."""
    *some, last = map(str, places)
    return f"scenarios {', '.join(some)} and {last}" if some else f"scenario {last}"


def _nearest(table: pa.Table, epsilon: float) -> float:
    """Return random stopping's error at the nearest ε of the table."""
    epsilons = table["epsilon"].to_numpy()
    return float(table["mean_squared_error"].to_numpy()[np.argmin(np.abs(epsilons - epsilon))])


def _at(curves: Curves, values: FloatArray, epsilon: float) -> float:
    return float(values[np.argmin(np.abs(curves.epsilons - epsilon))])


CLAIMS = (
    Claim(
        id="G1",
        text="In all settings studied some heterogeneous mechanism beats RNM.",
        check=_check_some_mechanism,
        needs_full_run=True,
    ),
    Claim(
        id="G2",
        text="None of the heterogeneous mechanisms beats RNM everywhere.",
        check=_check_nobody_everywhere,
    ),
    Claim(
        id="G3",
        text="Each of RSᵧ, GEM and mGEM can be worse than a random pick.",
        check=_check_worse_than_random,
    ),
    Claim(
        id="G4",
        text="mGEM typically outperforms RSᵧ.",
        check=_check_modified_gem,
        needs_full_run=True,
    ),
    Claim(
        id="G5",
        text="Combined GEM is the choice when the correlation is unknown.",
        check=_check_unknown_correlation,
        needs_full_run=True,
    ),
    Claim(
        id="G8",
        text="RSᵧ behaves like naive noisy max, only slightly worse.",
        check=_check_like_naive,
        needs_full_run=True,
    ),
)
