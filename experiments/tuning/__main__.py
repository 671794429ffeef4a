"""Compute the results on MovieLens-1M that the report falls back on: ``python -m experiments.tuning``."""

import sys
from functools import partial

from experiments import tables
from experiments.experiment import FULL
from experiments.trials import epsilon_grid
from experiments.tuning.fleets import data_folder, movielens
from experiments.tuning.measuring import measure
from experiments.tuning.section import KEPT

USERS = 400


def main() -> int:
    """Write the table and say where it is."""
    folder = data_folder()
    if folder is None:
        print("DPSELECT_DATA must name a folder that holds ml-1m.parquet.", file=sys.stderr)
        return 2
    tables.write(measure(partial(movielens, folder, USERS), epsilon_grid(FULL).tolist()), KEPT)
    print(f"Results: {KEPT.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
