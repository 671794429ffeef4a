"""Fleets of users to tune on: the trials of the paper's scenarios, and the test users of MovieLens-1M."""

import os
from dataclasses import dataclass
from pathlib import Path

from experiments.arrays import FloatArray
from experiments.recommender.datasets import load
from experiments.recommender.models import fit_ease
from experiments.recommender.preprocessing import hold_out_users
from experiments.recommender.protocol import lists
from experiments.recommender.scoring import find_candidates, find_ranges
from experiments.scenarios import SCENARIOS, Scenario

__all__ = ["MOVIELENS", "Fleet", "data_folder", "movielens", "scenario_fleet"]

MOVIELENS = "MovieLens-1M (EASE)"
USERS = 5000
CANDIDATES = 100
L2 = 600.0
SEED = 42
LOWEST = 1e-48
"""The smallest cap to try, relative to the largest. It is below all errors at ε = 100."""


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """Users, and the public information about them."""

    title: str
    scores: FloatArray
    """The distinct rows of scores."""
    copies: int
    """The number of users with each row."""
    sensitivities: FloatArray
    largest_error: float
    """The squared distance between the highest and the lowest score that clipping allows. It is public."""
    gamma: float

    @property
    def users(self) -> int:
        """The number of users."""
        return len(self.scores) * self.copies

    @property
    def cap(self) -> tuple[float, float]:
        """The range of caps to search."""
        return LOWEST * self.largest_error, self.largest_error


def scenario_fleet(number: int, rows: int) -> Fleet:
    """Return a fleet of 5000 users with the scores of a scenario's first trials, equally many users for each.

    In scenarios 1 to 3 all trials are equal, so all users are equal. Their scores are −1 or 1 by definition.
    """
    scenario = SCENARIOS[number]()
    varies = len(scenario.scores) > 1
    return Fleet(
        title=scenario.title,
        scores=scenario.scores[:rows],
        copies=USERS // len(scenario.scores[:rows]),
        sensitivities=scenario.sensitivities,
        largest_error=_squared_range(scenario) if varies else 4.0,
        gamma=0.05,
    )


def _squared_range(scenario: Scenario) -> float:
    """Return the squared distance between the highest and the lowest end of all clipping ranges."""
    half = scenario.sensitivities / 2
    return float((scenario.midpoints + half).max() - (scenario.midpoints - half).min()) ** 2


def data_folder() -> Path | None:
    """Return the folder in DPSELECT_DATA if it contains MovieLens-1M."""
    setting = os.environ.get("DPSELECT_DATA")
    folder = Path(setting) if setting else None
    return folder if folder is not None and (folder / "ml-1m.parquet").is_file() else None


def movielens(folder: Path, users: int) -> Fleet:
    """Return test users of MovieLens-1M: EASE trained on the others scores each user's best unseen items.

    This follows the recommender's protocol: likes are ratings of 4 and 5; an item's range is from the 1st to the
    99th percentile of its scores over test users; scores are clipped to it, and its width is the sensitivity.
    Lists have 100 items here, not 500.
    """
    split = hold_out_users(load("ml-1m", folder), test_users=users, calibration_users=1, seed=SEED)
    model = fit_ease(split.train, l2=L2)
    candidates = find_candidates(model, split.inputs, size=CANDIDATES)
    ranges = find_ranges(model, split.inputs)
    rows = lists(candidates, ranges, clipped=True)
    extent = float(ranges.upper.max()) - float(ranges.lower.min())
    return Fleet(
        title=MOVIELENS,
        scores=rows.scores,
        copies=1,
        sensitivities=rows.sensitivities,
        largest_error=extent**2,
        gamma=0.008,
    )
