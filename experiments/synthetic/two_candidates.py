"""Two candidates: does noisy max pick the worse one more often than a heterogeneous mechanism?

HG(M, M') = Pr[M picks the worse] − Pr[M' picks the worse]. It is positive where M' is better.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

import dpselect as dps
from experiments import drawing
from experiments.arrays import FloatArray
from experiments.experiment import Effort, Experiment, Task
from experiments.ledger import Claim, Finding, Verdict, judge
from experiments.mechanisms import BETA, COMPARED, build
from experiments.tables import Tables, unique, where

__all__ = ["GAMMA_ABLATION", "HETEROGENEITY_GAIN", "NAIVE_PANELS", "STOPPING_PANELS"]

EPSILON = 0.1
GAMMA = 0.01
GAMMAS = (0.5, 0.2, 0.05, 0.01, 0.001)
EPSILONS = (0.1, 1.0, 3.0)
GAPS = (0.1, 1.0, 2.0, 5.0)
SENSITIVITIES = (0.1, 4.0)
"""The range of both axes, which the paper does not print."""

ROUNDING = 1e-12


def _gain(panel: str, mechanism: dps.Mechanism, epsilon: float, gap: float, effort: Effort) -> pa.Table:
    """Return HG(RNM, mechanism) on a grid of both sensitivities, for scores 0 and ``gap``."""
    sides = np.linspace(*SENSITIVITIES, effort.resolution)
    sensitivities = np.stack(np.meshgrid(sides, sides), axis=-1).reshape(-1, 2)
    scores = [0.0, gap]
    homogeneous = build("rnm", epsilon).pmf(scores, sensitivities)[:, 0]
    heterogeneous = mechanism.pmf(scores, sensitivities)[:, 0]
    rows = len(sensitivities)
    return pa.table(
        {
            "panel": [panel] * rows,
            "epsilon": [epsilon] * rows,
            "gap": [gap] * rows,
            "sensitivity_1": sensitivities[:, 0],
            "sensitivity_2": sensitivities[:, 1],
            "rnm_picks_worse": homogeneous,
            "picks_worse": heterogeneous,
            "gain": homogeneous - heterogeneous,
        }
    )


def _task(panel: str, mechanism: dps.Mechanism, epsilon: float, gap: float, effort: Effort) -> Task:
    return Task(label=panel, table="gains", compute=partial(_gain, panel, mechanism, epsilon, gap, effort))


def _plan_overview(effort: Effort) -> list[Task]:
    return [
        *(
            _task(COMPARED[name].symbol, build(name, EPSILON, gamma=GAMMA), EPSILON, 1.0, effort)
            for name in ("rnmh", "rs", "gem", "mgem")
        ),
        Task(label="where HG = 0", table="boundary", compute=partial(_boundary, effort)),
    ]


def _boundary(effort: Effort) -> pa.Table:
    """Return, for each Δ₁, the ratio Δ₂/Δ₁ at which HG(RNM, RS_γ) is 0, found by bisection between 1 and 4."""
    worse = np.linspace(*SENSITIVITIES, effort.resolution)
    low, high = np.ones_like(worse), np.full_like(worse, 4.0)
    for _ in range(40):
        middle = (low + high) / 2
        sensitivities = np.stack([worse, middle * worse], axis=-1)
        homogeneous, stopping = (
            build(name, EPSILON, gamma=GAMMA).pmf([0.0, 1.0], sensitivities)[:, 0] for name in ("rnm", "rs")
        )
        gains = homogeneous - stopping
        low, high = np.where(gains < 0, middle, low), np.where(gains < 0, high, middle)
    return pa.table({"sensitivity_1": worse, "ratio": high})


def _plan_gammas(effort: Effort) -> list[Task]:
    return [_task(f"γ = {gamma:g}", build("rs", EPSILON, gamma=gamma), EPSILON, 1.0, effort) for gamma in GAMMAS]


def _plan_panels(name: str, effort: Effort) -> list[Task]:
    return [
        _task(f"ε = {epsilon:g}, gap {gap:g}", build(name, epsilon, gamma=GAMMA), epsilon, gap, effort)
        for epsilon in EPSILONS
        for gap in GAPS
    ]


def _draw(columns: int, data: Tables) -> Figure:
    table = data["gains"]
    names = unique(table, "panel")
    rows = -(-len(names) // columns)
    height = 2.3 if rows == 1 else 2.0  # the title of the colour bar needs a high row
    figure, panels = drawing.grid(rows=rows, columns=columns, heights=(height,) * rows, width=2.7)
    limit = float(np.abs(table["gain"].to_numpy()).max())
    for position, (name, panel) in enumerate(zip(names, panels.flat, strict=True)):
        image = drawing.heat_map(
            panel, where(table, panel=name), x="sensitivity_1", y="sensitivity_2", value="gain", limit=limit
        )
        panel.set_title(name)
        if position >= len(names) - columns:
            panel.set_xlabel("Δ₁ (worse)")
        if position % columns == 0:
            panel.set_ylabel("Δ₂ (better)")
    bar = figure.colorbar(image, ax=panels, aspect=15 * rows, pad=0.02)
    bar.set_label("HG = Pr[RNM errs] − Pr[other errs]")
    return figure


def _sides(table: pa.Table) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return Δ₁, Δ₂ and the gain."""
    first, second, gain = (
        np.asarray(table[name].to_numpy()) for name in ("sensitivity_1", "sensitivity_2", "gain")
    )
    return first, second, gain


