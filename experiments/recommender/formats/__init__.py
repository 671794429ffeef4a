"""The published file formats, one module each. Every reader streams: it yields batches of rows.

A damaged file raises a :class:`BadDataError`, which names the file and the line or the column.
"""

from experiments.recommender.formats.errors import BadDataError
from experiments.recommender.formats.lightgcn import read_lightgcn
from experiments.recommender.formats.movielens import read_ratings_csv, read_ratings_dat
from experiments.recommender.formats.netflix import read_netflix
from experiments.recommender.formats.parquet import read_parquet

__all__ = [
    "BadDataError",
    "read_lightgcn",
    "read_netflix",
    "read_parquet",
    "read_ratings_csv",
    "read_ratings_dat",
]
