"""Private lists of ten: how good they are over the ε of the whole list, by dpselect and by OpenDP.

The lists are drawn and compared with the ten candidates of the highest scores. Two references cost no budget: a
random list, and the list of the ten highest midpoints of the public ranges.
"""

import dataclasses
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np

import dpselect as dps
from experiments import report
from experiments.arrays import FloatArray, IndexArray
from experiments.mechanisms import BETA, build
from experiments.recommender import tuned
from experiments.recommender.private import COUNT, STRONGLY_TILTED
from experiments.recommender.protocol import Lists, Row

__all__ = [
    "COUNT",
    "DELTA",
    "EPSILONS",
    "FLOATS",
    "MEASURES",
    "OPENDP_USERS",
    "Measured",
    "list_rows",
    "measure",
    "opendp_lists",
    "provenance",
]

EPSILONS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""The ε of a whole list."""
DELTA = 1e-6
WORTH_A_DELTA = 1.01
"""A δ is shown where it allows a pick at least this multiple of ε."""
OPENDP_USERS = 100
"""OpenDP computes with fractions, a row at a time: up to 50 milliseconds a list."""
TUNING_SHARE, MOST_TUNING = 0.1, 1.0
"""The choice of tuning costs this share of the total ε, and no more than this."""
CAP = (1e-6, 1.0)
"""The range of caps on the mean regret of a pick in a list."""
MEASURES = ("score", "recall", "ndcg")
FLOATS = ("delta", "pick_epsilon", *MEASURES, *(f"{name}_error" for name in MEASURES))
"""The columns that are no whole numbers, even where a file holds only such."""

Maker = Callable[[float], dps.Mechanism]


def _plain(name: str) -> Maker:
    return lambda epsilon: build(name, epsilon)


def _tilted(record: str) -> Maker:
    return lambda epsilon: dps.MECHANISMS[record](epsilon=epsilon, beta=BETA, tilt=-8.0)


MAKERS: dict[str, Maker] = {
    **{name: _plain(name) for name in ("rnm", "heterogeneous-rnm", "gem", "mgem", "krr")},
    **{name: _tilted(record) for name, record in STRONGLY_TILTED.items()},
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measured:
    """How good lists are, a number for each user."""

    score: FloatArray
    """The sum of the scores of a list."""
    best: FloatArray
    """The largest possible sum."""
    recall: FloatArray
    ndcg: FloatArray

    def __repr__(self) -> str:
        return f"Measured({len(self.score)} users)"  # scores are private

    def row(self) -> Row:
        """Return means over users with their standard errors. The score is relative to the largest possible."""
        users, ratio = len(self.score), float(self.score.sum() / self.best.sum())
        # The error of a ratio of means.
        spreads = ((self.score - ratio * self.best) / self.best.mean(), self.recall, self.ndcg)
        means = (ratio, float(self.recall.mean()), float(self.ndcg.mean()))
        errors = (float(spread.std(ddof=1)) / users**0.5 for spread in spreads)
        return {
            **dict(zip(MEASURES, means, strict=True)),
            **{f"{name}_error": error for name, error in zip(MEASURES, errors, strict=True)},
            "users": users,
        }

    @classmethod
    def mixed(cls, parts: Sequence["Measured"], chances: FloatArray) -> "Measured":
        """Return the expected measures if one of several mechanisms is chosen with these chances."""
        mixed = {name: chances @ np.stack([getattr(part, name) for part in parts]) for name in MEASURES}
        return cls(best=parts[0].best, **mixed)


def measure(lists: IndexArray, scores: FloatArray) -> Measured:
    """Measure a list of positions for each user.

    Candidates that tie with the last of the true list count as found. The gain in NDCG is the score above the
    user's lowest.
    """
    count = lists.shape[1]
    ordered = np.sort(scores, axis=1)[:, ::-1]
    found = np.take_along_axis(scores, lists, axis=1)
    lowest = ordered[:, -1:]
    discount = 1 / np.log2(np.arange(count) + 2)
    ideal, gained = ((part - lowest) @ discount for part in (ordered[:, :count], found))
    return Measured(
        score=found.sum(axis=1),
        best=ordered[:, :count].sum(axis=1),
        recall=(found >= ordered[:, count - 1, None]).mean(axis=1),
        ndcg=np.divide(gained, ideal, out=np.ones_like(gained), where=ideal > 0),
    )


def list_rows(
    users: Lists,
    midpoints: FloatArray,
    *,
    seed: int,
    fleet: int = 0,
    epsilons: Sequence[float] = EPSILONS,
    opendp_users: int = OPENDP_USERS,
) -> list[Row]:
    """Return how good the lists of each mechanism are at each total ε, and at δ = 10⁻⁶ where that allows more.

    Args:
        users: The users, or a sample of them.
        midpoints: The midpoints of the ranges of their items. They are public if the ranges are.
        seed: Makes the draws repeatable.
        fleet: How many users there are; tuning is for all of them. By default, as many as are given.
        epsilons: The ε of a whole list.
        opendp_users: How many of the users get lists by OpenDP.
    """
    some = users.sample(opendp_users, seed)
    references = {
        "random": _measured(dps.TopK(dps.Uniform(), COUNT), users, seed),
        "public": measure(np.argsort(-midpoints, axis=1, kind="stable")[:, :COUNT], users.scores),
    }
    rows = [_row(name, epsilon, 0.0, 0.0, found) for name, found in references.items() for epsilon in epsilons]
    for epsilon in epsilons:
        for name, make in MAKERS.items():
            for top, delta in _tops(epsilon, make):
                found = _measured(top, users, seed)
                rows.append(_row(name, epsilon, delta, top.mechanism.guarantee.epsilon, found))
        rows.append(_tuned_row(users, epsilon, seed, max(1, fleet // len(users))))
        pure, concentrated = _opendp_scale(epsilon, 0.0), _opendp_scale(epsilon, DELTA)
        rows.append(_opendp_row(some, epsilon, 0.0, pure))
        if concentrated < pure:
            rows.append(_opendp_row(some, epsilon, DELTA, concentrated))
    return rows


def provenance() -> dict[str, object]:
    """Return what made the table, for the summary of a run."""
    return {
        "lists_commit": report.commit(),
        "lists_date": f"{datetime.now(UTC):%Y-%m-%d}",
        "lists_opendp": version("opendp"),
    }


def _row(name: str, epsilon: float, delta: float, pick: float, found: Measured, chosen: str = "") -> Row:
    return {
        "mechanism": name,
        "epsilon": epsilon,
        "delta": delta,
        "pick_epsilon": pick,
        **found.row(),
        "chosen": chosen,
    }


def _tops(epsilon: float, make: Maker) -> list[tuple[dps.TopK, float]]:
    """Return the list of a total ε and, if δ allows more for each pick with Gumbel noise, that of (ε, δ)."""
    pure = dps.TopK.within(epsilon, mechanism=make, count=COUNT)
    if not hasattr(pure.mechanism, "noise"):
        return [(pure, 0.0)]

    def gumbel(budget: float) -> Any:  # noqa: ANN401 - the mechanism's own class
        return dataclasses.replace(pure.mechanism, epsilon=budget, noise="gumbel")  # type: ignore[type-var]

    loose = dps.TopK.within(epsilon, delta=DELTA, mechanism=gumbel, count=COUNT)
    gains = loose.mechanism.guarantee.epsilon > WORTH_A_DELTA * pure.mechanism.guarantee.epsilon
    return [(pure, 0.0), *([(loose, DELTA)] if gains else [])]


def _measured(top: dps.TopK, users: Lists, seed: int) -> Measured:
    """Measure one drawn list for each user."""
    randomness = dps.Randomness.seeded(seed)
    return measure(top.select(users.scores, users.sensitivities, randomness=randomness), users.scores)


def _tuned_row(users: Lists, epsilon: float, seed: int, copies: int) -> Row:
    """Return the expected quality of the member that tuning chooses for all users at once.

    The choice is paid from the total. A user's error is the mean regret of the picks of one drawn list: it depends
    on no other user, so the guarantee of :func:`dpselect.tuning.tune` holds for it as well. Each user stands for
    ``copies`` users of the fleet.
    """
    tuning = min(TUNING_SHARE * epsilon, MOST_TUNING)
    pick = (epsilon - tuning) / COUNT
    pool = [*tuned.pool(pick), build("heterogeneous-rnm", pick)]
    found = [_measured(dps.TopK(each, COUNT), users, seed) for each in pool]
    errors = np.stack([each.best - each.score for each in found]) / COUNT
    chances = dps.tuning.choice_pmf(errors, tuning, cap=CAP, copies=copies)
    likely = int(np.argmax(chances))
    chosen = f"{pool[likely].label} ({chances[likely]:.0%})"
    return _row("tuned", epsilon, 0.0, pick, Measured.mixed(found, chances), chosen)


def _opendp_row(users: Lists, epsilon: float, delta: float, scale: float) -> Row:
    """Return how good OpenDP's lists are."""
    found = measure(opendp_lists(users.scores, users.sensitivities, epsilon, delta), users.scores)
    # The ε of one pick: of noise of this scale, a score moves by 2Δ relative to another.
    return _row("opendp", epsilon, delta, 2 / scale, found)


