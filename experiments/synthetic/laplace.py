"""The density of the largest of many Laplace variables: a single large scale dominates it."""

from functools import partial

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

from experiments import drawing
from experiments.arrays import FloatArray
from experiments.experiment import Effort, Experiment, Task
from experiments.ledger import Claim, Finding, judge
from experiments.tables import Tables, where

__all__ = ["LAPLACE_MAXIMUM"]

VARIABLES = 100
SMALL, LARGE = 0.5, 10.0
SCALES = {
    "all 0.5": np.full(VARIABLES, SMALL),
    "all but one 0.5, one 10": np.r_[np.full(VARIABLES - 1, SMALL), LARGE],
    "from 0.5 to 10": np.linspace(SMALL, LARGE, VARIABLES),
    "all 10": np.full(VARIABLES, LARGE),
}
DASHES = ("-", "--", "-.", ":")


def distribution(x: FloatArray, scales: FloatArray) -> FloatArray:
    """Return the distribution function of the maximum, ∏ F_a(x)."""
    return np.asarray(_each(x, scales)[0].prod(axis=-1))


def density(x: FloatArray, scales: FloatArray) -> FloatArray:
    """Return the density of the maximum, Σ_a f_a(x) ∏_{b≠a} F_b(x).

    Example:
        >>> density(np.array([0.0]), np.array([2.0])).round(3)
        array([0.25])
    """
    below, densities = _each(x, scales)
    # F is never 0 at these x, so the product of all but one is a quotient.
    return np.asarray((densities / below).sum(axis=-1) * below.prod(axis=-1))


def _each(x: FloatArray, scales: FloatArray) -> tuple[FloatArray, FloatArray]:
    ratio = x[:, np.newaxis] / scales
    tail = np.exp(-np.abs(ratio)) / 2
    return np.where(ratio < 0, tail, 1 - tail), tail / scales


def _compute(name: str, effort: Effort) -> pa.Table:
    x = np.linspace(-5.0, 110.0, 16 * effort.resolution)
    return pa.table(
        {
            "scales": [name] * x.size,
            "x": x,
            "density": density(x, SCALES[name]),
            "distribution": distribution(x, SCALES[name]),
        }
    )


def _plan(effort: Effort) -> list[Task]:
    return [
        *(Task(label=name, table="density", compute=partial(_compute, name, effort)) for name in SCALES),
        Task(label="which is the largest", table="winner", compute=_winner),
    ]


def _winner() -> pa.Table:
    """Return the probability that the one variable of large scale is the largest: ∫ f_large F_small^(n−1) dx."""
    x = np.linspace(-20.0, 300.0, 400_001)
    densities = _each(x, np.array([LARGE]))[1][:, 0]
    others = _each(x, np.array([SMALL]))[0][:, 0] ** (VARIABLES - 1)
    return pa.table({"large_scale_wins": [float(np.trapezoid(densities * others, x))]})


def _draw(data: Tables) -> Figure:
    figure, panels = drawing.grid(rows=1, columns=1, heights=(3,), width=7.6)
    panel = panels[0, 0]
    for name, color, dashes in zip(SCALES, drawing.OTHER, DASHES, strict=True):
        curve = where(data["density"], scales=name)
        panel.plot(curve["x"], curve["density"], color=color, linestyle=dashes, label=name, linewidth=2)
    panel.set(
        xlabel="largest of 100 Laplace variables", ylabel="density", yscale="log", ylim=(1e-4, 2), xlim=(-5, 110)
    )
    drawing.plain_numbers(panel.yaxis)
    panel.legend(title="scales")
    return figure


def _check(data: Tables) -> Finding:
    medians, tails = {}, {}
    for name in SCALES:
        curve = where(data["density"], scales=name)
        below = curve["distribution"].to_numpy()
        medians[name] = float(np.interp(0.5, below, curve["x"].to_numpy()))
        tails[name] = 1 - float(np.interp(8.0, curve["x"].to_numpy(), below))
    few, one, many, all_ = (medians[name] for name in SCALES)
    share = data["winner"]["large_scale_wins"][0].as_py()
    return judge(
        {
            "one large scale moves the median": one > few,
            "one large scale makes the tail": tails["all but one 0.5, one 10"] > 100 * tails["all 0.5"],
            "the larger the scales, the larger the maximum": few < one < many < all_,
        },
        f"The medians are {few:.2f}, {one:.2f}, {many:.1f} and {all_:.1f}. The maximum exceeds 8 with probability "
        f"{tails['all 0.5']:.1e} if all scales are 0.5, and {tails['all but one 0.5, one 10']:.3f} if one is 10. "
        f"That one is the maximum with probability {share:.3f}.",
    )


LAPLACE_MAXIMUM = Experiment(
    name="largest-laplace",
    title="The largest of many Laplace variables",
    caption=(
        "A single large scale dominates the maximum: with one scale of 10 among 99 of 0.5, the maximum is above 8 "
        "with probability 0.22, without it with six in a million. This is why the largest sensitivities matter, "
        "not the average."
    ),
    description=(
        "Four densities on a logarithmic axis. With all scales 0.5 the density ends near 8; a single scale of 10 "
        "adds a long straight tail. With many or all large scales the peak moves to about 25 and 40."
    ),
    notes={
        "variables": f"{VARIABLES}; the paper does not print the number",
        "numbers": "exact density Σ_a f_a ∏_{b≠a} F_b",
    },
    plan=_plan,
    draw=_draw,
    claims=[
        Claim(
            id="S13",
            text=(
                "Maximum of Laplace variables: one large scale dominates the density (four curves of the appendix "
                "figure)."
            ),
            check=_check,
        )
    ],
)