def _sign_shares(table: pa.Table) -> tuple[float, float]:
    """Return the shares of the cells with Δ₁ < Δ₂, and with Δ₁ > Δ₂, in which the gain has the predicted sign."""
    first, second, gain = _sides(table)
    above, below = second > first + ROUNDING, second < first - ROUNDING
    return float((gain[above] > 0).mean()), float((gain[below] < 0).mean())


def _check_closed_forms(data: Tables) -> Finding:
    table = data["gains"]
    first, second, _ = _sides(table)
    epsilons, gaps = table["epsilon"].to_numpy(), table["gap"].to_numpy()
    largest = np.maximum(first, second)
    homogeneous = 0.5 * np.exp(-epsilons * gaps / (2 * largest))
    heterogeneous = first / (first + second) * np.exp(-epsilons * gaps / (2 * first))
    misses = (
        float(np.abs(table["rnm_picks_worse"].to_numpy() - homogeneous).max()),
        float(np.abs(table["picks_worse"].to_numpy() - heterogeneous).max()),
    )
    return judge(
        {"RNM": misses[0] < 1e-10, "naive noisy max": misses[1] < 1e-10},
        f"The largest difference between formula and exact pmf over {table.num_rows} settings is "
        f"{misses[0]:.0e} for RNM and {misses[1]:.0e} for naive noisy max.",
    )


def _check_rnmh_sign(data: Tables) -> Finding:
    above, below = _sign_shares(data["gains"])
    return judge(
        {"HG > 0 where Δ₁ < Δ₂": above == 1, "HG < 0 where Δ₁ > Δ₂": below == 1},
        f"Over all {len(EPSILONS) * len(GAPS)} panels, HG > 0 in {above:.1%} of the cells with Δ₁ < Δ₂, and HG < "
        f"0 in {below:.1%} of those with Δ₁ > Δ₂. On the diagonal |HG| is at most "
        f"{_on_diagonal(data['gains']):.0g}.",
    )


def _on_diagonal(table: pa.Table) -> float:
    first, second, gain = _sides(table)
    return float(np.abs(gain[np.abs(first - second) < ROUNDING]).max())


def _check_stopping_sign(data: Tables) -> Finding:
    above, below = _sign_shares(where(data["gains"], panel="RSᵧ"))
    ratios = data["boundary"]["ratio"].to_numpy()
    return judge(
        {"HG > 0 in every plotted cell with Δ₁ < Δ₂": above == 1, "HG < 0 in every one with Δ₁ > Δ₂": below == 1},
        f"HG > 0 in {above:.1%} of the map’s cells with Δ₁ < Δ₂, and HG < 0 in {below:.1%} of those with "
        f"Δ₁ > Δ₂. By bisection, HG = 0 at Δ₂ = {ratios.min():.3f} Δ₁ (Δ₁ = {SENSITIVITIES[1]}) to "
        f"{ratios.max():.3f} Δ₁ (Δ₁ = {SENSITIVITIES[0]}).",
        "Judged on the plotted cells. Between them, HG < 0 where Δ₂ is only a little larger than Δ₁: RSᵧ then "
        "gains nothing, and its noise has a larger scale.",
    )