def opendp_lists(scores: FloatArray, sensitivities: FloatArray, epsilon: float, delta: float = 0.0) -> IndexArray:
    """Return OpenDP's lists at a total (ε, δ). It knows one sensitivity, so it gets each user's largest."""
    scale, largest = _opendp_scale(epsilon, delta), np.broadcast_to(sensitivities, scores.shape).max(axis=1)
    lists = [
        _opendp_top_k(scale * float(width), delta)(row.tolist()) for row, width in zip(scores, largest, strict=True)
    ]
    return np.array(lists, dtype=np.int64)


def _opendp_top_k(scale: float, delta: float) -> Any:  # noqa: ANN401 - OpenDP's measurements have no useful type
    import opendp.prelude as dp  # noqa: PLC0415 - slow to import

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
    measure_ = dp.max_divergence() if delta == 0 else dp.zero_concentrated_divergence()
    return dp.m.make_noisy_top_k(*space, measure_, k=COUNT, scale=scale)


@cache
def _opendp_scale(epsilon: float, delta: float) -> float:
    """Return the scale of OpenDP's noise at which a list of sensitivity 1 costs (ε, δ) by OpenDP's own account."""
    import opendp.prelude as dp  # noqa: PLC0415 - slow to import

    if delta == 0:
        return 2 * COUNT / epsilon

    def costing(scale: float) -> Any:  # noqa: ANN401
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(_opendp_top_k(scale, delta)), delta)

    return float(dp.binary_search_param(costing, d_in=1.0, d_out=(epsilon, delta), T=float))
