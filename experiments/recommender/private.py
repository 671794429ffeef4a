"""A protocol that is private from end to end, next to the paper's.

The paper's protocol is not: percentiles of private scores are not private sensitivities, and neither a user's best
500 items nor the items that the user has seen are public. Here, nothing that a private user did is used before the
mechanism:

- the model is trained on public users;
- ranges are the percentiles of other public users' scores, so they are public, and scores are clipped to them;
- the candidates are the 500 items that are most often in those public users' lists;
- an item that the private user has seen gets the lowest score of its range.

Every score then lies in its public range whatever the user did, and one pick is ε-DP for a user's whole history.
Percentiles of private scores (``dps.ranges.from_private_scores``) would cost budget: 1,000 quantiles at a total of
ε have a rank error of about 1,000 · log(resolution)/ε users each, which is thousands for ε = 1. Public percentiles
cost nothing.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import dpselect as dps
from experiments.arrays import BoolArray, FloatArray
from experiments.mechanisms import BETA, build
from experiments.recommender.models import Model
from experiments.recommender.preprocessing import Likes, Split
from experiments.recommender.protocol import Lists, Row, lists
from experiments.recommender.scoring import Step, find_candidates, find_ranges, quiet, score_items

__all__ = ["FAST", "STRONGLY_TILTED", "Sides", "fast_mechanisms", "prepare_sides", "side_rows"]


FAST = ("rnm", "gem", "mgem", "krr", "uniform")
"""Compared mechanisms with a fast exact pmf."""
STRONGLY_TILTED = {"gem-tilt-8": "tilted-gem", "rnm-tilt-8": "tilted-rnm"}
"""The records that are also shown at tilt −8, by their names in tables."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """The mechanism's input, and the value of each pick."""

    users: Lists
    worth: FloatArray
    """The unclipped predicted score of each candidate. A seen item has the lower end of its range."""
    seen: BoolArray


@dataclass(frozen=True, kw_only=True)
class Sides:
    """The same private users under both protocols."""

    paper: Side
    private: Side
    best: FloatArray
    """The highest score of any item that the user has not seen."""


def prepare_sides(model: Model, split: Split, *, step: Step = quiet) -> Sides:
    """Score the test users of a split under the paper's protocol and under the private one."""
    calibration = _given(split.calibration)
    own = find_candidates(model, split.inputs, step=step)
    paper = lists(own, find_ranges(model, split.inputs, step=step), clipped=True)
    public = find_ranges(model, calibration, step=step)
    shared = _most_frequent(find_candidates(model, calibration, step=step).items, split.train.shape[1])
    scores = score_items(model, split.inputs, shared).astype(np.float64)
    seen = np.isneginf(scores)
    worth = np.where(seen, public.lower[shared], scores)
    clipped = dps.ranges.from_bounds(public.lower[shared], public.upper[shared]).clip(worth).scores
    sensitivities = np.broadcast_to(public.sensitivities[shared], clipped.shape)
    return Sides(
        paper=Side(users=paper, worth=own.scores.astype(np.float64), seen=np.zeros(own.scores.shape, dtype=bool)),
        private=Side(users=Lists(scores=clipped, sensitivities=sensitivities), worth=worth, seen=seen),
        best=own.scores.max(axis=1).astype(np.float64),
    )


def side_rows(sides: Sides, epsilon: float, *, gamma: float) -> list[Row]:
    """Return each mechanism's loss under both protocols, measured against the user's best unseen item."""
    return [
        {
            "protocol": name,
            "mechanism": mechanism,
            "epsilon": epsilon,
            **_losses(side, sides.best, chosen),
            "users": len(sides.best),
        }
        for name, side in (("paper", sides.paper), ("private", sides.private))
        for mechanism, chosen in fast_mechanisms(epsilon, gamma=gamma).items()
    ]


def fast_mechanisms(epsilon: float, *, gamma: float) -> dict[str, dps.Mechanism]:
    """Return mechanisms with a fast exact pmf, among them GEM and noisy max at tilt −8."""
    return {name: build(name, epsilon, gamma=gamma) for name in FAST} | {
        name: dps.MECHANISMS[record](epsilon=epsilon, beta=BETA, tilt=-8.0)
        for name, record in STRONGLY_TILTED.items()
    }


def _losses(side: Side, best: FloatArray, mechanism: dps.Mechanism) -> Row:
    chances = mechanism.pmf(side.users.scores, side.users.sensitivities)
    errors = (chances * (best[:, None] - side.worth) ** 2).sum(axis=1)
    return {
        "mean_squared_error": float(errors.mean()),
        "seen_share": float((chances * side.seen).sum(axis=1).mean()),
    }


def _most_frequent(found: NDArray[np.int32], items: int) -> NDArray[np.int32]:
    """Return the items that are in most lists, as many as a list has. Ties go to the more popular item."""
    counts = np.bincount(found.ravel(), minlength=items)
    return np.argsort(-counts, kind="stable")[: found.shape[1]].astype(np.int32)


def _given(likes: Likes | None) -> Likes:
    if likes is None:
        raise ValueError("split must have calibration users")
    return likes
