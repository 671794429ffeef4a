"""Synthetic interactions: a few popular items, many rare ones, and users with tastes.

They are not real data, and every figure says so. They have the property that matters for private picks: the scores
of popular items vary more between users than those of rare items, so scores and sensitivities correlate.
"""

import numpy as np

from experiments.arrays import FloatArray
from experiments.recommender.interactions import Counts, Interactions

__all__ = ["generate"]


TASTES = 12
ZIPF = 0.8
"""Popularity falls with rank as rank^−0.8, about as steeply as in MovieLens."""
FOCUS = 3.0
"""The effect of a matching taste, in units of log-popularity."""
MEAN_LOG_LIKES, SPREAD_LOG_LIKES = np.log(40.0), 0.8


def generate(*, users: int, items: int, seed: int) -> Interactions:
    """Return the likes of synthetic users.

    Item i has popularity (i + 10)^−0.8 and a mixture of 12 tastes. A user has a mixture of tastes too, and likes n
    items, where n is log-normal. The items are drawn without replacement with weights popularity · exp(3 ·
    agreement), where agreement is the cosine of the two mixtures.

    >>> likes = generate(users=50, items=40, seed=1)
    >>> likes.counts.users, bool(likes.users.size > 250), likes.test is None
    (50, True, True)
    """
    if users < 1 or items < 20:
        raise ValueError("users must be at least 1 and items at least 20")
    random = np.random.default_rng(seed)
    item_tastes = _mixtures(items, 0.2, random)
    user_tastes = _mixtures(users, 0.3, random)
    popularity = -ZIPF * np.log(np.arange(items) + 10.0)
    likes = np.exp(random.normal(MEAN_LOG_LIKES, SPREAD_LOG_LIKES, users))
    likes = np.clip(likes, 5, items // 3).astype(np.int64)
    # The largest Gumbel-perturbed log-weights are a draw without replacement.
    weights = popularity + FOCUS * (user_tastes @ item_tastes.T) + random.gumbel(size=(users, items))
    order = np.argsort(-weights, axis=1)
    taken = np.arange(items) < likes[:, None]
    owners = np.repeat(np.arange(users, dtype=np.int32), likes)
    chosen = order[taken].astype(np.int32)
    counts = Counts(rows=owners.size, users=users, items=np.unique(chosen).size)
    return Interactions(users=owners, items=chosen, test=None, counts=counts)


def _mixtures(rows: int, concentration: float, random: np.random.Generator) -> FloatArray:
    """Return rows of unit length. A smaller concentration gives purer mixtures."""
    weights = random.dirichlet(np.full(TASTES, concentration), rows)
    return np.asarray(weights / np.linalg.norm(weights, axis=1, keepdims=True))
