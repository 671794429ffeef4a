"""Compute the kept results on MovieLens-1M: ``python -m experiments.tuning``."""

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
    """Write the table and print its name."""
    folder = data_folder()
    if folder is None:
        print("ml-1m.parquet not found; set DPSELECT_DATA to its folder.", file=sys.stderr)
        return 2
    tables.write(measure(partial(movielens, folder, USERS), epsilon_grid(FULL).tolist()), KEPT)
    print(f"Results: {KEPT.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
