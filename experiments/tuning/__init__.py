"""Tuning on fleets: one private choice for all users, compared with the best of the paper's mechanisms.

``fleets`` makes the users, ``measuring`` the numbers, and ``section`` the section of the report.
"""

from experiments.tuning.section import TUNING

__all__ = ["TUNING"]
