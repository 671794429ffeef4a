"""The privacy loss of the bandit's policies, and the errors of private sums."""

from collections.abc import Mapping
from functools import partial

import matplotlib as mpl
import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments import drawing
from experiments.bandit.exposure import account, block_losses, window_losses
from experiments.bandit.policies import BUDGETS, PRINTED, Setting
from experiments.bandit.runs import PROBLEM
from experiments.bandit.styles import POLICY_STYLES
from experiments.bandit.sums import binary_noise, error_bound, hybrid_blocks, hybrid_noise, scales_at
from experiments.experiment import Effort, Experiment, Listing, Task
from experiments.scenarios import SEED
from experiments.tables import Tables, where

__all__ = ["BANDIT_PRIVACY"]

FAILURE = 0.05
STREAMS = 200
SHOWN_ITEMS = 1000
LOOKS = {"binary": (drawing.DARK, "v"), "hybrid": (drawing.LIGHT, "^")}


def _plan(_effort: Effort) -> list[Task]:
    horizon = PROBLEM.horizon
    return [
        Task(label="accounts", table="accounts", compute=partial(_accounts, horizon)),
        Task(label="losses", table="losses", compute=_losses),
        Task(label="errors of private sums", table="errors", compute=partial(_errors, horizon)),
    ]


def _accounts(horizon: int) -> pa.Table:
    window = Setting().window
    found = {name: account(budget, horizon=horizon, window=window) for name, budget in BUDGETS.items()}
    fields = ("means", "quantiles", "total", "as_printed", "from_exact_means")
    return pa.table(
        {
            "policy": list(found),
            **{field: [getattr(one, field) for one in found.values()] for field in fields},
        }
    )


def _losses() -> pa.Table:
    blocks = hybrid_blocks(SHOWN_ITEMS, epsilon=1.0)
    return pa.table(
        {
            "item": np.arange(1, SHOWN_ITEMS + 1),
            "means": block_losses(blocks, SHOWN_ITEMS),
            "quantiles": window_losses(SHOWN_ITEMS, Setting().window, epsilon=1.0),
        }
    )


