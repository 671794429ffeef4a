"""From files to picks: throughput per core, Parquet end to end, a cold start, one pick out of 10⁸.

Throughput is measured in *processor seconds* of the whole process, which a busy machine disturbs less than the
clock. ``make bench-fleet`` writes docs/scaling.md.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

import dpselect as dps
from dpselect.cli import main as command_line
from dpselect.engines.arrow import Layout, Selector
from dpselect.engines.distinct import DistinctUnits
from dpselect.engines.single import select_one
from dpselect.engines.sources import Located
from dpselect.mechanisms.partitioned import PartitionedSelection

PAGE = Path(__file__).parent.parent / "docs" / "scaling.md"
CANDIDATES = 100
BATCH = 40_000
MECHANISMS = {"NoisyMax": dps.NoisyMax(epsilon=1.0), "GEM": dps.GEM(epsilon=1.0)}


class Cost(NamedTuple):
    """What something took."""

    seconds: float
    processor_seconds: float


def measure(work: Callable[[], object]) -> Cost:
    """Run something and return what it took."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return Cost(time.perf_counter() - wall, time.process_time() - processor)


def batches(users: int, seed: int) -> Iterator[pa.RecordBatch]:
    """Yield users with scores of a hundred candidates each, generated as they are needed."""
    generator = np.random.default_rng(seed)
    for first in range(0, users, BATCH):
        count = min(BATCH, users - first)
        scores = pa.FixedSizeListArray.from_arrays(pa.array(generator.normal(size=count * CANDIDATES)), CANDIDATES)
        yield pa.RecordBatch.from_arrays([pa.array(np.arange(first, first + count)), scores], ["user", "score"])


def scaling(name: str, users: int) -> Cost:
    """Return what picks for so many users cost, without the generation of their scores."""
    widths = np.random.default_rng(0).uniform(0.1, 1.0, CANDIDATES)
    items = pa.table({"candidate": np.arange(CANDIDATES), "sensitivity": widths})
    selector = Selector(MECHANISMS[name], bytes(32), layout=Layout(candidate=None, candidates=items))
    selector.select(next(batches(1000, 1)))  # compiled or loaded
    total = Cost(0.0, 0.0)
    with DistinctUnits() as seen:
        for batch in batches(users, 2):
            cost = measure(lambda b=batch: seen.add(selector.addresses(b["user"])) or selector.select(b))
            total = Cost(total.seconds + cost.seconds, total.processor_seconds + cost.processor_seconds)
        cost = measure(seen.are_distinct)
    return Cost(total.seconds + cost.seconds, total.processor_seconds + cost.processor_seconds)


def file_rows(folder: Path) -> Iterator[tuple[str, float, float, float]]:
    """Yield (what, share of the kernel's throughput by processor time and by the clock, MB per core and second)."""
    users, width = 50_000, 500
    generator = np.random.default_rng(3)
    scores, widths = generator.normal(size=users * width), generator.uniform(0.1, 1.0, users * width)
    offsets = np.arange(users + 1, dtype=np.int32) * width
    lists = {"score": scores, "sensitivity": widths, "candidate": np.tile(np.arange(width), users)}
    columns = {
        name: pa.ListArray.from_arrays(pa.array(offsets), pa.array(values)) for name, values in lists.items()
    }
    path = folder / "lists.parquet"
    table = pa.table({"user": np.arange(users), **columns})
    pq.write_table(table, path, row_group_size=4000, compression="none", use_dictionary=["candidate"])
    pa.feather.write_feather(table, folder / "lists.arrow", compression="uncompressed", chunksize=4000)
    items = folder / "items.parquet"
    pq.write_table(pa.table({"candidate": np.arange(width), "sensitivity": widths[:width]}), items)
    bounds = offsets.astype(np.int64)
    for label, mechanism, options in (
        ("NoisyMax, scores only", ["rnm"], ["--by-position", "--candidates", str(items)]),
        ("NoisyMax, scores only, Arrow IPC", ["rnm"], ["--by-position", "--candidates", str(items)]),
        ("GEM, scores only", ["gem"], ["--by-position", "--candidates", str(items)]),
        ("GEM, scores only, Arrow IPC", ["gem"], ["--by-position", "--candidates", str(items)]),
        ("GEM, scores and sensitivities", ["gem"], ["--by-position"]),
        ("GEM, scores, sensitivities and identifiers", ["gem"], []),
        (
            "RandomStopping, γ = 0.002, scores only",
            ["rs", "--parameter", "gamma=0.002"],
            ["--by-position", "--candidates", str(items)],
        ),
        ("CombinedGEM, scores and sensitivities", ["combined-gem"], ["--by-position"]),
    ):
        fields = {"gamma": 0.002} if mechanism[0] == "rs" else {}
        chosen = dps.MECHANISMS[mechanism[0]](epsilon=1.0, **fields)
        shared = "--candidates" in options
        known = (scores.reshape(users, width), widths[:width]) if shared else ((scores, bounds), (widths, bounds))
        source = path.with_suffix(".arrow") if "Arrow" in label else path
        command = ["select", str(source), "--epsilon", "1", "--mechanism", *mechanism, *options, "-q"]
        command += ["-o", str(folder / "picks.parquet")]
        kernel, whole = [], []
        for _ in range(5):
            kernel.append(measure(lambda m=chosen, k=known: m.select(*k)))
            whole.append(measure(lambda c=command: command_line(c)))
        ratios = [
            statistics.median(cost[i] for cost in kernel[1:]) / statistics.median(cost[i] for cost in whole[1:])
            for i in (1, 0)
        ]
        processor = statistics.median(cost.processor_seconds for cost in whole[1:])
        yield label, ratios[0], ratios[1], scores.nbytes / 1e6 / processor


