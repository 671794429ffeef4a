"""The pictures of the beginners' guide: ``python -m experiments.guide`` draws them into docs/images.

All numbers are made up for the guide, and all probabilities in the pictures are exact.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import dpselect as dps
from experiments.arrays import FloatArray
from experiments.drawing import OTHER, line, look, plain_numbers
from experiments.files import replacing
from experiments.mechanisms import STYLES

__all__ = ["PICTURES", "RATERS", "SCORES", "draw_all", "main", "mistakes"]

IMAGES = Path(__file__).parent.parent / "docs" / "images"
STARS = 5.0
"""Ratings lie between 0 and this number."""
SCORES: Mapping[str, float] = MappingProxyType({"tea": 3.1, "coffee": 3.6, "cocoa": 4.4, "mate": 2.9, "rum": 3.8})
"""The mean rating of each drink."""
RATERS: Mapping[str, int] = MappingProxyType({"tea": 400, "coffee": 250, "cocoa": 100, "mate": 50, "rum": 25})
"""How many people rate each drink."""

INK, ACCENT, FAINT, BAND = "#3b1f6b", OTHER[2], "#9a9a9a", "#ded6ee"


def neighbours() -> Figure:
    """Draw two datasets that differ in one person, and how far that person can move each mean."""
    others = {
        "tea": [4.0, 3.0, 5.0, 4.0, 3.5, 2.0, 4.5, 3.0, 4.0, 3.0, 5.0],
        "cocoa": [5.0, 4.0, 4.5, 3.5, 5.0],
        "rum": [4.0, 2.0],
    }
    figure = Figure(figsize=(9.0, 3.9), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    first = _means(others, (4.0, 5.0, 4.5))
    for panel, title, ann in (
        (panels[0], "Your dataset", (4.0, 5.0, 4.5)),
        (panels[1], "A neighbour: Ann gave other ratings", (1.0, 0.5, 0.0)),
    ):
        _ratings(panel, others, ann, first)
        panel.set_title(title)
    panels[0].set_ylabel("stars")
    figure.legend(*panels[1].get_legend_handles_labels(), loc="outside lower center", ncols=5, handlelength=1.6)
    return figure


def _means(others: Mapping[str, list[float]], ann: tuple[float, ...]) -> list[float]:
    return [float(np.mean([*rest, own])) for rest, own in zip(others.values(), ann, strict=True)]


def _ratings(panel: Axes, others: Mapping[str, list[float]], ann: tuple[float, ...], first: list[float]) -> None:
    """Draw everyone's ratings of each drink, their mean, and the reach of one person around the first means."""
    for place, (rest, own, mean, centre) in enumerate(
        zip(others.values(), ann, _means(others, ann), first, strict=True)
    ):
        hidden = "_" if place else ""  # a legend leaves out what begins with an underscore
        reach = STARS / (len(rest) + 1)
        low, high = max(0.0, centre - reach), min(STARS, centre + reach)
        panel.bar(place, high - low, 0.84, low, color=BAND, label=f"{hidden}what one person can reach: score ± Δ")
        spots = place + np.linspace(-0.32, 0.22, len(rest))
        panel.scatter(spots, rest, s=20, color=FAINT, label=f"{hidden}the others", zorder=3)
        panel.scatter(place + 0.33, own, s=46, color=ACCENT, label=f"{hidden}Ann", zorder=4)
        ends = (place - 0.42, place + 0.42)
        panel.plot(ends, (mean, mean), color=INK, lw=2.4, label=f"{hidden}score: the mean")
        if mean != centre:
            panel.plot(ends, (centre, centre), color=INK, lw=1.2, ls=":", label=f"{hidden}score before")
    sizes = [len(rest) + 1 for rest in others.values()]
    names = [f"{drink}\n{n} ratings\nΔ = {STARS / n:.2g}" for drink, n in zip(others, sizes, strict=True)]
    panel.set_xticks(range(len(others)), names)
    panel.set_ylim(-0.2, 5.2)
    panel.grid(visible=False, axis="x")


def clipping() -> Figure:
    """Draw raw model scores of two candidates, the range of each, and the clipped scores."""
    rng = np.random.default_rng(1)
    raw = {"documentary": rng.normal(0.35, 0.11, 60), "blockbuster": rng.normal(0.55, 0.38, 60)}
    ranges = {"documentary": (0.2, 0.5), "blockbuster": (0.0, 1.0)}
    figure = Figure(figsize=(9.0, 2.9), layout="constrained")
    panel = figure.subplots()
    jitter = np.linspace(-0.16, 0.16, 60)
    for place, (name, scores) in enumerate(raw.items()):
        low, high = ranges[name]
        clipped = np.clip(scores, low, high)
        moved = clipped != scores
        hidden = "_" if place else ""
        panel.barh(place, high - low, 0.6, low, color=BAND, label=f"{hidden}public range")
        panel.hlines(place + jitter[moved], scores[moved], clipped[moved], color=FAINT, lw=0.7)
        for kind, values, mask, edge, fill in (
            ("raw score, outside", scores, moved, FAINT, "none"),
            ("clipped to the edge", clipped, moved, ACCENT, ACCENT),
            ("inside: unchanged", clipped, ~moved, INK, INK),
        ):
            spots, label = (place + jitter)[mask], f"{hidden}{kind}"
            panel.scatter(values[mask], spots, s=18, zorder=3, edgecolors=edge, facecolors=fill, label=label)
        ends = ((low, place + 0.38), (high, place + 0.38))
        panel.annotate("", *ends, arrowprops={"arrowstyle": "<->", "color": INK})
        panel.text((low + high) / 2, place + 0.39, f"Δ = {high - low:.1f}", ha="center", va="bottom", color=INK)
    panel.set_yticks(range(2), list(raw))
    panel.set(ylim=(-0.45, 1.65), xlabel="model score; one dot for each user")
    panel.grid(visible=False, axis="y")
    figure.legend(loc="outside lower center", ncols=4)
    return figure


