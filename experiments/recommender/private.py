"""A protocol that is private from end to end, next to the paper's.

The paper's protocol is not: percentiles of private scores are not private sensitivities, and neither a user's best
500 items nor the items that the user has seen are public. Here, nothing that a private user did is used before the
mechanism:

- the model is trained on public users;
- ranges are the percentiles of other public users' scores, so they are public, and scores are clipped to them;
- the candidates are the 500 items that are most often in those public users' lists;
- an item that the private user has seen gets the lowest score of its range.

Every score then lies in its public range whatever the user did, and one pick is ε-DP for a user's whole history.
Percentiles of private scores (docs/guide/ranges.md) would cost budget: 1,000 quantiles at a total of
ε have a rank error of about 1,000 · log(resolution)/ε users each, which is thousands for ε = 1. Public percentiles
cost nothing.

Top share (:mod:`.shares`) needs neither ranges nor clipping nor a short list of candidates.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import dpselect as dps
from experiments.arrays import BoolArray, FloatArray
from experiments.files import replacing
from experiments.mechanisms import BETA, PRIVATE, TOP_SHARE, build
from experiments.recommender.models import Model
from experiments.recommender.preprocessing import Likes, Split
from experiments.recommender.protocol import MEASURED, Lists, Row, lists
from experiments.recommender.scoring import Ranges, Step, find_candidates, find_ranges, quiet, score_items

__all__ = [
    "COUNT",
    "EPSILONS",
    "STRONGLY_TILTED",
    "HeldOut",
    "People",
    "Side",
    "loss_row",
    "mechanisms",
    "prepare",
    "side_rows",
]

EPSILONS = (0.1, 1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 16.0)
COUNT = 10
"""The length of a list."""
USERS, LIST_USERS = 1000, 5000
"""The most private and calibration users, and the most training users whose lists are public."""
SLOW_USERS = 200
"""The most users for whom mechanisms with a slow pmf are computed."""
STRONGLY_TILTED = {"gem-tilt-8": "tilted-gem", "rnm-tilt-8": "tilted-rnm"}
"""The records that are also shown at tilt −8, by their names in tables."""


@dataclass(frozen=True, kw_only=True)
class People:
    """Users and their scores of all items."""

    worth: NDArray[np.float32]
    """The predicted scores. An item that the user has seen has the lower end of its public range."""
    seen: BoolArray
    best: FloatArray
    """The scores of each user's ten best unseen items, best first."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """The input of mechanisms that need sensitivities, and the value of each pick."""

    users: Lists
    worth: FloatArray
    """The unclipped predicted score of each candidate. A seen item has the lower end of its range."""
    seen: BoolArray


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """The same private users under both protocols, and what is public."""

    paper: Side
    private_people: People
    public_people: People
    """Calibration users."""
    ranges: Ranges
    """From the calibration users' scores."""
    shared: NDArray[np.int32]
    """The candidates that all private users share."""
    likes: NDArray[np.int64]
    """How many training users like each item."""
    lists: NDArray[np.int32]
    """The ten best unseen items of training users: each list once, and a row in the order of popularity."""

    @cached_property
    def private(self) -> Side:
        """The input of the private protocol."""
        people, shared = self.private_people, self.shared
        worth = people.worth[:, shared].astype(np.float64)
        clipped = np.clip(worth, self.ranges.lower[shared], self.ranges.upper[shared])
        sensitivities = np.broadcast_to(self.ranges.sensitivities[shared], clipped.shape)
        users = Lists(scores=clipped, sensitivities=sensitivities)
        return Side(users=users, worth=worth, seen=people.seen[:, shared])

    @property
    def best(self) -> FloatArray:
        """The highest score of any item that the private user has not seen."""
        return self.private_people.best[:, 0]

    def save(self, path: Path) -> None:
        """Write everything to one file."""
        people = {
            f"{name}_{part}": getattr(whose, part)
            for name, whose in (("private", self.private_people), ("public", self.public_people))
            for part in ("worth", "seen", "best")
        }
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.savez(
                file,
                scores=self.paper.users.scores,
                sensitivities=self.paper.users.sensitivities,
                paper_worth=self.paper.worth,
                lower=self.ranges.lower,
                upper=self.ranges.upper,
                shared=self.shared,
                likes=self.likes,
                lists=self.lists,
                **people,
            )

    @classmethod
    def load(cls, path: Path) -> "HeldOut":
        """Read what :meth:`save` wrote."""
        with np.load(path) as kept:
            private, public = (
                People(worth=kept[f"{name}_worth"], seen=kept[f"{name}_seen"], best=kept[f"{name}_best"])
                for name in ("private", "public")
            )
            worth = kept["paper_worth"]
            return cls(
                paper=Side(
                    users=Lists(scores=kept["scores"], sensitivities=kept["sensitivities"]),
                    worth=worth,
                    seen=np.zeros(worth.shape, dtype=bool),
                ),
                private_people=private,
                public_people=public,
                ranges=Ranges(lower=kept["lower"], upper=kept["upper"]),
                shared=kept["shared"],
                likes=kept["likes"],
                lists=kept["lists"],
            )