def _errors(horizon: int) -> pa.Table:
    """Return the measured error of sums of n rewards in [0, 1] at ε = 1, and the theorem's bound."""
    rng = np.random.default_rng([SEED, 7])
    lengths = np.unique(np.geomspace(1, horizon, 60).astype(int))
    parts = []
    for name in LOOKS:
        draw = binary_noise if name == "binary" else hybrid_noise
        # A few streams at a time: each has a number for every step.
        noise = np.concatenate([draw(20, horizon, epsilon=1.0, rng=rng)[:, lengths] for _ in range(STREAMS // 20)])
        known = {"horizon": horizon} if name == "binary" else {}
        scales = [scales_at(int(n), epsilon=1.0, **known) for n in lengths]
        parts.append(
            pa.table(
                {
                    "mechanism": [name] * lengths.size,
                    "length": lengths,
                    "measured": np.quantile(np.abs(noise), 1 - FAILURE, axis=0),
                    "deviation": [float(np.sqrt(2 * (scale**2).sum())) for scale in scales],
                    "bound": [error_bound(scale, FAILURE) for scale in scales],
                }
            )
        )
    return pa.concat_tables(parts)


def _draw(data: Tables) -> Figure:
    figure, ((bars, losses, errors),) = drawing.grid(rows=1, columns=3, heights=(3.2,), width=4.4, aligned=False)
    _draw_accounts(bars, data["accounts"])
    table = data["losses"]
    items, means, quantiles = (table[name].to_numpy() for name in ("item", "means", "quantiles"))
    losses.plot(items, means, color=drawing.DARK, linewidth=0.8, label="through running sums")
    losses.plot(items, means + quantiles, color=drawing.LIGHT, linewidth=0.8, label="plus quantiles")
    losses.set(
        title="Loss of each reward",
        xlabel="place in an arm’s stream of 1,000",
        ylabel="privacy loss",
        ylim=(0, 2.6),
    )
    losses.legend(loc="upper left", ncols=1)
    for name, (color, marker) in LOOKS.items():
        curve = where(data["errors"], mechanism=name)
        lengths = curve["length"].to_numpy()
        errors.plot(lengths, curve["bound"].to_numpy(), color=color, linestyle="--", label=f"{name}: bound")
        errors.plot(
            lengths,
            curve["measured"].to_numpy(),
            color=color,
            marker=marker,
            markevery=8,
            label=f"{name}: measured",
        )
    errors.set(title="Error of private sums", xlabel="rewards in the sum", xscale="log", yscale="log")
    errors.set_ylabel("95 % quantile of the error")
    errors.legend(loc="lower right")
    for axis in (errors.xaxis, errors.yaxis):
        drawing.plain_numbers(axis)
    return figure


def _draw_accounts(panel: Axes, table: pa.Table) -> None:
    rows = table.to_pylist()[::-1]
    labels = [POLICY_STYLES[row["policy"]].label for row in rows]
    means, quantiles = ([row[name] for row in rows] for name in ("means", "quantiles"))
    panel.barh(labels, means, color=drawing.DARK, label="running sums")
    panel.barh(labels, quantiles, left=means, color=drawing.LIGHT, label="quantiles")
    printed = [
        (row["as_printed"], label) for row, label in zip(rows, labels, strict=True) if row["policy"] in PRINTED
    ]
    panel.plot(
        *zip(*printed, strict=True), "D", color=mpl.rcParams["text.color"], markersize=5, label="the paper’s sum"
    )
    panel.set(title="Cost of one reward", xlabel="ε", xlim=(0, 6.8))
    panel.legend(loc="lower right")
    panel.grid(visible=False, axis="y")


def _listing(data: Tables) -> Listing:
    return Listing(
        caption="The privacy loss of one person’s reward through all releases of a policy.",
        columns=[
            "policy",
            "running sums",
            "quantiles",
            "picks",
            "total",
            "the paper’s sum ε_M + ε_S + 2ε_p",
            "with exact means, T · ε_S",
        ],
        rows=[
            [
                POLICY_STYLES[row["policy"]].label,
                f"{row['means']:g}",
                f"{row['quantiles']:g}",
                "0 (post-processing)",
                f"{row['total']:g}",
                f"{row['as_printed']:g}" if row["policy"] in PRINTED else "–",
                f"{row['from_exact_means']:,.0f}" if row["from_exact_means"] else "–",
            ]
            for row in data["accounts"].to_pylist()
        ],
    )


def _numbers(data: Tables) -> Mapping[str, str]:
    accounts = [row for row in data["accounts"].to_pylist() if row["policy"] in PRINTED]
    losses = data["losses"]
    last = where(data["errors"], mechanism="hybrid").to_pylist()[-1]
    printed = sorted(f"{row['as_printed']:g}" for row in accounts)
    return {
        "total": f"{max(row['total'] for row in accounts):g}",
        "printed": f"{printed[0]} to {printed[-1]}",
        "largest": f"{(losses['means'].to_numpy() + losses['quantiles'].to_numpy()).max():g}",
        "length": f"{last['length']:,}",
        "error": f"{last['measured']:.0f}",
    }


_COSTS = (
    "A reward enters the running sum of one arm and one window of that arm. It costs ε_M + ε_p, and not 2ε_p, "
    "since a person pulls only one arm. Picks use only released means and released quantiles, so they are "
    "post-processing and cost nothing more for any ε_S. The noise of the pick provides exploration, not privacy. "
    "With exact means, every pick after a person’s visit would depend on that person’s reward, and T picks at ε_S "
    "each would compose."
)
_PICKS = (
    "ε_S is the cost of a pick that uses a person’s own scores, as in a contextual bandit. This holds only if the "
    "scores are clipped to the released quantiles, since only then do the released ranges bound their changes. "
    "The paper does not say that it clips them; “Bandits: do the choices matter?” shows both. By the paper’s own "
    "sum, kRR with ε_S = 4 spends 5, and the others 4."
)

BANDIT_PRIVACY = Experiment(
    name="bandit-privacy",
    title="Bandits: the privacy of the whole policy",
    caption=(
        "Left: the cost of one reward through running sums and quantiles: at most {total}, where the paper counts "
        "{printed}. Middle: the loss of each of 1,000 rewards of one arm; it never passes {largest}. Right: the "
        "error of running sums of rewards in [0, 1] at ε = 1. After {length} rewards it is at most {error} with "
        "the hybrid mechanism in 95 % of the streams."
    ),
    description=(
        "Three panels: bars of ε for each private policy, split into running sums and quantiles, with the "
        "paper's sum as a mark; the loss of each reward by its place in an arm's stream, never above 2; measured "
        "errors of the binary and the hybrid mechanism below their bounds."
    ),
    notes={
        "neighbours": "two worlds that differ in the rewards of one step, so in one person’s reward; a person who "
        "comes back m times loses m times as much",
        "released": "every pick, every private mean, every private quantile",
        "error": f"95 % quantile over {STREAMS} streams, and the bound of Chan, Shi and Song at δ = 0.05",
        "noise": "floating point from NumPy’s generator: a simulation, not a release",
    },
    discussion=(_COSTS, _PICKS),
    plan=_plan,
    draw=_draw,
    listings=lambda data: [_listing(data)],
    numbers=_numbers,
)
