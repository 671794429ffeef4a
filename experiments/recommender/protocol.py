"""The measurements on the users' lists: errors over ε, correlations, ratios of mGEM to GEM, curves over the tilt.

Selection probabilities are exact for every mechanism. Those of random stopping and RNMH take milliseconds for 500
candidates, and those of combined GEM twice as long as GEM's. If there are very many users, their errors come from a
sample. The tables hold the number of users and the standard error that comes from the sample.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import pyarrow as pa

import dpselect as dps
from dpselect.registry import Record
from experiments.arrays import FloatArray, IndexArray
from experiments.mechanisms import BETA, COMPARED, TOP_SHARE, build
from experiments.recommender.scoring import Candidates, Ranges

__all__ = [
    "EPSILONS",
    "MEASURED",
    "RATIO_EPSILON",
    "TILTS",
    "TILT_CURVES",
    "Lists",
    "correlation_table",
    "error_row",
    "lists",
    "ratio_table",
    "tilt_rows",
]

Row: TypeAlias = dict[str, float | int | str]

EPSILONS = (0.01, 0.1, 1.0, 2.0, 4.0, 8.0, 16.0)
MEASURED: Mapping[str, Record] = MappingProxyType({**COMPARED, TOP_SHARE.name: TOP_SHARE})
"""The records of the mechanisms whose errors are computed: the compared ones, and top share by its rule."""
SOME_USERS = {"combined-gem": 3000}
"""Mechanisms whose error is computed for at most that many users, drawn at random."""
SLOW_USERS = 300
"""The same for mechanisms with a slow exact pmf."""
ROWS = 2048
"""Users at a time."""
RATIO_EPSILON = 1.0
"""The budget at which GEM and mGEM are compared user by user; the paper does not print its own."""
TILT_CURVES = ("gem", "tilted-rnm")
"""The records whose curves over the tilt are shown."""
RATIO_TRIALS = 50
TILTS = (-32.0, -16.0, -12.0, -8.0, -6.0, -4.0, -3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
CORRELATION_BIN = 0.02
RATIO_BIN = 0.02


@dataclass(frozen=True, kw_only=True)
class Lists:
    """Each user's candidates: their scores, which are private, and their sensitivities."""

    scores: FloatArray
    sensitivities: FloatArray

    def __len__(self) -> int:
        return len(self.scores)

    def sample(self, size: int, seed: int) -> "Lists":
        """Return the lists of some users, drawn without replacement, or of all if there are no more."""
        if size >= len(self):
            return self
        users = np.sort(np.random.default_rng(seed).choice(len(self), size, replace=False))
        return Lists(scores=self.scores[users], sensitivities=self.sensitivities[users])

    def batches(self, rows: int = ROWS) -> Iterator["Lists"]:
        """Yield a few users at a time."""
        for first in range(0, len(self), rows):
            part = np.s_[first : first + rows]
            yield Lists(scores=self.scores[part], sensitivities=self.sensitivities[part])


def lists(candidates: Candidates, ranges: Ranges, *, clipped: bool) -> Lists:
    """Return the scores and sensitivities that a mechanism gets.

    A score that is clipped to its item's range cannot move by more than the width of the range, whatever a user
    does: the widths *are* sensitivities. Without clipping they are not, and no guarantee holds.
    """
    scores = candidates.scores.astype(np.float64)
    if clipped:
        scores = np.clip(scores, ranges.lower[candidates.items], ranges.upper[candidates.items])
    return Lists(scores=scores, sensitivities=ranges.sensitivities[candidates.items])


def error_row(
    users: Lists, mechanism: str, epsilon: float, *, gamma: float, seed: int, slow_users: int = SLOW_USERS
) -> Row:
    """Return the mean squared difference from each user's best score, for one mechanism at one ε.

    Each user's error is exact. Where only some users are computed, the result is their total error divided by that
    of a random pick, times a random pick's mean error over all users: users differ more than such ratios do. The
    standard error comes from the choice of users; it is 0 if all are computed.
    """
    chosen = build(mechanism, epsilon, gamma=gamma)
    most = slow_users if MEASURED[mechanism].has_slow_pmf else SOME_USERS.get(mechanism, len(users))
    some = users.sample(most, seed)
    errors = np.concatenate([dps.expected_error(chosen, b.scores, b.sensitivities) for b in some.batches()])
    mean, deviation = float(errors.mean()), 0.0
    if len(some) < len(users):
        bases, everybody = _random_errors(some), float(_random_errors(users).mean())
        ratio = mean / float(bases.mean())
        spread = float((errors - ratio * bases).var(ddof=1)) / len(some) * (1 - len(some) / len(users))
        mean, deviation = ratio * everybody, spread**0.5 * everybody / float(bases.mean())
    return {
        "mechanism": mechanism,
        "epsilon": epsilon,
        "mean_squared_error": mean,
        "standard_error": deviation,
        "users": len(some),
    }


def _random_errors(users: Lists) -> FloatArray:
    """Return each user's error of a random pick."""
    return np.concatenate(
        [dps.expected_error(build("uniform", 1.0), b.scores, b.sensitivities) for b in users.batches()]
    )


