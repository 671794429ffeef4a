"""The report's first figure: one pick, and a list of ten, by top share, the default and the paper's best.

It reads whatever tables there are under the protocol that is private from end to end.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments import drawing
from experiments.arrays import FloatArray
from experiments.experiment import Effort, Experiment, Task
from experiments.mechanisms import STYLES, Style
from experiments.recommender import private_section as private
from experiments.tables import Tables, unique, where

__all__ = ["NAME", "draw", "means", "numbers", "section"]

NAME = "overview"
PICKS: Mapping[str, Style] = {
    "top-share-fitted": replace(private.PICK_STYLES["top-share-fitted"], label="top share, fitted"),
    **{name: private.PICK_STYLES[name] for name in ("top-share", "heterogeneous-rnm", private.BEST)},
}
LISTS: Mapping[str, Style] = {name: private.LIST_STYLES[name] for name in ("public-lists", "peeling", "popular")}
MOST = 12.0
"""The largest ε that is drawn."""
STATED, STATED_LIST = 4.0, 8.0
"""The ε whose numbers the caption states."""
BELOW: Mapping[str, Any] = {"bbox_to_anchor": (0.5, -0.2), "handlelength": 2.6, "columnspacing": 1, "fontsize": 9}
Curve = tuple[FloatArray, FloatArray]


def _picks(table: pa.Table, name: str) -> Curve:
    return private.over_random(table, name)


def _lists(table: pa.Table, name: str) -> Curve:
    curve = where(table, mechanism=name)
    return curve["epsilon"].to_numpy(), curve["score"].to_numpy()


def _curves(table: pa.Table, name: str, read: Callable[[pa.Table, str], Curve]) -> list[Curve]:
    """Return a mechanism's curve for each run that has it."""
    found = [read(where(table, run=run), name) for run in unique(table, "run")]
    shown = [(epsilons >= 1) & (epsilons <= MOST) for epsilons, _ in found]
    return [(epsilons[own], values[own]) for (epsilons, values), own in zip(found, shown, strict=True) if own.any()]


def means(curves: Sequence[Curve]) -> dict[float, float]:
    """Return the mean over runs at each ε that all of them have.

    Example:
        >>> means([(np.array([1.0, 2.0]), np.array([0.5, 0.3])), (np.array([2.0]), np.array([0.1]))])
        {2.0: 0.2}
    """
    found = [dict(zip(epsilons.tolist(), values.tolist(), strict=True)) for epsilons, values in curves]
    return {at: float(np.mean([own[at] for own in found])) for at in found[0] if all(at in own for own in found)}


def draw(data: Tables) -> Figure:
    """Draw errors of one pick on the left and scores of lists on the right: means, and faintly each run."""
    figure, (panels,) = drawing.grid(rows=1, columns=2, heights=(2.6,), width=4.9, aligned=False)
    for panel, table, styles, read in (
        (panels[0], data["private"], PICKS, _picks),
        (panels[1], data["private_lists"], LISTS, _lists),
    ):
        for name, style in styles.items():
            _line(panel, _curves(table, name, read), style)
        panel.set(ylim=(0, 1.03), xticks=range(0, int(MOST) + 1, 2))
        # Below the panel, where no curve is covered.
        panel.legend(
            handles=[drawing.handle(style) for style in styles.values()], loc="upper center", ncols=2, **BELOW
        )
    panels[0].axhline(1, color=STYLES["uniform"].color, linestyle=":")
    panels[0].set(title="One pick: error (lower is better)", xlabel="privacy budget ε")
    panels[0].set_ylabel("error over a random pick’s")
    panels[1].set(title="A list of ten: score (higher is better)", xlabel="privacy budget ε of the whole list")
    panels[1].set_ylabel("score over the best list’s")
    return figure


def _line(panel: Axes, curves: Sequence[Curve], style: Style) -> None:
    for epsilons, values in curves:
        panel.plot(epsilons, values, color=style.color, alpha=0.25, linewidth=1)
    mean = means(curves)
    panel.plot(list(mean), list(mean.values()), **(drawing.line(style) | {"linewidth": 2.2}))


def numbers(data: Tables) -> Mapping[str, str]:
    """Return the runs, and the means that the caption states."""

    def stated(mean: Mapping[float, float], wanted: float) -> tuple[float, float]:
        at = min(mean, key=lambda epsilon: abs(epsilon - wanted))
        return at, mean[at]

    picks = {name: stated(means(_curves(data["private"], name, _picks)), STATED) for name in PICKS}
    lists = {name: stated(means(_curves(data["private_lists"], name, _lists)), STATED_LIST) for name in LISTS}
    # "MovieLens-1M, EASE" has a comma of its own.
    runs = [re.sub(", (.*)", r" (\1)", run) for run in unique(data["private"], "run")]
    return {
        "runs": " and ".join([", ".join(runs[:-1]), runs[-1]] if len(runs) > 1 else runs),
        "at": f"{picks['top-share'][0]:g}",
        "list_at": f"{lists['peeling'][0]:g}",
        "fitted": f"{picks['top-share-fitted'][1]:.2f}",
        "rule": f"{picks['top-share'][1]:.2f}",
        "default": f"{picks['heterogeneous-rnm'][1]:.2f}",
        "paper": f"{picks[private.BEST][1]:.2f}",
        "lists": f"{lists['public-lists'][1]:.2f}",
        "peeling": f"{lists['peeling'][1]:.2f}",
        "popular": f"{lists['popular'][1]:.2f}",
    }


def section(plan: Callable[[Effort], Sequence[Task]]) -> Experiment:
    """Return the figure, whose tables the plan reads."""
    return Experiment(
        name=NAME,
        title="Real data: top share, the default and the paper’s best",
        caption="Each row of scores is about one person, and nothing private is used without paying for it. Thick "
        "lines are means over {runs}; thin lines are single runs. Left, at ε = {at}: the error of top share is "
        "{fitted} of a random pick’s with weights fitted on public users, and {rule} by its rule. The default, "
        "heterogeneous noisy max, has {default}, and the best of the paper’s mechanisms {paper}. Right, at a "
        "total of ε = {list_at}: one pick by top share among public lists has {lists} of the best list’s score. "
        "Ten picks by the best of RNM, kRR and the default have {peeling}, and a list that uses no private data "
        "{popular}.",
        description="Two panels over the privacy budget from 1 to 12. Left: the error of one pick over a random "
        "pick’s; top share is lowest, and the default and the best of the paper’s are close to each other. Right: "
        "the score of a list of ten; one pick among public lists is far above ten picks.",
        notes={},
        plan=plan,
        draw=draw,
        numbers=numbers,
    )
