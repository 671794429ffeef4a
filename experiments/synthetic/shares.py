"""Scenarios 1 to 3 again: the share of high scores varies at one ε."""

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

import dpselect as dps
from experiments import drawing
from experiments.arrays import FloatArray
from experiments.curves import number, span
from experiments.experiment import Effort, Experiment, Task
from experiments.ledger import Claim, Finding, judge
from experiments.mechanisms import BETA, COMPARED, DRAWN, GAMMA, STYLES, build
from experiments.scenarios import CANDIDATES, Scenario, titled
from experiments.tables import Tables, among, where
from experiments.trials import error_tasks

__all__ = ["SHARES"]

EPSILON = 2.0
CURVES = (*DRAWN, "combined-gem")
SCENARIOS = titled(1, 2, 3)
POSITIVE, NEGATIVE, NONE = SCENARIOS


def _plan(effort: Effort) -> list[Task]:
    return error_tasks(SCENARIOS, COMPARED, effort, _errors)


def _errors(make: Callable[..., Scenario], mechanism: str, effort: Effort) -> pa.Table:
    counts = np.unique(np.linspace(2, CANDIDATES - 2, min(effort.resolution, 49)).round().astype(int))
    # Even numbers, so that the halves of scenario 3 are halves.
    counts = np.unique(np.r_[2, counts - counts % 2, CANDIDATES - 2])
    scenarios = [make(int(count)) for count in counts]
    return pa.table(
        {
            "scenario": [scenario.title for scenario in scenarios],
            "mechanism": [mechanism] * len(scenarios),
            "share": [count / CANDIDATES for count in counts],
            "mean_squared_error": dps.expected_error(
                build(mechanism, EPSILON),
                np.concatenate([scenario.scores for scenario in scenarios]),
                np.stack([scenario.sensitivities for scenario in scenarios]),
            ),
        }
    )


def _draw(data: Tables) -> Figure:
    figure, panels = drawing.grid(rows=1, columns=len(SCENARIOS), heights=(3,))
    for title, panel in zip(SCENARIOS, panels[0], strict=True):
        panel.set_title(title)
        table = among(where(data["errors"], scenario=title), mechanism=CURVES)
        drawing.errors(panel, table, along="share", limits=(4e-3, 6))
        panel.set_xlabel("share of high scores")
    panels[0, 0].set_ylabel(f"mean squared error at ε = {EPSILON:g}")
    drawing.legend(figure, CURVES)
    return figure


def _curve(data: Tables, scenario: str, mechanism: str, column: str = "mean_squared_error") -> FloatArray:
    return np.asarray(where(data["errors"], scenario=scenario, mechanism=mechanism)[column].to_numpy())


def _percentages(masks: Mapping[str, np.ndarray[tuple[int], np.dtype[np.bool_]]]) -> str:
    return ", ".join(f"{STYLES[name].label} {mask.mean():.0%}" for name, mask in masks.items())


def _margins(shares: FloatArray, ratios: Mapping[str, FloatArray]) -> str:
    """Say how errors compare with a random pick's, and at which shares they are larger."""
    return "; ".join(
        f"{STYLES[name].label} {number(ratio.min())} to {number(ratio.max())} times, above 1 "
        + ("at all shares" if (ratio > 1).all() else span(shares, ratio > 1).replace("ε", "share"))
        for name, ratio in ratios.items()
    )


def _check(data: Tables) -> Finding:
    shares = _curve(data, POSITIVE, "rnm", "share")
    rivals = np.minimum.reduce([_curve(data, POSITIVE, name) for name in ("rnm", "gem", "krr", "uniform")])
    ahead = {name: (_curve(data, POSITIVE, name) < rivals) for name in ("rnmh", "mgem", "rs")}
    gap = _curve(data, POSITIVE, "rnm") - _curve(data, POSITIVE, "mgem")
    others = ("rnmh", "mgem", "rs", "rs-improved")
    over_random = {name: _curve(data, NEGATIVE, name) / _curve(data, NEGATIVE, "uniform") for name in others}
    gem_ahead = _curve(data, NEGATIVE, "gem") < _curve(data, NEGATIVE, "rnm")
    heterogeneous = np.minimum.reduce([_curve(data, NONE, name) for name in ("gem", "mgem", "rs", "rs-improved")])
    behind = heterogeneous / _curve(data, NONE, "rnm")
    middle = gap[(shares > 0.2) & (shares < 0.8)].min()
    extremes = "positive: the gap is smallest at both extremes"
    random = "negative: naive noisy max, mGEM and both RSᵧ are worse than random at all shares"
    better = [STYLES[name].label for name, ratio in over_random.items() if not (ratio > 1).all()]
    return judge(
        {
            "positive: naive noisy max, mGEM and RSᵧ are ahead for most shares": all(
                m.mean() > 0.5 for m in ahead.values()
            ),
            extremes: bool(max(gap[0], gap[-1]) < middle),
            "negative: GEM is ahead of RNM at all shares": bool(gem_ahead.all()),
            random: not better,
            "none: no heterogeneous mechanism is ahead of RNM at any share": bool((behind >= 1 - 1e-9).all()),
        },
        f"Positive: the mechanisms are ahead of RNM, GEM, kRR and random at these percentages of the shares: "
        f"{_percentages(ahead)}. RNM’s error minus mGEM’s is {gap[0]:.2f} at share {shares[0]:g}, {gap.max():.2f} "
        f"at {shares[gap.argmax()]:g} and {gap[-1]:.2f} at {shares[-1]:g}. Negative: GEM is ahead of RNM at "
        f"{gem_ahead.mean():.0%} of the shares; the errors of the others, divided by a random pick’s: "
        f"{_margins(shares, over_random)}. None: the best of GEM, mGEM and both RSᵧ has {number(behind.min())} to "
        f"{number(behind.max())} times RNM’s error.",
        "The paper’s own caption says that the gap is largest with few high scores.",
        instead={
            extremes: "positive: the gap is smallest with many high scores, but large with few",
            random: f"negative: {' and '.join(better)} {'is' if len(better) == 1 else 'are'} better than random at "
            "some shares",
        },
    )


SHARES = Experiment(
    name="share-of-high-scores",
    title="Scenarios 1 to 3 with other shares of high scores",
    caption=(
        "Of the private mechanisms, mGEM has the lowest error in scenario 1 and GEM in scenario 2, at every share "
        "of high scores; in scenario 3 it is heterogeneous noisy max from a share of 4 % on. The order of the "
        "others changes: in scenarios 1 and 2 combined GEM is second up to a share of 20 %, and worse than a "
        "random pick from 88 % on."
    ),
    description=(
        "Three panels, one for each scenario: mean squared error against the share of high scores. All curves "
        "fall. mGEM’s is lowest in scenario 1 and GEM’s in scenario 2; combined GEM’s crosses most others there."
    ),
    notes={
        "candidates": "k = 100; 2 to 98 of them of score +1, the others −1; sensitivities as in scenarios 1 to 3",
        "mechanisms": f"ε = {EPSILON:g}, β = {BETA}, γ = {GAMMA}",
        "error": "computed from exact probabilities",
        "not drawn": "both improved RSᵧ, which are in the table",
    },
    plan=_plan,
    draw=_draw,
    claims=[
        Claim(
            id="S11",
            text=(
                "Varying the share of high scores in scenarios 1–3 at ε = 2: positive → naive noisy max, mGEM, "
                "RSᵧ ahead for most shares, gap smallest at the extremes; negative → only GEM ahead, the others "
                "worse than random; none → RNM suffices."
            ),
            check=_check,
        )
    ],
)
