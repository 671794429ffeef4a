"""Utility bounds: what GEM and RNM promise, and what they do."""

from functools import partial

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

import dpselect as dps
from experiments import drawing
from experiments.experiment import Effort, Experiment, Task
from experiments.ledger import Claim, Finding, judge
from experiments.mechanisms import STYLES
from experiments.scenarios import SCENARIOS, FloatArray
from experiments.tables import Tables, where
from experiments.trials import epsilon_grid

__all__ = ["BOUNDS"]

BETA = 0.05
TILTS = (-2.0, -1.0, 0.0, 1.0, 2.0)
RANDOM_CASES = 300
SHOWN = (2, 5)
"""The scenarios that are drawn."""


def any_t_bound(scores: FloatArray, sensitivities: FloatArray, epsilon: float, tilt: float) -> FloatArray:
    """Return, for each candidate, by how much it misses what the bound for any t promises of the pick.

    With L = 2 log(k/β)/ε and t = tilt·L, the pick i satisfies q_i ≥ q_j − Δ_i (L − t) − Δ_j (L + t) for all j, with
    probability at least 1 − β. Positive where candidate i would break the promise.
    """
    level = 2 * np.log(scores.size / BETA) / epsilon
    t = tilt * level
    promised = np.max(scores - sensitivities * (level + t)) - sensitivities * (level - t)
    return np.asarray(promised - scores)