def correlation_table(users: Lists) -> tuple[pa.Table, Row]:
    """Return a histogram of the users' Spearman correlations of scores and sensitivities, and a summary."""
    found = np.concatenate([dps.correlation.spearman(b.scores, b.sensitivities) for b in users.batches()])
    known = found[~np.isnan(found)]
    bins, counts = np.unique(np.floor(known / CORRELATION_BIN), return_counts=True)
    summary: Row = {
        "users": found.size,
        "undefined": int(np.isnan(found).sum()),
        "negative_share": float(np.mean(known < 0)) if known.size else 0.0,
        **{
            f"quantile_{q:02d}": float(np.quantile(known, q / 100)) if known.size else 0.0
            for q in (1, 25, 50, 75, 99)
        },
    }
    return pa.table({"correlation": np.round((bins + 0.5) * CORRELATION_BIN, 4), "users": counts}), summary


def ratio_table(users: Lists, *, seed: int) -> tuple[pa.Table, Row]:
    """Return a histogram of log(mean score picked by mGEM / by GEM) and of the correlation over users.

    The means are exact in one version, and of 50 draws in the other, as in the paper. A ratio needs two positive
    means; the summary counts the users without.
    """
    correlations, exact, drawn = (np.concatenate(parts) for parts in zip(*_ratios(users, seed), strict=True))
    tables, summary = [], dict[str, float | int | str](users=len(users), epsilon=RATIO_EPSILON)
    for version, ratios in (("exact", exact), ("50 draws", drawn)):
        known = ~np.isnan(ratios) & ~np.isnan(correlations)
        tables.append(_binned(version, correlations[known], ratios[known]))
        if version == "exact":
            summary |= _trend(correlations[known], ratios[known]) | {"undefined": int((~known).sum())}
    return pa.concat_tables(tables), summary


def _ratios(users: Lists, seed: int) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    pair = [build(name, RATIO_EPSILON) for name in ("mgem", "gem")]
    random = np.random.default_rng(seed)
    for batch in users.batches(256):
        chances = [mechanism.pmf(batch.scores, batch.sensitivities) for mechanism in pair]
        exact = [(chance * batch.scores).sum(axis=1) for chance in chances]
        drawn = [
            np.take_along_axis(batch.scores, _trials(chance, random), axis=1).mean(axis=1) for chance in chances
        ]
        yield dps.correlation.spearman(batch.scores, batch.sensitivities), _log_ratio(*exact), _log_ratio(*drawn)


def _trials(chances: FloatArray, random: np.random.Generator) -> IndexArray:
    """Draw from exact probabilities: the same law as ``select``, at a hundredth of its cost."""
    steps = np.cumsum(chances, axis=1)
    places = random.random((len(chances), RATIO_TRIALS)) * steps[:, -1:]
    return np.stack([np.searchsorted(row, place, side="right") for row, place in zip(steps, places, strict=True)])


def _log_ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    positive = (above > 0) & (below > 0)
    return np.log(np.where(positive, above, np.nan) / np.where(positive, below, 1.0))


def _binned(version: str, correlations: FloatArray, ratios: FloatArray) -> pa.Table:
    cells = np.floor(np.stack([correlations / CORRELATION_BIN, ratios / RATIO_BIN], axis=1))
    cells, counts = np.unique(cells, axis=0, return_counts=True)
    return pa.table(
        {
            "version": [version] * len(cells),
            "correlation": np.round((cells[:, 0] + 0.5) * CORRELATION_BIN, 4),
            "log_ratio": np.round((cells[:, 1] + 0.5) * RATIO_BIN, 4),
            "users": counts,
        }
    )


def _trend(correlations: FloatArray, ratios: FloatArray) -> dict[str, float | int]:
    """Return how the ratio grows with the correlation, and its sign where the correlation is negative."""
    negative = correlations < 0
    # The arguments are scores and non-negative sensitivities; here, ratios and shifted correlations.
    trend = float(dps.correlation.spearman(ratios, correlations + 1)) if ratios.size else 0.0
    return {
        "trend": trend,
        "negative_users": int(negative.sum()),
        "negative_ratio_share_where_negative": float(np.mean(ratios[negative] < 0)) if negative.any() else 0.0,
        "mean_ratio_where_negative": float(ratios[negative].mean()) if negative.any() else 0.0,
        "mean_ratio_where_positive": float(ratios[~negative].mean()) if (~negative).any() else 0.0,
    }


def _exact_error(mechanism: dps.Mechanism, users: Lists) -> float:
    parts = [dps.expected_error(mechanism, batch.scores, batch.sensitivities) for batch in users.batches()]
    return float(np.concatenate(parts).mean())


def tilt_rows(users: Lists, epsilon: float, tilts: Sequence[float] = TILTS) -> list[Row]:
    """Return the errors of GEM and of noisy max at each tilt. GEM at tilt −1 is mGEM."""
    return [
        {
            "family": name,
            "tilt": tilt,
            "epsilon": epsilon,
            "mean_squared_error": _exact_error(dps.MECHANISMS[name](epsilon=epsilon, beta=BETA, tilt=tilt), users),
            "users": len(users),
        }
        for name in TILT_CURVES
        for tilt in tilts
    ]
