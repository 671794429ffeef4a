"""The same task with everything accounted for, next to the paper's.

The paper's protocol is not private from end to end: percentiles of private scores are not private sensitivities,
the list of a user's best 500 items is not public, and neither is which items the user has seen. Here nothing that
a private user did is used before the mechanism:

- the model is trained on public users;
- ranges are the percentiles of other public users' scores, and so are public: scores are clipped to them;
- the candidates are the 500 items that are most often in those public users' lists;
- an item that the private user has seen gets the lowest score of its range.

Then every score lies in its public range whatever the user did, and one pick is ε-DP for the whole history of a
user. Percentiles of private scores would cost budget of their own: 1,000 quantiles at a total of ε have a rank
error of about 1,000 · log(resolution)/ε users each, thousands for ε = 1. Public ones cost nothing.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

import dpselect as dps
from experiments.mechanisms import contenders
from experiments.recommender.models import Model
from experiments.recommender.preprocessing import Likes, Split
from experiments.recommender.protocol import BETA, Lists, Row, lists
from experiments.recommender.scoring import Step, find_candidates, find_ranges, quiet, score_items

__all__ = ["Sides", "prepare_sides", "side_rows", "tilted_contenders"]

FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Side:
    """What the mechanism gets, and what its picks are worth."""

    users: Lists
    worth: FloatArray
    """The predicted score of each candidate as it is, unclipped; a seen item's is that of its range's lower end."""
    seen: NDArray[np.bool_]


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
    clipped = np.clip(worth, public.lower[shared], public.upper[shared])
    sensitivities = np.broadcast_to(public.sensitivities[shared], clipped.shape)
    return Sides(
        paper=Side(users=paper, worth=own.scores.astype(np.float64), seen=np.zeros(own.scores.shape, dtype=bool)),
        private=Side(users=Lists(scores=clipped, sensitivities=sensitivities), worth=worth, seen=seen),
        best=own.scores.max(axis=1).astype(np.float64),
    )


def side_rows(sides: Sides, epsilon: float, *, gamma: float) -> list[Row]:
    """Return what each mechanism loses under both protocols, measured against the user's best unseen item."""
    return [
        {
            "protocol": name,
            "mechanism": mechanism,
            "epsilon": epsilon,
            **_losses(side, sides.best, contender),
            "users": len(sides.best),
        }
        for name, side in (("paper", sides.paper), ("private", sides.private))
        for mechanism, contender in tilted_contenders(epsilon, gamma=gamma).items()
    ]


def tilted_contenders(epsilon: float, *, gamma: float) -> dict[str, dps.Mechanism]:
    """Return mechanisms with a fast exact law, and the two families at tilt −8."""
    paper = contenders(epsilon, beta=BETA, gamma=gamma)
    return {name: paper[name] for name in ("rnm", "gem", "mgem", "krr", "uniform")} | {
        "gem-tilt-8": dps.GEM(epsilon=epsilon, beta=BETA, tilt=-8.0),
        "rnm-tilt-8": dps.NoisyMax(epsilon=epsilon, beta=BETA, tilt=-8.0),
    }


def _losses(side: Side, best: FloatArray, mechanism: dps.Mechanism) -> Row:
    chances = mechanism.pmf(side.users.scores, side.users.sensitivities)
    errors = (chances * (best[:, None] - side.worth) ** 2).sum(axis=1)
    return {
        "mean_squared_error": float(errors.mean()),
        "seen_share": float((chances * side.seen).sum(axis=1).mean()),
    }


def _most_frequent(found: NDArray[np.int32], items: int) -> NDArray[np.int32]:
    """Return as many items as a list has: those in most lists, the more popular first among equals."""
    counts = np.bincount(found.ravel(), minlength=items)
    return np.argsort(-counts, kind="stable")[: found.shape[1]].astype(np.int32)


def _given(likes: Likes | None) -> Likes:
    if likes is None:
        raise ValueError("split must have calibration users")
    return likes
