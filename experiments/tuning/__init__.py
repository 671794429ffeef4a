"""Tuning on fleets: how well one private choice for all users does, against the best of the paper's mechanisms.

``fleets`` has the users, ``measuring`` the numbers, ``section`` what the report shows of them.
"""

from experiments.tuning.section import TUNING

__all__ = ["TUNING"]
