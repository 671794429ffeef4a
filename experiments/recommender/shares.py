"""Top share on real data, private from end to end: its weights from public users or from released picks.

Everything that a mechanism knows about items comes from public users. Errors are exact and are measured on private
users. The same module puts each mechanism beside the top share that dominates it.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

import dpselect as dps
from experiments.arrays import FloatArray
from experiments.mechanisms import PRIVATE, build
from experiments.recommender.private import HeldOut, People, loss_row
from experiments.recommender.protocol import Row

__all__ = ["MONOTONE", "dominated_rows", "dominating", "losses", "popular", "share_rows", "taught"]

POWERS = (1.0, 2.0, 3.0)
SHARES = tuple(float(share) for share in np.geomspace(1e-5, 0.5, 48))
"""What public users choose from: weights (training likes + ½)^power, and the share."""
CHOOSING_USERS = 300
"""As many calibration users choose power and share."""
ROWS = 100
"""Users at a time, with all items."""
MONOTONE = frozenset(PRIVATE) - {"gem", "mgem", "combined-gem"}
"""Where a higher score never helps another candidate. The least probability is then at one corner of the ranges."""
PARTS = 10
"""How many parts of the candidates, by sensitivity, the search for other least probabilities tells apart."""


def losses(people: People, items: NDArray[np.integer] | slice = slice(None)) -> FloatArray:
    """Return the squared shortfall of each item from the user's best unseen one."""
    return np.maximum(people.best[:, :1] - people.worth[:, items].astype(np.float64), 0.0) ** 2


def share_rows(held_out: HeldOut, epsilon: float, *, seed: int) -> list[Row]:
    """Return the losses of private users by top share: fitted, taught, over all items; and of the best public item.

    - ``top-share-fitted``: weights and share of ``fit_top_share`` on the calibration users.
    - ``top-share-taught``: no public rows; each half of the private users is taught by the other half's picks.
    - ``top-share-popular``: all items compete, by weights of the training users' likes.
    - ``best-public``: always the item with the least loss for calibration users; it costs nothing.
    """
    people, public, shared = held_out.private_people, held_out.public_people, held_out.shared
    scores, lost, seen = people.worth[:, shared].astype(np.float64), losses(people, shared), people.seen[:, shared]
    theirs = losses(public, shared)
    fit = dps.advice.fit_top_share(public.worth[:, shared].astype(np.float64), epsilon=epsilon, losses=theirs)
    chances = {
        "top-share-fitted": fit.mechanism.pmf(scores, weights=fit.weights),
        "top-share-taught": taught(scores, epsilon, seed=seed),
        "best-public": np.broadcast_to(np.eye(shared.size)[theirs.mean(axis=0).argmin()], scores.shape),
    }
    rows = [
        loss_row("private", name, epsilon, (chance * lost).sum(axis=1), (chance * seen).sum(axis=1))
        for name, chance in chances.items()
    ]
    mechanism, weights = popular(held_out, epsilon)
    parts = [
        ((chance * losses(part)).sum(axis=1), (chance * part.seen).sum(axis=1))
        for part in _batches(people)
        for chance in [mechanism.pmf(part.worth.astype(np.float64), weights=weights)]
    ]
    errors, unavailable = (np.concatenate(each) for each in zip(*parts, strict=True))
    return [*rows, loss_row("private", "top-share-popular", epsilon, errors, unavailable)]


def taught(scores: FloatArray, epsilon: float, *, seed: int) -> FloatArray:
    """Return the users' probabilities in a second round: each half is taught by the other half's released picks."""
    mechanism, size = dps.TopShare(epsilon), scores.shape[1]
    picks = mechanism.select(scores, randomness=dps.Randomness.seeded(seed))
    chances = np.empty_like(scores)
    for half in (0, 1):
        weights = dps.advice.weights_from_picks(picks[1 - half :: 2], mechanism, candidates=size)
        chances[half::2] = mechanism.pmf(scores[half::2], weights=weights)
    return chances