def epsilon() -> Figure:
    """Draw what ε buys: the probability of the best drink, and of each drink at three values of ε."""
    widths = {drink: STARS / raters for drink, raters in RATERS.items()}
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    budgets = np.geomspace(0.03, 10, 60)
    default, noisy_max = STYLES["heterogeneous-rnm"], STYLES["rnm"]
    for make, style in ((dps.HeterogeneousNoisyMax, default), (dps.NoisyMax, noisy_max)):
        chances = [dps.probability_of_best(make(epsilon=each), SCORES, widths) for each in budgets]
        left.plot(budgets, chances, **(line(style) | {"marker": ""}))
    left.axhline(1 / len(SCORES), color=STYLES["uniform"].color, ls=":")
    left.text(0.26, 0.56, "heterogeneous\nnoisy max", color=default.color, ha="right")
    left.text(0.72, 0.56, "noisy max", color=noisy_max.color)
    left.text(10, 0.13, "a random pick", color=STYLES["uniform"].color, ha="right")
    left.set(xscale="log", ylim=(0, 1.02), xlabel="ε", title="Probability of picking the best drink")
    plain_numbers(left.xaxis)
    for shift, (each, strength) in enumerate(zip((0.1, 0.5, 2.0), (0.25, 0.55, 1.0), strict=True)):
        chances = list(dps.HeterogeneousNoisyMax(epsilon=each).pmf(SCORES, widths).values())
        right.bar(
            np.arange(len(SCORES)) + 0.27 * (shift - 1),
            chances,
            0.25,
            color=(default.color, strength),
            label=f"ε = {each:g}",
        )
    right.set_xticks(range(len(SCORES)), [f"{drink}\nscore {score:g}" for drink, score in SCORES.items()])
    right.set(ylim=(0, 1.02), title="Probability of each drink")
    right.grid(visible=False, axis="x")
    right.legend()
    return figure


def mistakes() -> dict[str, float]:
    """Return the exact privacy loss of each common mistake, on one pair of neighbours, where ε = 1 was promised."""
    mechanism = dps.HeterogeneousNoisyMax(epsilon=1.0)
    tea, rum = np.array([3.0, 4, 3, 4, 3, 4, 3, 4, 3, 4]), np.array([2.0, 2, 1, 2, 3, 2, 2, 2, 2, 2])
    other_tea = np.append(tea[:-1], 0.0)

    def with_spread(*columns: FloatArray) -> FloatArray:
        means, spreads = ([f(ratings) for ratings in columns] for f in (np.mean, np.ptp))
        return np.asarray(mechanism.pmf(means, np.divide(spreads, tea.size)))

    def loss(before: FloatArray, after: FloatArray) -> float:
        return float(np.abs(np.log(before / after)).max())

    kept = loss(mechanism.pmf([0.69, 0.71], 0.01), mechanism.pmf([0.68, 0.72], 0.01))
    return {
        "no mistake": kept,
        "Δ from the spread of the private data": loss(with_spread(tea, rum), with_spread(other_tea, rum)),
        "scores in percent, Δ not": loss(mechanism.pmf([70, 71], 0.01), mechanism.pmf([71, 70], 0.01)),
        "five picks, paid for once": 5 * kept,
        "publishing pmf of private scores": np.inf,
    }


def losses() -> Figure:
    """Draw the privacy loss of each common mistake beside the promise."""
    found = mistakes()
    figure = Figure(figsize=(9.0, 2.7), layout="constrained")
    panel = figure.subplots()
    for place, lost in enumerate(reversed(found.values())):
        if np.isinf(lost):
            panel.annotate("", (230, place), (1, place), arrowprops={"arrowstyle": "->", "color": ACCENT, "lw": 2})
            panel.text(150, place + 0.12, "no limit", color=ACCENT, ha="right", va="bottom")
            continue
        color = INK if lost <= 1 + 1e-9 else ACCENT
        panel.hlines(place, 1, lost, color=color, lw=2)
        panel.scatter(lost, place, s=42, color=color, zorder=3)
        panel.text(lost * 1.09, place, f"{lost:.2g}", color=color, va="center")
    panel.axvline(1, color=FAINT, ls=":", zorder=1)
    panel.set_yticks(range(len(found)), list(reversed(found)))
    panel.set(xscale="log", xlim=(0.8, 240), ylim=(-0.5, len(found) - 0.4), xlabel="privacy lost; promised: ε = 1")
    plain_numbers(panel.xaxis)
    panel.grid(visible=False, axis="y")
    return figure


PICTURES: Mapping[str, Callable[[], Figure]] = MappingProxyType(
    {
        "sensitivities-neighbours.png": neighbours,
        "sensitivities-clipping.png": clipping,
        "sensitivities-epsilon.png": epsilon,
        "sensitivities-mistakes.png": losses,
    }
)
"""The pictures of docs/guide/sensitivities.md."""


def draw_all(directory: Path) -> None:
    """Draw the pictures into a directory."""
    with look():
        for name, draw in PICTURES.items():
            with replacing(directory / name) as temporary:
                draw().savefig(temporary, format="png", metadata={"Software": None})


def main() -> int:
    """Draw the pictures and print where they are."""
    parser = argparse.ArgumentParser(prog="python -m experiments.guide", description=__doc__)
    parser.add_argument("--images", type=Path, default=IMAGES, help="the directory (default: docs/images)")
    directory = parser.parse_args().images
    draw_all(directory)
    print(f"Wrote {len(PICTURES)} pictures into {directory}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
