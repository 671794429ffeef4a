"""Where sensitivities come from: a range for each candidate, to which its scores are clipped.

A score that is clipped to $[low_a, high_a]$ moves by at most $high_a − low_a$, whatever a person does. This width
*is* the sensitivity of candidate a. Without clipping it is not. Ranges come from one of three sources:

- :func:`from_bounds`: you know public bounds. They cost nothing.
- :func:`from_public_sample`: quantiles of public people's scores. They cost nothing.
- :func:`from_private_scores`: quantiles of the private scores themselves. They cost ε.

From raw scores to picks, with one guarantee for all of it:

>>> import numpy as np, dpselect as dps
>>> rng = np.random.default_rng(0)
>>> raw = rng.normal([1.0, 2.0, 3.0], [0.1, 1.0, 3.0], size=(5000, 3))  # private: a row for each user
>>> cuts = np.linspace(-20.0, 20.0, 401)  # public: the ends that a range may have
>>> ranges = dps.ranges.from_private_scores(raw, cuts, epsilon=1.0)
>>> clipped = ranges.clip(raw)
>>> mechanism = dps.GEM(epsilon=2.0)
>>> picks = mechanism.select(clipped.scores, clipped.sensitivities)  # one for each user
>>> ranges.guarantee_with(mechanism).epsilon  # for each user: the ranges and the user's own pick
3.0

The guide docs/guide/ranges.md has the proofs.
"""

from dpselect.ranges.quantiles import from_private_scores
from dpselect.ranges.values import Clipped, Ranges, from_bounds, from_public_sample

__all__ = ["Clipped", "Ranges", "from_bounds", "from_private_scores", "from_public_sample"]