def popular(held_out: HeldOut, epsilon: float) -> tuple[dps.TopShare, FloatArray]:
    """Return top share over all items, with the power and the share that suit calibration users best."""
    people = next(_batches(held_out.public_people, CHOOSING_USERS))
    order = np.argsort(-people.worth, axis=1)
    rising = np.take_along_axis(losses(people), order, axis=1)
    users = np.arange(len(order))
    best, chosen = math.inf, (0.0, 1.0)
    for power in POWERS:
        weights = (held_out.likes + 0.5) ** power
        ranked = (weights / weights.sum())[order]
        filled, lost = np.cumsum(ranked, axis=1), np.cumsum(ranked * rising, axis=1)
        for share in SHARES:
            margin = np.minimum((filled < share).sum(axis=1), order.shape[1] - 1)
            before, inside = (
                np.where(margin > 0, total[users, np.maximum(margin - 1, 0)], 0.0) for total in (filled, lost)
            )
            inside += (share - before) * rising[users, margin]
            ignored = 1 / (1 + share * math.expm1(epsilon))
            error = float((ignored * lost[:, -1] + (1 - ignored) * inside / share).mean())
            if error < best:
                best, chosen = error, (power, share)
    power, share = chosen
    return dps.TopShare(epsilon, share=share), np.asarray((held_out.likes + 0.5) ** power, dtype=np.float64)


def dominated_rows(held_out: HeldOut, epsilon: float, *, gamma: float, users: int) -> list[Row]:
    """Return the loss of each of the paper's mechanisms and of the default beside its dominating top share's.

    ``within`` is the share of users at whose rows $c_a ≤ Pr[a] ≤ e^ε c_a$ holds for every candidate: there the
    theorem applies. ``largest_ratio`` is the largest ratio of the two losses over users.
    """
    side, rows, some = held_out.private, list[Row](), slice(users)
    best, worth, given = held_out.best[some, None], side.worth[some], side.users
    lost = (best - worth) ** 2
    for name in PRIVATE:
        if name == "uniform":
            continue
        mechanism = build(name, epsilon, gamma=gamma)
        least = dominating(name, mechanism, held_out)
        total = float(least.sum())
        share = (1 / total - 1) / math.expm1(epsilon)
        beside = dps.TopShare(epsilon, share=min(share, 1.0))
        theirs = mechanism.pmf(given.scores[some], given.sensitivities[some])
        ours = beside.pmf(worth, weights=least)
        inside = ((theirs >= least * (1 - 1e-6)) & (theirs <= least * math.exp(epsilon) * (1 + 1e-6))).all(axis=1)
        before, after = ((chances * lost).sum(axis=1) for chances in (theirs, ours))
        rows.append(
            {
                "mechanism": name,
                "epsilon": epsilon,
                "mean_squared_error": float(before.mean()),
                "dominating": float(after.mean()),
                "share": share,
                "within": float(inside.mean()),
                "largest_ratio": float((after / before).max()),
                "exact": int(name in MONOTONE),
                "users": len(before),
            }
        )
    return rows


def dominating(name: str, mechanism: dps.Mechanism, held_out: HeldOut) -> FloatArray:
    """Return each candidate's least probability over the public ranges of all scores.

    Exact for monotone mechanisms: the candidate is at the lower end of its range and all others at their upper
    ends. For the others it is the least one found: at that corner, at corners that differ by the others'
    sensitivities, and at the calibration users' rows.
    """
    shared = held_out.shared
    lower, upper = (end[shared].astype(np.float64) for end in (held_out.ranges.lower, held_out.ranges.upper))
    sensitivities = held_out.ranges.sensitivities[shared]
    size = shared.size
    own = np.eye(size, dtype=bool)
    rank = np.argsort(np.argsort(-sensitivities, kind="stable"))
    raised = [np.ones(size, dtype=bool)]
    if name not in MONOTONE:
        raised += [rank < part * size // PARTS for part in range(PARTS)]
        raised += [rank >= part * size // PARTS for part in range(1, PARTS)]
    least = np.full(size, np.inf)
    for high in raised:
        corners = np.where(own | ~high, lower, upper)
        least = np.minimum(least, np.diagonal(mechanism.pmf(corners, sensitivities)))
    if name not in MONOTONE:
        rows = np.clip(held_out.public_people.worth[:, shared], lower, upper).astype(np.float64)
        least = np.minimum(least, mechanism.pmf(rows, sensitivities).min(axis=0))
    return np.asarray(least)


def _batches(people: People, rows: int = ROWS) -> Iterator[People]:
    for first in range(0, len(people.best), rows):
        part = slice(first, first + rows)
        yield People(worth=people.worth[part], seen=people.seen[part], best=people.best[part])
