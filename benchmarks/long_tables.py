"""Long tables from the shell, against seven lines of pandas: Parquet in, Parquet out, whole processes.

Both run in turns, so that other work on the machine disturbs both alike. ``make bench-tables`` writes
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
import pyarrow.parquet as pq

PAGE = Path(__file__).parent.parent / "docs" / "long-tables.md"
CANDIDATES = 50
"""The number of candidates of each user, out of a thousand."""
SIZES = {1_000_000: (7, 1.5), 10_000_000: (3, 1.0)}
"""Rows, and for each the number of rounds and the goal: the largest ratio to pandas."""
PANDAS = """\
import sys, numpy as np, pandas as pd
scores = pd.read_parquet(sys.argv[1])
scale = 2 * scores.groupby("user")["sensitivity"].transform("max") / 1.0
noise = np.random.default_rng().exponential(size=len(scores))
scores["noisy"] = scores["score"] + scale * noise
best = scores.loc[scores.groupby("user")["noisy"].idxmax(), ["user", "candidate"]]
best.to_parquet(sys.argv[2], index=False)
"""


HEADS = (
    "| rows | identifiers | dpselect | pandas | dpselect, processor | pandas, processor | ratio | "
    "ratio, processor | goal |"
)


class Cost(NamedTuple):
    """The time that a process took."""

    seconds: float
    processor_seconds: float


def write_table(path: Path, rows: int, kind: str) -> None:
    """Write a table with a row for each user and candidate, in random order."""
    generator = np.random.default_rng(rows)
    users = rows // CANDIDATES
    user = np.repeat(np.arange(users), CANDIDATES)
    # Steps of 7 through 1,000 items do not repeat one within 50 steps.
    candidate = (generator.integers(0, 1000, users)[:, None] + 7 * np.arange(CANDIDATES)).reshape(-1) % 1000
    order = generator.permutation(user.size)
    columns = {"user": pa.array(user[order]), "candidate": pa.array(candidate[order])}
    if kind == "text":
        columns = {name: pa.array([f"{name} {i}" for i in column.to_pylist()]) for name, column in columns.items()}
    numbers = {"score": generator.normal(size=user.size), "sensitivity": generator.uniform(0.1, 1.0, user.size)}
    pq.write_table(pa.table(columns | numbers), path)


def run(command: list[str]) -> Cost:
    """Run a process and return the time it took."""
    started = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Cost(time.perf_counter() - started, used.ru_utime + used.ru_stime)


def compare(folder: Path, rows: int, kind: str, rounds: int) -> dict[str, Cost]:
    """Return the median cost of each contestant."""
    table, output = folder / "table.parquet", folder / "picks.parquet"
    write_table(table, rows, kind)
    select = ["select", str(table), "--mechanism", "rnm", "--epsilon", "1", "--output", str(output), "--quiet"]
    commands = {
        "dpselect": [sys.executable, "-m", "dpselect", *select],
        "pandas": [sys.executable, "-c", PANDAS, str(table), str(output)],
    }
    found: dict[str, list[Cost]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            output.unlink(missing_ok=True)
            cost = run(command)
            if number:  # the first round compiles kernels and fills caches
                found[name].append(cost)
    return {name: Cost(*map(statistics.median, zip(*costs, strict=True))) for name, costs in found.items()}


def main() -> int:
    """Measure, print the page and write it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.long_tables", description=__doc__)
    parser.add_argument("--fast", action="store_true", help="run at a hundredth of the size and write nothing")
    options = parser.parse_args()
    shrink = 100 if options.fast else 1
    lines = []
    for rows, (rounds, goal) in SIZES.items():
        for kind in ("integers", "text") if rows == min(SIZES) else ("integers",):
            with tempfile.TemporaryDirectory() as folder:
                costs = compare(Path(folder), rows // shrink, kind, 1 if options.fast else rounds)
            ours, theirs = costs["dpselect"], costs["pandas"]
            wall, processor = (a / b for a, b in zip(ours, theirs, strict=True))
            times = " | ".join(f"{number:.2f}" for number in (ours[0], theirs[0], ours[1], theirs[1]))
            lines.append(
                f"| {rows // shrink:,} | {kind} | {times} | **{wall:.2f}** | **{processor:.2f}** | {goal:g} |"
            )
            print(lines[-1], flush=True)
    page = as_page("\n".join(lines))
    print(page)
    if not options.fast:
        PAGE.write_text(page, encoding="utf-8")
    return 0


def as_page(lines: str) -> str:
    """Return the documentation page."""
    program = PANDAS.rstrip()
    return f"""# Long tables, against pandas

From `make bench-tables`, on {os.cpu_count()} cores. A Parquet file has a row for each user and candidate, in random
order, with {CANDIDATES} candidates for each user. `dpselect select` reads it and writes a Parquet file of picks. So
do seven lines of pandas, which add noise of the same law in floating-point arithmetic from a generator that is not
secure:

```text
{program}
```

Times are medians in seconds for the whole process, from start to exit: wall-clock time, and processor time, which
other work on the same machine disturbs less. The ratios are those of dpselect to pandas, and the goal is the
largest ratio that we accept.

{HEADS}
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
{lines}
"""


if __name__ == "__main__":
    sys.exit(main())
