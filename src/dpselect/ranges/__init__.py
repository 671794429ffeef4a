"""Where sensitivities come from: a range for each candidate, to which its scores are clipped.

A score that is clipped to $[low_a, high_a]$ moves by at most $high_a − low_a$, whatever a person does. This width
*is* the sensitivity of candidate a. Without clipping it is not. Ranges come from one of three sources:

- :func:`from_bounds`: you know public bounds. They cost nothing.
- :func:`from_public_sample`: quantiles of public people's scores. They cost nothing.
- :func:`from_private_scores`: quantiles of the private scores themselves. They cost ε.

docs/guide/ranges.md goes from raw scores to picks, and has the proofs.
"""

from dpselect.ranges.quantiles import from_private_scores
from dpselect.ranges.values import Clipped, Ranges, from_bounds, from_public_sample

__all__ = ["Clipped", "Ranges", "from_bounds", "from_private_scores", "from_public_sample"]
