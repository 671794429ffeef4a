"""The sensitivity check: other ranges for rewards, other windows, and scores clipped to the quantiles."""

from typing import TypeAlias

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from experiments import drawing
from experiments.bandit.outcomes import estimate
from experiments.bandit.runs import SETTINGS, plan_settings
from experiments.bandit.styles import POLICY_STYLES
from experiments.experiment import Experiment, Listing
from experiments.tables import Tables, where

__all__ = ["BANDIT_ROBUSTNESS"]

FloatArray: TypeAlias = NDArray[np.float64]

POLICIES = ("rnm", "rs", "gem", "mgem")


def _shares(table: pa.Table, policy: str, setting: str, *phases: str) -> FloatArray:
    """Return what share of the oracle's earnings a policy made, in each world."""
    chosen = where(table, policy=policy, setting=setting)
    lost, best = (
        sum(np.asarray(chosen[f"{kind}_{phase}"].to_numpy()) for phase in phases) for kind in ("regret", "oracle")
    )
    return np.asarray(1 - lost / best)


def _draw(data: Tables) -> Figure:
    table = data["settings"]
    figure, ((before, after),) = drawing.grid(rows=1, columns=2, heights=(3.4,), width=5.0)
    places = np.arange(len(SETTINGS))[::-1]
    for panel, phase in ((before, "before"), (after, "after")):
        for policy in POLICIES:
            style = POLICY_STYLES[policy]
            found = [estimate(_shares(table, policy, setting, phase)) for setting in SETTINGS]
            panel.errorbar(
                [one.mean for one in found],
                places,
                xerr=[one.margin for one in found],
                color=style.color,
                marker=style.marker,
                linestyle="none",
                markersize=6,
            )
        panel.set(
            title=f"{phase.capitalize()} the shift", xlabel="share of the oracle’s earnings", xlim=(0.15, 1.02)
        )
    before.set_yticks(places, SETTINGS)
    handles = [
        Line2D([], [], label=style.label, color=style.color, marker=style.marker, linestyle="none")
        for style in (POLICY_STYLES[policy] for policy in POLICIES)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure


def _list(data: Tables) -> Listing:
    return Listing(
        caption="Share of the oracle’s earnings over the whole time, with 95 % confidence intervals.",
        columns=["setting", *(POLICY_STYLES[policy].label for policy in POLICIES)],
        rows=[
            [
                setting,
                *(
                    str(estimate(_shares(data["settings"], policy, setting, "before", "after")))
                    for policy in POLICIES
                ),
            ]
            for setting in SETTINGS
        ],
    )


BANDIT_ROBUSTNESS = Experiment(
    name="bandit-settings",
    title="Bandits: do the choices matter?",
    caption=(
        "What the policies with quantiles earn, as a share of what the oracle would, if rewards are clipped to "
        "another range, windows have another size, or scores are clipped to the released quantiles before the "
        "pick."
    ),
    description=(
        "Two panels, before and after the shift. Nine settings from top to bottom; for each, four marks with "
        "error bars show the share of the oracle's earnings that RNM, random stopping, GEM and mGEM made."
    ),
    choices={
        "runs": "a quarter as many as for the main figure, in the same worlds; all else as there",
        "share": "1 − regret / what the better arm pays on average, since clipping changes what there is to earn",
        "not varied": "kRR, combined GEM and the policies without privacy",
    },
    plan=plan_settings,
    draw=_draw,
    list=_list,
)
