"""The command line: ``python -m benchmarks``."""

import argparse
import os
import platform
import sys
from pathlib import Path

from tqdm import tqdm

import dpselect as dps
from benchmarks.growth import draw_growth, measure_growth
from benchmarks.workloads import WORKLOADS, Result

DOCS = Path(__file__).parent.parent / "docs"


def main() -> int:
    """Measure, print the table, and write the page and the picture."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure the speed relative to other libraries."
    )
    parser.add_argument("--rounds", type=int, default=9, help="interleaved rounds of each race (default: 9)")
    parser.add_argument("--only", help="run only the workloads whose names contain this, and write no page")
    options = parser.parse_args()
    os.environ["DPSELECT_COMPILE"] = "always"  # also what would run in NumPy at first
    chosen = [w for w in WORKLOADS if not options.only or options.only in w.__name__]
    results: list[Result] = []
    with tqdm(chosen, unit="workload") as progress:
        for workload in progress:
            progress.set_postfix_str(workload.__name__)
            results += workload(options.rounds)
    table = as_table(results)
    print(table)
    if not options.only:
        growth = measure_growth()
        draw_growth(growth, DOCS / "images" / "growth.png")
        (DOCS / "benchmarks.md").write_text(as_page(table), encoding="utf-8")
        print(f"Wrote {DOCS.name}/benchmarks.md")
    return 0


def as_table(results: list[Result]) -> str:
    """Return the results as a Markdown table."""
    lines = ["| workload | goal | measured | |", "| --- | --- | --- | --- |"]
    lines += [f"| {r.workload} | {r.goal} | {r.measured} | {'✓' if r.reached else '✗'} |" for r in results]
    return "\n".join(lines)


def as_page(table: str) -> str:
    """Return the documentation page."""
    return f"""# Benchmarks

`make bench` writes this page: medians over interleaved rounds, all contestants in one run, dpselect
{dps.__version__} on {platform.machine()} with Python {platform.python_version()}. Ratios depend less on the machine
than seconds; neither is a promise. OpenDP, diffprivlib and SciPy take one row for each call, so they run on 200
rows, and their times are extrapolated. OpenDP's sampler is exact; diffprivlib's and NumPy's are not.

{table}

![Seconds against the number of candidates and of rows](images/growth.png)

*Cost grows in proportion to the number of candidates (left, one row) and of rows (right, 100 candidates).*
"""


if __name__ == "__main__":
    sys.exit(main())
