"""The sensitivity check: other reward ranges, other windows, and scores clipped to the quantiles."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

from experiments import drawing
from experiments.arrays import FloatArray
from experiments.bandit.origin import note, provenance
from experiments.bandit.outcomes import estimate
from experiments.bandit.runs import SETTINGS, plan_settings
from experiments.bandit.shift import SETUP
from experiments.bandit.styles import POLICY_STYLES
from experiments.experiment import Experiment, Listing
from experiments.tables import Tables, where

__all__ = ["BANDIT_ROBUSTNESS"]


POLICIES = ("rnm", "rs", "gem", "mgem")


def _shares(table: pa.Table, policy: str, setting: str, *phases: str) -> FloatArray:
    """Return a policy's earnings as a share of the oracle's, in each world."""
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
        for lift, policy in zip(
            (0.18, 0.06, -0.06, -0.18), POLICIES, strict=True
        ):  # so that no mark covers another
            style = POLICY_STYLES[policy]
            found = [estimate(_shares(table, policy, setting, phase)) for setting in SETTINGS]
            panel.errorbar(
                [one.mean for one in found],
                places + lift,
                xerr=[one.margin for one in found],
                color=style.color,
                marker=style.marker,
                linestyle="none",
                markersize=6,
            )
        panel.set(
            title=f"{phase.capitalize()} the shift", xlabel="share of the oracle’s earnings", xlim=(0.3, 1.02)
        )
    before.set_yticks(places, SETTINGS)
    handles = [drawing.handle(POLICY_STYLES[policy], linestyle="none") for policy in POLICIES]
    drawing.bottom_legend(figure, handles, columns=4)
    note(figure, data)
    return figure


def _listing(data: Tables) -> Listing:
    return Listing(
        caption="Share of the oracle’s earnings over all steps, with 95 % confidence intervals.",
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


def _numbers(data: Tables) -> Mapping[str, str]:
    table = data["settings"]
    phases = ("before", "after")
    means = {
        (policy, setting): float(_shares(table, policy, setting, *phases).mean())
        for policy in POLICIES
        for setting in SETTINGS
    }
    leads = sum(max(POLICIES, key=lambda policy: means[policy, setting]) == "mgem" for setting in SETTINGS)
    worst = min(SETTINGS, key=lambda setting: means["mgem", setting])
    return {
        "runs": str(_shares(table, "mgem", worst, *phases).size),
        "leads": f"all {leads}" if leads == len(SETTINGS) else f"{leads} of {len(SETTINGS)}",
        "usual": f"{means['mgem', next(iter(SETTINGS))]:.0%}".replace("%", " %"),
        "worst": worst,
        "least": f"{means['mgem', worst]:.0%}".replace("%", " %"),
    }


BANDIT_ROBUSTNESS = Experiment(
    name="bandit-settings",
    title="Bandits: do the choices matter?",
    caption=(
        "The earnings of the policies with quantiles, as a share of the oracle’s, for other reward ranges, other "
        "window sizes, and scores clipped to the released quantiles before the pick. mGEM earns most in {leads} "
        "settings: {usual} of the oracle’s earnings in the paper’s, and {least} in its worst ({worst}). Marks are "
        "means over {runs} runs; error bars are 95 % confidence intervals, and most of them are shorter than the "
        "marks."
    ),
    description=(
        "Two panels, before and after the shift. For each of nine settings, four marks with error bars show the "
        "earnings of RNM, random stopping, GEM and mGEM as a share of the oracle's."
    ),
    notes={
        "runs": "20 for each policy and setting, in the worlds of the paper’s figure; everything else is the same",
        "fast run": SETUP["fast run"],
        "share": "1 − regret / mean reward of the better arm, since clipping changes the rewards",
        "not varied": "kRR, combined GEM and the policies without privacy",
    },
    plan=plan_settings,
    draw=_draw,
    listings=lambda data: [_listing(data), provenance(data)],
    numbers=_numbers,
)
