"""The order in which GEM and mGEM rank candidates, q − tΔ and q + tΔ, under either correlation."""

from functools import partial

import numpy as np
import pyarrow as pa
from matplotlib import rcParams
from matplotlib.figure import Figure

from experiments import drawing
from experiments.experiment import Effort, Experiment, Task
from experiments.mechanisms import BETA, STYLES
from experiments.tables import Tables, where

__all__ = ["SKETCHES"]

CANDIDATES = 30
EPSILON = 4.0
SLOPES = {"Positive correlation": (0.05, 0.55), "Negative correlation": (0.55, 0.05)}
"""The sensitivities of the worst and of the best candidate."""


def _compute(title: str) -> pa.Table:
    scores = np.linspace(2.0, 5.0, CANDIDATES)
    sensitivities = np.linspace(*SLOPES[title], CANDIDATES)
    t = 2 * np.log(CANDIDATES / BETA) / EPSILON
    return pa.table(
        {
            "panel": [title] * CANDIDATES,
            "candidate": range(1, CANDIDATES + 1),
            "score": scores,
            "sensitivity": sensitivities,
            "gem_order": scores - t * sensitivities,
            "mgem_order": scores + t * sensitivities,
        }
    )


def _plan(_effort: Effort) -> list[Task]:
    return [Task(label=title, table="orders", compute=partial(_compute, title)) for title in SLOPES]


def _draw(data: Tables) -> Figure:
    figure, panels = drawing.grid(rows=1, columns=2, heights=(2.8,), width=4.2)
    # The arrows stand where there is room for their labels.
    for title, panel, middle in zip(SLOPES, panels[0], (2 * CANDIDATES // 3, CANDIDATES // 3), strict=True):
        table = where(data["orders"], panel=title)
        index, scores, lower, upper = (
            table[name].to_numpy() for name in ("candidate", "score", "gem_order", "mgem_order")
        )
        panel.plot(index, upper, "^", color=STYLES["mgem"].color, markersize=4, label="q + tΔ: mGEM")
        panel.plot(index, scores, ".", color=STYLES["rnm"].color, label="q: RNM")
        panel.plot(index, lower, "v", color=STYLES["gem"].color, markersize=4, label="q − tΔ: GEM")
        for end in (upper[middle], lower[middle]):
            arrow = {"arrowstyle": "<->", "color": rcParams["axes.edgecolor"], "shrinkA": 3, "shrinkB": 3}
            panel.annotate("", (index[middle], end), (index[middle], scores[middle]), arrowprops=arrow)
            panel.text(index[middle] + 0.6, (end + scores[middle]) / 2, "tΔ", va="center")
        panel.set(title=title, xlabel="candidate, worst to best")
    panels[0, 0].set_ylabel("score")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


SKETCHES = Experiment(
    name="orders",
    title="How GEM and mGEM use a correlation",
    caption=(
        "The mechanisms rank candidates by q + tΔ (mGEM), q (RNM) or q − tΔ (GEM). A steeper line puts the good "
        "candidates further ahead: mGEM’s is steepest under positive correlation, GEM’s under negative."
    ),
    description=(
        "Two panels. Under positive correlation the line q + tΔ rises most steeply and q − tΔ least; under "
        "negative correlation the order is reversed."
    ),
    notes={
        "candidates": f"k = {CANDIDATES}, scores from 2 to 5; sensitivities from 0.05 to 0.55, rising or falling",
        "mechanisms": (
            f"ε = {EPSILON:g}, β = {BETA}, so t = 2 log(k/β)/ε = {2 * np.log(CANDIDATES / BETA) / EPSILON:.2f}"
        ),
        "numbers": "computed; the paper has a sketch",
    },
    plan=_plan,
    draw=_draw,
)
