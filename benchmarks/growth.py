"""How the cost grows with the number of candidates and of rows."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from tqdm import tqdm

import dpselect as dps
from benchmarks.timing import Contestant, race

ROUNDS = 5
SIZES = {"candidates": [10**e for e in range(1, 8)], "rows": [10**e for e in range(7)]}
"""One row of more and more candidates, and more and more rows of 100 candidates."""
MECHANISMS = {name: dps.MECHANISMS[name](epsilon=1.0) for name in ("rnm", "gem", "rs")}


class Point(NamedTuple):
    """One measurement."""

    axis: str
    mechanism: str
    size: int
    seconds: float


def measure_growth() -> list[Point]:
    """Time every mechanism at every size."""
    generator = np.random.default_rng(0)
    points = []
    for axis, sizes in SIZES.items():
        for size in tqdm(sizes, desc=axis, unit="size"):
            shape = (size,) if axis == "candidates" else (size, 100)
            scores, sensitivities = generator.normal(size=shape), generator.uniform(0.5, 2, size=shape[-1])
            times = race(
                {
                    name: Contestant(lambda m=mechanism, q=scores, d=sensitivities: m.select(q, d))
                    for name, mechanism in MECHANISMS.items()
                },
                ROUNDS,
            )
            points += [Point(axis, name, size, seconds) for name, seconds in times.items()]
    return points


def draw_growth(points: list[Point], path: Path) -> None:
    """Draw seconds against size on logarithmic axes, where proportional growth is a straight line."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for panel, axis in zip(panels, SIZES, strict=True):
        for name in MECHANISMS:
            curve = [p for p in points if p.axis == axis and p.mechanism == name]
            record = dps.MECHANISMS[name]
            panel.plot(
                [p.size for p in curve],
                [p.seconds for p in curve],
                marker="o",
                label=record.label,
                color=record.color,
            )
        panel.set(xscale="log", yscale="log", xlabel=axis)
        panel.grid(visible=True, color="#e6e6e6")
    panels[0].set_ylabel("seconds")
    panels[0].set_title("one row")
    panels[1].set_title("100 candidates in each row")
    panels[0].legend(frameon=False)
    figure.savefig(path, dpi=130)
