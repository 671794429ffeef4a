"""The paper's heuristic, scored: does the sign of the correlation name the better one of GEM and mGEM?

All of the paper's settings at once: its eight scenarios, the seven slopes of the increasing correlation, and the
kept runs on real data. The same tables say how close the better one of the two is to the best of all mechanisms.
"""

from experiments.heuristic.section import HEURISTIC

__all__ = ["HEURISTIC"]
