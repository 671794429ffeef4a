"""The growth of cost with the number of candidates and of rows."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from tqdm import tqdm

import dpselect as dps

CANDIDATES = [10**e for e in range(1, 8)]
ROWS = [10**e for e in range(7)]
MECHANISMS = {
    "noisy max": dps.NoisyMax(epsilon=1.0),
    "GEM": dps.GEM(epsilon=1.0),
    "random stopping": dps.RandomStopping(epsilon=1.0, gamma=0.05),
}


class Point(NamedTuple):
    """One measurement."""

    axis: str
    mechanism: str
    size: int
    seconds: float


def measure_growth() -> list[Point]:
    """Time one row with a growing number of candidates, and a growing number of rows of 100 candidates."""
    generator = np.random.default_rng(0)
    points = []
    for size in tqdm(CANDIDATES, desc="candidates", unit="size"):
        scores, sensitivities = generator.normal(size=size), generator.uniform(0.5, 2, size=size)
        for name, mechanism in MECHANISMS.items():
            seconds = _best(lambda m=mechanism, q=scores, d=sensitivities: m.select(q, d))
            points.append(Point("candidates", name, size, seconds))
    for size in tqdm(ROWS, desc="rows", unit="size"):
        scores, sensitivities = generator.normal(size=(size, 100)), generator.uniform(0.5, 2, size=100)
        for name, mechanism in MECHANISMS.items():
            seconds = _best(lambda m=mechanism, q=scores, d=sensitivities: m.select(q, d))
            points.append(Point("rows", name, size, seconds))
    return points


def draw_growth(points: list[Point], path: Path) -> None:
    """Draw seconds against size, on logarithmic axes, where proportional growth is a straight line."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for panel, axis in zip(panels, ("candidates", "rows"), strict=True):
        for name in MECHANISMS:
            curve = [p for p in points if p.axis == axis and p.mechanism == name]
            panel.plot([p.size for p in curve], [p.seconds for p in curve], marker="o", label=name)
        panel.set(xscale="log", yscale="log", xlabel=axis)
        panel.grid(visible=True, color="#e6e6e6")
    panels[0].set_ylabel("seconds")
    panels[0].set_title("one row")
    panels[1].set_title("100 candidates a row")
    panels[0].legend(frameon=False)
    figure.savefig(path, dpi=130)


def _best(run: Callable[[], object]) -> float:
    run()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)