def _check_gammas(data: Tables) -> Finding:
    table = data["gains"]
    sizes = np.stack([np.abs(where(table, panel=f"γ = {gamma:g}")["gain"].to_numpy()) for gamma in GAMMAS])
    first, second, _ = _sides(where(table, panel=f"γ = {GAMMAS[0]:g}"))
    grows = np.asarray((np.diff(sizes, axis=0) > 0).all(axis=0))
    ratios = (second / first)[~grows]
    means = ", ".join(
        f"{size:.4f} at γ = {gamma:g}" for gamma, size in zip(GAMMAS, sizes.mean(axis=1), strict=True)
    )
    return judge(
        {"the mean |HG| over the map grows at each step": bool((np.diff(sizes.mean(axis=1)) > 0).all())},
        f"Mean |HG|: {means}. |HG| grows at every step in {grows.mean():.1%} of the cells."
        + (
            f" In the other {ratios.size} of {grows.size}, Δ₂/Δ₁ is {ratios.min():.2f} to {ratios.max():.2f}, "
            f"with median {np.median(ratios):.2f}."
            if ratios.size
            else ""
        ),
        "An overall effect, so the mean over the map is judged. The exceptions are near the line HG = 0, which "
        "moves with γ: there, |HG| falls before it grows again. The paper’s text says “as γ increases”; its "
        "caption, “decreases”, is right.",
        instead={"the mean |HG| over the map grows at each step": "the mean |HG| over the map falls at some step"},
    )


def _check_stopping_panels(data: Tables) -> Finding:
    table = data["gains"]
    panels = unique(table, "panel")
    largest = {panel: float(np.abs(where(table, panel=panel)["gain"].to_numpy()).max()) for panel in panels}
    top = max(largest, key=lambda panel: largest[panel])
    ahead = {panel: round(_sign_shares(where(table, panel=panel))[0], 3) for panel in panels}
    lowest = min(ahead, key=lambda panel: ahead[panel])
    return Finding(
        verdict=Verdict.SHOWN,
        measured=f"|HG| is at most {largest[top]:.3f} ({top}). RSᵧ is ahead in {ahead[lowest]:.1%} (at {lowest}) "
        f"to {max(ahead.values()):.1%} of the cells with Δ₁ < Δ₂.",
        comment="A description of two figures. Naive noisy max has the sign pattern of the first heat map in all "
        "panels (T2). "
        "The region in which RSᵧ loses to RNM grows with ε · gap.",
    )


def _check_gem(data: Tables) -> Finding:
    t = 2 * np.log(2 / BETA) / EPSILON
    correct = {}
    for name, sign in ((COMPARED["gem"].symbol, 1.0), (COMPARED["mgem"].symbol, -1.0)):
        table = where(data["gains"], panel=name)
        first, second, _ = _sides(table)
        lead = sign * t * (second - first) - table["gap"].to_numpy()
        clear = np.abs(lead) > ROUNDING
        favours_worse = table["picks_worse"].to_numpy() > 0.5
        correct[name] = float((favours_worse == (lead > 0))[clear].mean())
    worst = {name: float(where(data["gains"], panel=name)["picks_worse"].to_numpy().max()) for name in correct}
    return judge(
        {name: share == 1 for name, share in correct.items()},
        f"GEM favours the worse candidate exactly where $t(Δ₂ − Δ₁) > q₂ − q₁$, mGEM where $t(Δ₁ − Δ₂) > q₂ − q₁$ "
        f"(t = {t:.0f}), in {correct['GEM']:.1%} and {correct['mGEM']:.1%} of the cells. They pick the worse one "
        f"with probability at most {worst['GEM']:.3f} and {worst['mGEM']:.3f}.",
    )


_NOTES = {
    "HG": (
        "the paper’s HG(RNM, M) = Pr[RNM picks the worse candidate] − Pr[M picks it], for the mechanism M of the "
        "figure; positive (red) where M is better"
    ),
    "axes": f"Δ₁ and Δ₂ from {SENSITIVITIES[0]} to {SENSITIVITIES[1]}; the paper does not print its range",
    "numbers": "exact probabilities; the thin line is HG = 0",
}


def _numbers(data: Tables) -> dict[str, str]:
    """Return the size of HG in the first and in the last panel."""
    panels = unique(data["gains"], "panel")
    found: dict[str, str] = {}
    for place, panel in (("first", panels[0]), ("last", panels[-1])):
        gain = where(data["gains"], panel=panel)["gain"].to_numpy()
        values = {
            "": np.abs(gain).max(),
            "_mean": np.abs(gain).mean(),
            "_gain": gain.max(),
            "_loss": gain.min(),
        }
        found |= {f"{place}{name}": f"{value:.2f}".replace("-", "−") for name, value in values.items()}
    return found


_COLOURS = (
    "HG is the probability that RNM picks the worse candidate, minus the other mechanism’s: red where the other "
    "is better, blue where RNM is."
)


