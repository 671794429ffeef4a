"""Long tables from the shell, against pandas and Polars: a file in, a file out, whole processes.

All run in turns, so that other work on the machine disturbs all alike. ``make bench-tables`` writes
docs/long-tables.md.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

PAGE = Path(__file__).parent.parent / "docs" / "long-tables.md"
ROWS, CANDIDATES, ROUNDS = 5_000_000, 30, 5
"""The number of rows, of candidates of each user (out of a thousand), and of times that each contestant runs."""
PANDAS = """\
import sys, numpy as np, pandas as pd
scores = pd.read_{kind}(sys.argv[1])
scale = 2 * scores.groupby("user")["sensitivity"].transform("max") / 1.0
noise = np.random.default_rng().exponential(size=len(scores))
scores["noisy"] = scores["score"] + scale * noise
best = scores.loc[scores.groupby("user")["noisy"].idxmax(), ["user", "candidate"]]
best.to_{kind}(sys.argv[2], index=False)
"""
POLARS = """\
import sys, numpy as np, polars as pl
scores = pl.read_{kind}(sys.argv[1])
noise = pl.Series("noise", np.random.default_rng().exponential(size=len(scores)))
noisy = pl.col("score") + 2 * pl.col("sensitivity").max().over("user") * noise
best = scores.with_columns(noisy=noisy).group_by("user").agg(pl.col("candidate").sort_by("noisy").last())
best.write_{kind}(sys.argv[2])
"""
MECHANISMS = {
    "heterogeneous noisy max (the default)": ["heterogeneous-rnm"],
    "the same, lists of ten": ["heterogeneous-rnm", "--count", "10"],
    "top share": ["top-share"],
    "noisy max": ["rnm"],
}
"""What dpselect runs, by its name in the table."""
GOALS = {
    ("csv", "heterogeneous noisy max (the default)"): "2 ×",
    ("csv", "the same, lists of ten"): "8 s",
    ("parquet", "heterogeneous noisy max (the default)"): "1.5 ×",
    ("parquet", "the same, lists of ten"): "8 s",
}
"""The largest ratio to pandas, or time, that we accept."""


class Cost(NamedTuple):
    """The time that a process took."""

    seconds: float
    processor_seconds: float


def write_tables(folder: Path, rows: int) -> None:
    """Write a table with a row for each user and candidate, in random order, as CSV and as Parquet."""
    generator = np.random.default_rng(rows)
    users = rows // CANDIDATES
    user = np.repeat(np.arange(users), CANDIDATES)
    # Steps of 7 through 1,000 items do not repeat one within 30 steps.
    candidate = (generator.integers(0, 1000, users)[:, None] + 7 * np.arange(CANDIDATES)).reshape(-1) % 1000
    order = generator.permutation(user.size)
    numbers = {"score": generator.normal(size=user.size), "sensitivity": generator.uniform(0.1, 1.0, user.size)}
    table = pa.table({"user": user[order], "candidate": candidate[order]} | numbers)
    pq.write_table(table, folder / "table.parquet")
    pa.csv.write_csv(table, folder / "table.csv")


def run(command: list[str]) -> Cost:
    """Run a process and return the time it took."""
    started = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Cost(time.perf_counter() - started, used.ru_utime + used.ru_stime)


def compare(folder: Path, kind: str, rounds: int) -> dict[str, Cost]:
    """Return the median cost of each contestant."""
    table, output = str(folder / f"table.{kind}"), folder / f"picks.{kind}"
    programs = {"pandas, noisy max": PANDAS, "Polars, noisy max": POLARS}
    commands = {
        name: [sys.executable, "-c", program.format(kind=kind), table, str(output)]
        for name, program in programs.items()
    }
    for name, options in MECHANISMS.items():
        select = ["select", table, "--epsilon", "1", "--output", str(output), "--quiet", "--mechanism", *options]
        commands[name] = [sys.executable, "-m", "dpselect", *select]
    found: dict[str, list[Cost]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            output.unlink(missing_ok=True)
            cost = run(command)
            if number:  # the first round fills caches
                found[name].append(cost)
    return {name: Cost(*map(statistics.median, zip(*costs, strict=True))) for name, costs in found.items()}


def main() -> int:
    """Measure, print the page and write it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.long_tables", description=__doc__)
    parser.add_argument("--fast", action="store_true", help="run at a hundredth of the size and write nothing")
    options = parser.parse_args()
    run([sys.executable, "-m", "dpselect", "compile", "heterogeneous-rnm", "top-share", "rnm"])
    lines = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tables(folder, ROWS // 100 if options.fast else ROWS)
        for kind in ("csv", "parquet"):
            costs = compare(folder, kind, 1 if options.fast else ROUNDS)
            pandas = costs["pandas, noisy max"]
            for who, cost in costs.items():
                ratios = " | ".join(f"{own / other:.2f}" for own, other in zip(cost, pandas, strict=True))
                goal = GOALS.get((kind, who), "")
                lines.append(f"| {kind} | {who} | {cost[0]:.2f} | {cost[1]:.2f} | {ratios} | {goal} |")
                print(lines[-1], flush=True)
    if not options.fast:
        PAGE.write_text(as_page("\n".join(lines)), encoding="utf-8")
    return 0


def as_page(lines: str) -> str:
    """Return the documentation page."""
    return f"""# Long tables, against pandas and Polars

From `make bench-tables`, on {os.cpu_count()} cores. A file has {ROWS:,} rows, one for each user and candidate, in
random order, with {CANDIDATES} candidates for each user. `dpselect select` reads it and writes a file of picks in
the same format. So do a few lines of pandas and of Polars, which add the noise of noisy max in floating-point
arithmetic, from a generator that is not secure:

```text
{PANDAS.format(kind="parquet").rstrip()}
```

```text
{POLARS.format(kind="parquet").rstrip()}
```

Times are medians in seconds for the whole process, from start to exit: wall-clock time, and processor time, which
other work on the same machine disturbs less. Kernels were compiled before (`dpselect compile`). The ratios are
those to pandas, and the goal is the largest ratio or time that we accept. Noisy max is the mechanism of the lines
above. The default also solves for the neutral offsets of each user, and top share uses no sensitivities.

| file | mechanism | seconds | processor | ratio | ratio, processor | goal |
| --- | --- | --- | --- | --- | --- | --- |
{lines}
"""


if __name__ == "__main__":
    sys.exit(main())
