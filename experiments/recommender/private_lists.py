"""Lists of ten that are private from end to end, by the ε of the whole list.

The best possible list has a user's ten best unseen items, of all items; an item that the user has seen adds nothing
to a list. Shortlists, their lengths, public lists and
their weights come from public users; private users are measured.

- ``public-lists``: one pick by top share among training users' lists, with weights fitted on calibration users.
- ``top-set``: one random set with enough of a shortlist's best (:class:`dpselect.lists.TopSet`).
- ``peeling``: ten picks from a shortlist, by the best of three mechanisms.
- ``opendp``: ten picks from all shared candidates by OpenDP; ``opendp-shortlist``: from the shortlist of peeling.
- ``popular``: the ten items with the highest mean score of calibration users; ``random``: ten shared candidates.
  Neither costs any budget.

A shortlist holds the items with the highest mean score of calibration users. These users also choose its length
and the mechanism that is peeled.
"""

from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.typing import NDArray

import dpselect as dps
from dpselect.lists.public import score_lists
from experiments.arrays import FloatArray, IndexArray
from experiments.mechanisms import build
from experiments.recommender.lists import OPENDP_USERS, opendp_lists
from experiments.recommender.private import COUNT, HeldOut, People
from experiments.recommender.protocol import Row

__all__ = ["EPSILONS", "list_rows"]

EPSILONS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0)
LENGTHS = (12, 15, 20, 30, 50, 100)
"""Of a shortlist."""
PEELED = ("krr", "rnm", "heterogeneous-rnm")
CHOOSING_USERS = 200
"""As many calibration users choose."""


def list_rows(held_out: HeldOut, epsilon: float, *, seed: int, opendp_users: int = OPENDP_USERS) -> list[Row]:
    """Return the quality of each kind of list at a total ε."""
    people = held_out.private_people
    ranked = np.argsort(-_values(held_out.public_people).mean(axis=0), kind="stable")
    rows = [
        _row("public-lists", epsilon, *_public_lists(held_out, epsilon)),
        _row("top-set", epsilon, *_best_of(held_out, ranked, _sets(epsilon), seed)),
    ]
    found, setting = _best_of(held_out, ranked, _peelings(held_out, epsilon), seed)
    rows.append(_row("peeling", epsilon, found, setting))
    length = int(setting.rpartition(" ")[2])
    for name, items in (("opendp", held_out.shared), ("opendp-shortlist", ranked[:length])):
        some = _first(people, opendp_users)
        places = opendp_lists(_clipped(held_out, some, items), held_out.ranges.sensitivities[items], epsilon)
        rows.append(_row(name, epsilon, _ratio(_drawn(some, items[places]), some), f"of {len(items)}"))
    everything = _values(people, held_out.shared).mean(axis=1) * COUNT
    popular = _drawn(people, np.broadcast_to(ranked[:COUNT], (len(people.best), COUNT)))
    rows.append(_row("popular", epsilon, _ratio(popular, people), ""))
    rows.append(_row("random", epsilon, _ratio(everything, people), ""))
    return rows


_Ratio = tuple[float, float, int]
"""A score over the best possible, its standard error, and the number of users."""
_Draw = Callable[[People, NDArray[np.integer], int], IndexArray]
"""Draws a list of items for each user from a ranking of all items."""


def _row(name: str, epsilon: float, found: _Ratio, setting: str) -> Row:
    score, error, users = found
    return {
        "mechanism": name,
        "epsilon": epsilon,
        "score": score,
        "score_error": error,
        "users": users,
        "setting": setting,
    }


def _ratio(scores: FloatArray, people: People) -> _Ratio:
    """Return the users' total score over the largest possible."""
    best = people.best.sum(axis=1)
    ratio = float(scores.sum() / best.sum())
    error = float((scores - ratio * best).std(ddof=1) / best.mean() / len(best) ** 0.5)
    return ratio, error, len(best)


def _values(people: People, items: NDArray[np.integer] | slice = slice(None)) -> FloatArray:
    """Return what each item adds to a list."""
    return np.where(people.seen[:, items], 0.0, people.worth[:, items].astype(np.float64))


def _drawn(people: People, items: NDArray[np.integer]) -> FloatArray:
    """Return the score of a list of items for each user."""
    scores, seen = (np.take_along_axis(each, items, axis=1) for each in (people.worth, people.seen))
    return np.asarray(np.where(seen, 0.0, scores).sum(axis=1))


def _first(people: People, users: int) -> People:
    return People(worth=people.worth[:users], seen=people.seen[:users], best=people.best[:users])


def _public_lists(held_out: HeldOut, epsilon: float) -> tuple[_Ratio, str]:
    """Return the exact mean quality of a list picked by top share, with weights fitted on calibration users."""
    people, public, lists = held_out.private_people, held_out.public_people, held_out.lists
    theirs, ours = (score_lists(_values(each), lists) for each in (public, people))
    lost = np.maximum(public.best.sum(axis=1, keepdims=True) - theirs, 0.0)
    fit = dps.advice.fit_top_share(theirs, epsilon=epsilon, losses=lost)
    chances = fit.mechanism.pmf(ours, weights=fit.weights)
    share = fit.mechanism.share
    used = f"{len(lists)} lists, share {'by rule' if share is None else format(share, '.3g')}"
    return _ratio((chances * ours).sum(axis=1), people), used


def _best_of(held_out: HeldOut, ranked: IndexArray, options: dict[str, _Draw], seed: int) -> tuple[_Ratio, str]:
    """Return the quality of the option that suits calibration users best, for private users, and its name."""
    public = _first(held_out.public_people, CHOOSING_USERS)
    chosen = max(options, key=lambda name: float(_drawn(public, options[name](public, ranked, seed)).sum()))
    people = held_out.private_people
    return _ratio(_drawn(people, options[chosen](people, ranked, seed + 1)), people), chosen


def _sets(epsilon: float) -> dict[str, _Draw]:
    mechanism = dps.lists.TopSet(epsilon, count=COUNT)

    def draw(length: int) -> _Draw:
        def drawn(people: People, ranked: NDArray[np.integer], seed: int) -> IndexArray:
            items = ranked[:length]
            scores = _values(people, items)
            return np.asarray(items[mechanism.select(scores, randomness=dps.Randomness.seeded(seed))])

        return drawn

    return {f"of {length}": draw(length) for length in LENGTHS}


def _peelings(held_out: HeldOut, epsilon: float) -> dict[str, _Draw]:
    def draw(name: str, length: int) -> _Draw:
        top = dps.TopK(build(name, epsilon / COUNT), COUNT)

        def drawn(people: People, ranked: NDArray[np.integer], seed: int) -> IndexArray:
            items = ranked[:length]
            scores, sensitivities = _clipped(held_out, people, items), held_out.ranges.sensitivities[items]
            return np.asarray(items[top.select(scores, sensitivities, randomness=dps.Randomness.seeded(seed))])

        return drawn

    return {f"{name} of {length}": draw(name, length) for name, length in product(PEELED, LENGTHS)}


def _clipped(held_out: HeldOut, people: People, items: NDArray[np.integer]) -> FloatArray:
    lower, upper = held_out.ranges.lower[items], held_out.ranges.upper[items]
    return np.clip(_values(people, items), lower, upper)