def _experiment(
    name: str,
    title: str,
    caption: str,
    seen: str,
    notes: dict[str, str],
    plan: Callable[[Effort], Sequence[Task]],
    columns: int,
    claims: Sequence[Claim],
) -> Experiment:
    return Experiment(
        name=name,
        title=title,
        caption=f"{caption} {_COLOURS}",
        description=(
            "Heat maps over the sensitivity of the worse candidate (across) and of the better one (up). Above the "
            f"diagonal the better candidate is the more sensitive one. {seen}"
        ),
        notes=notes | _NOTES,
        plan=plan,
        draw=partial(_draw, columns),
        numbers=_numbers,
        claims=claims,
    )


HETEROGENEITY_GAIN = _experiment(
    "two-candidates",
    "Two candidates: RNM against naive noisy max, RSᵧ, GEM and mGEM",
    "Naive noisy max, RSᵧ and mGEM beat RNM where the better candidate is the more sensitive one, and lose where "
    "it is the less sensitive one; GEM does the reverse. At the extremes the probability of the worse candidate "
    "changes by about one half.",
    "Naive noisy max, RSᵧ and mGEM are red above the diagonal and blue below; GEM is blue above and red below.",
    {
        "scores": "q₁ = 0, q₂ = 1",
        "mechanisms": f"ε = {EPSILON}, γ = {GAMMA}, β = {BETA}; GEM and mGEM are not in the paper’s figure",
    },
    _plan_overview,
    4,
    [
        Claim(
            id="T3",
            text="HG(RNM, RSᵧ) has the same sign pattern (γ = 0.01, ε = 0.1, q = (0, 1)).",
            check=_check_stopping_sign,
        ),
        Claim(
            id="T7",
            text=(
                "With two candidates, GEM favours the wrong one when Δ₁ < Δ₂ and t is large; mGEM the mirror image."
            ),
            check=_check_gem,
        ),
    ],
)

GAMMA_ABLATION = _experiment(
    "two-candidates-gamma",
    "Two candidates: RSᵧ for various γ",
    "With a small γ, RSᵧ takes more draws: both its gains and its losses are larger. The mean of |HG| grows from "
    "{first_mean} at γ = 0.5 to {last_mean} at γ = 0.001.",
    "Pale at γ = 0.5, strongly red above the diagonal and blue below it at γ = 0.001.",
    {"scores": "q₁ = 0, q₂ = 1", "mechanisms": f"ε = {EPSILON}; γ = {', '.join(f'{gamma:g}' for gamma in GAMMAS)}"},
    _plan_gammas,
    len(GAMMAS),
    [Claim(id="T4", text="The smaller γ, the larger |HG(RNM, RSᵧ)| (ablation over γ).", check=_check_gammas)],
)

NAIVE_PANELS = _experiment(
    "two-candidates-rnmh",
    "Two candidates: naive noisy max over ε and gap",
    "Naive noisy max is better exactly where the better candidate is the more sensitive one, in every panel. The "
    "larger ε and the gap between the scores, the smaller the difference: |HG| is at most {first} at the top "
    "left, and {last} at the bottom right.",
    "Red above the diagonal and blue below it in all panels, paler towards the bottom right.",
    {"rows": "ε = 0.1, 1, 3", "columns": "q₂ − q₁ = 0.1, 1, 2, 5"},
    partial(_plan_panels, "rnmh"),
    len(GAPS),
    [
        Claim(
            id="T1",
            text="Closed forms of the wrong-pick probability of RNM and naive noisy max.",
            check=_check_closed_forms,
        ),
        Claim(id="T2", text="HG(RNM, naive noisy max) > 0 iff Δ₁ < Δ₂, < 0 iff Δ₁ > Δ₂.", check=_check_rnmh_sign),
    ],
)

STOPPING_PANELS = _experiment(
    "two-candidates-stopping",
    "Two candidates: RSᵧ over ε and gap",
    "RSᵧ resembles naive noisy max at ε = 0.1. The larger ε and the gap, the less it gains and the more it "
    "loses: at ε = 3 and a gap of 5, HG is at most {last_gain} and at least {last_loss}. Its noise has 1.5 times "
    "the scale of naive noisy max’s, and it may never draw the better candidate.",
    "Red above the diagonal and blue below it at ε = 0.1. Towards the bottom right the blue region grows beyond "
    "the diagonal, and red turns pale.",
    {"rows": "ε = 0.1, 1, 3", "columns": "q₂ − q₁ = 0.1, 1, 2, 5", "mechanisms": f"γ = {GAMMA}"},
    partial(_plan_panels, "rs"),
    len(GAPS),
    [
        Claim(
            id="T5",
            text="HG panels over ε ∈ {0.1, 1, 3} × q₂−q₁ ∈ {0.1, 1, 2, 5}, for naive noisy max and RSᵧ (γ = 0.01).",
            check=_check_stopping_panels,
        )
    ],
)