def cold_start(folder: Path) -> Cost:
    """Return what a process takes from its start to a pick from a CSV file, kernels being compiled already."""
    (folder / "t.csv").write_text("user,candidate,score,sensitivity\nann,a,1,1\nann,b,2,1\n")
    command = [sys.executable, "-m", "dpselect.cli", "select", str(folder / "t.csv"), "--epsilon", "1", "-q"]
    costs = []
    for _ in range(7):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        clock = measure(lambda: subprocess.run(command, check=True, capture_output=True)).seconds
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        costs.append(Cost(clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    return Cost(*(statistics.median(cost[i] for cost in costs) for i in (0, 1)))


def one_of_many(count: int) -> tuple[Cost, float]:
    """Return what one GEM pick out of so many candidates costs, generation included, and the memory in MB."""
    size = 1 << 20

    def read() -> Iterator[Located]:
        for first in range(0, count, size):
            generator = np.random.default_rng(first)
            rows = min(size, count - first)
            columns = [np.arange(first, first + rows), generator.normal(size=rows), generator.uniform(0.1, 1, rows)]
            batch = pa.RecordBatch.from_arrays(list(map(pa.array, columns)), ["candidate", "score", "sensitivity"])
            yield Located(batch, "generated", first)

    selection = PartitionedSelection(dps.GEM(epsilon=1.0), bytes(32))
    cost = measure(lambda: select_one(selection, read, Layout()))
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return cost, next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def main() -> int:
    """Measure, print the page and write it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=__doc__)
    parser.add_argument("--fast", action="store_true", help="a hundredth of the size; write nothing")
    options = parser.parse_args()
    shrink = 100 if options.fast else 1
    many, memory = one_of_many(10**8 // shrink)  # first: the memory is the whole process's
    lines = ["| users × 100 candidates | mechanism | seconds | users per core and second | candidates |"]
    lines += ["| --- | --- | --- | --- | --- |"]
    rates = {}
    for users in (10**5, 10**6, 10**7):
        for name in MECHANISMS:
            cost = scaling(name, users // shrink)
            rates[name] = users // shrink * CANDIDATES / cost.processor_seconds
            rate = f"{users // shrink / cost.processor_seconds:,.0f} | {rates[name] / 1e6:,.0f} million"
            lines.append(f"| {users // shrink:,} | {name} | {cost.seconds:.1f} | {rate} |")
            print(lines[-1], flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measured = list(file_rows(folder))
        ratios = ["| file | by processor time | by the clock | MB of scores per core and second |"]
        ratios += ["| --- | --- | --- | --- |"]
        ratios += [f"| {label} | {a:.0%} | {b:.0%} | {rate:,.0f} |" for label, a, b, rate in measured]
        through = min(
            rate for label, *_, rate in measured if label in {"NoisyMax, scores only", "GEM, scores only"}
        )
        start = cold_start(folder)
    page = as_page("\n".join(lines), "\n".join(ratios), rates, through, start, many, memory, 10**8 // shrink)
    print(page)
    if not options.fast:
        PAGE.write_text(page, encoding="utf-8")
    return 0


def as_page(
    scales: str,
    ratios: str,
    rates: dict[str, float],
    through: float,
    start: Cost,
    many: Cost,
    memory: float,
    count: int,
) -> str:
    """Return the documentation page."""
    hours = ", ".join(f"{10**9 * 500 / rate / 3600:.1f} core hours for {name}" for name, rate in rates.items())
    reading = 4e6 / through / 3600
    return f"""# How it scales

From `make bench-fleet`, on {os.cpu_count()} cores. Throughput is given for a second of *processor time*. Scores are
generated as they are needed, and that is not counted.

## Users

{scales}

Throughput does not depend on the number of users: there is no state but the addresses of units, which are kept to
see that no unit has two rows.

## The size of a cluster: 10⁹ users × 500 candidates

5·10¹¹ candidates at the throughput above are {hours}, in memory.
But the scores are 4 TB, and must be read: at the {through:,.0f} MB of scores a second that a core takes from an
uncompressed Parquet file to picks (the slower of the rows "scores only" below) they take {reading:.1f} core hours
in all. So ten minutes need {reading * 6:.0f} cores, and an hour {max(1, reading):.0f}, if the storage delivers
6.7 GB (1.1 GB) a second and nothing is compressed. Spark's own serialisation between the virtual machine and Python
comes on top; measure it on your cluster before you size it.

## Parquet, end to end

The throughput of `dpselect select` from a Parquet file of list columns to a Parquet file of picks, as a share of
what `mechanism.select` reaches on the same numbers in memory (50,000 users × 500 candidates, no compression).

{ratios}

Decoding a list column costs a core some 6 ns a candidate; a noisy max of it costs one or two. So a mechanism that
is faster than its input waits for it, and only slow ones come near their speed in memory. Arrow files are mapped
into memory and not decoded. Files should leave out what all users share: a table of candidates given with
`--candidates` and `--by-position` saves two of three columns.

## A cold start

From starting the process to the pick for a CSV file, compiled kernels being there: {start.processor_seconds:.1f} s
of processor time, {start.seconds:.1f} s by the clock.

## One pick out of very many

One GEM pick out of {count:,} candidates in two passes: {many.seconds:.0f} s (of processor time
{many.processor_seconds:.0f} s, generating the candidates twice included), and never more than {memory:,.0f} MB of
memory in all.
"""


if __name__ == "__main__":
    sys.exit(main())