def prepare(model: Model, split: Split, *, seed: int, most: int = USERS, step: Step = quiet) -> HeldOut:
    """Score the test users of a split under the paper's protocol and under the private one.

    Args:
        model: A model that is trained on ``split.train``.
        split: The users; those of ``train`` and ``calibration`` are public.
        seed: The seed of the choice of users, where there are more than are used.
        most: The number of private users, and of calibration users whose rows are kept.
        step: Receives the progress.
    """
    random = np.random.default_rng(seed)
    calibration, items = _given(split.calibration), split.train.shape[1]
    own = find_candidates(model, split.inputs, step=step)
    paper = lists(own, find_ranges(model, split.inputs, step=step), clipped=True)
    ranges = find_ranges(model, calibration, step=step)
    theirs = find_candidates(model, calibration, step=step)
    some, public = (_some(len(found.items), most, random) for found in (own, theirs))
    listed = sparse.csr_array(split.train[_some(split.train.shape[0], LIST_USERS, random)])
    worth = own.scores[some].astype(np.float64)

    def people(likes: Likes, chosen: NDArray[np.int64], best: NDArray[np.float32]) -> People:
        scores = score_items(model, sparse.csr_array(likes[chosen]), np.arange(items, dtype=np.int32))
        seen = np.isneginf(scores)
        return People(
            worth=np.where(seen, ranges.lower, scores), seen=seen, best=best[chosen, :COUNT].astype(np.float64)
        )

    return HeldOut(
        paper=Side(
            users=Lists(scores=paper.scores[some], sensitivities=paper.sensitivities[some]),
            worth=worth,
            seen=np.zeros(worth.shape, dtype=bool),
        ),
        private_people=people(split.inputs, some, own.scores),
        public_people=people(calibration, public, theirs.scores),
        ranges=ranges,
        shared=_most_frequent(theirs.items, items),
        likes=np.bincount(split.train.indices, minlength=items),
        lists=np.unique(np.sort(find_candidates(model, listed, size=COUNT, step=step).items, axis=1), axis=0),
    )


def side_rows(held_out: HeldOut, epsilon: float, *, gamma: float) -> list[Row]:
    """Return each mechanism's loss under both protocols, measured against the user's best unseen item."""
    return [
        loss_row(name, mechanism, epsilon, *_losses(side, held_out.best, chosen, mechanism))
        for name, side in (("paper", held_out.paper), ("private", held_out.private))
        for mechanism, chosen in mechanisms(epsilon, gamma=gamma).items()
    ]


def mechanisms(epsilon: float, *, gamma: float) -> dict[str, dps.Mechanism]:
    """Return the paper's private mechanisms, the default, two at tilt −8, and top share by its rule."""
    return {name: build(name, epsilon, gamma=gamma) for name in (*PRIVATE, TOP_SHARE.name)} | {
        name: dps.MECHANISMS[record](epsilon=epsilon, beta=BETA, tilt=-8.0)
        for name, record in STRONGLY_TILTED.items()
    }


def loss_row(protocol: str, name: str, epsilon: float, errors: FloatArray, seen: FloatArray) -> Row:
    """Return the row of a table, from each user's expected squared shortfall and chance of a seen item."""
    return {
        "protocol": protocol,
        "mechanism": name,
        "epsilon": epsilon,
        "mean_squared_error": float(errors.mean()),
        "standard_error": float(errors.std(ddof=1)) / len(errors) ** 0.5,
        "seen_share": float(seen.mean()),
        "users": len(errors),
    }


def _losses(side: Side, best: FloatArray, mechanism: dps.Mechanism, name: str) -> tuple[FloatArray, FloatArray]:
    """Return each user's expected squared shortfall, and the chance that an item is picked that the user has seen.

    A slow mechanism is computed for some of the users, relative to a random pick's error for them and for all.
    """
    slow = name in MEASURED and MEASURED[name].has_slow_pmf
    some = slice(SLOW_USERS if slow else None)
    if mechanism.uses_sensitivities:
        chances = mechanism.pmf(side.users.scores[some], side.users.sensitivities[some])
    else:
        chances = mechanism.pmf(side.worth[some])
    lost = (best[:, None] - side.worth) ** 2
    errors = (chances * lost[some]).sum(axis=1) * (lost.mean() / lost[some].mean())
    return errors, (chances * side.seen[some]).sum(axis=1)


def _some(users: int, most: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Return at most ``most`` users, drawn without replacement and then in order."""
    return np.sort(random.permutation(users)[:most])


def _most_frequent(found: NDArray[np.int32], items: int) -> NDArray[np.int32]:
    """Return the items that are in most lists, as many as a list has. Ties go to the more popular item."""
    counts = np.bincount(found.ravel(), minlength=items)
    return np.argsort(-counts, kind="stable")[: found.shape[1]].astype(np.int32)


def _given(likes: Likes | None) -> Likes:
    if likes is None:
        raise ValueError("split must have calibration users")
    return likes
