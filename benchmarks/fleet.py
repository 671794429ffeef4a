"""From files to picks: throughput per core, and Parquet end to end.

Throughput is measured in *processor seconds* of the whole process, which a busy machine disturbs less than
wall-clock time. ``make bench-fleet`` writes docs/scaling.md.
"""

import argparse
import math
import os
import statistics
import sys
import tempfile
import textwrap
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

import dpselect as dps
from dpselect.cli import main as command_line
from dpselect.engines.arrow import Layout, PickTransform
from dpselect.tables.stored import BATCH_CANDIDATES, open_table

PAGE = Path(__file__).parent.parent / "docs" / "scaling.md"
CANDIDATES = 100
BATCH = 40_000
WIDTH = 500
"""The number of candidates of each user in files."""
ROW_GROUP = BATCH_CANDIDATES // WIDTH
"""The number of users in a row group that holds only scores: 64 MB."""
PLAIN = {
    "row_group_size": ROW_GROUP,
    "data_page_size": 1 << 23,
    "compression": "none",
    "use_dictionary": False,
}
"""Options that make files fast to read."""
MECHANISMS = {
    "NoisyMax": dps.NoisyMax(epsilon=1.0),
    "GEM": dps.GEM(epsilon=1.0),
    "HeterogeneousNoisyMax": dps.HeterogeneousNoisyMax(epsilon=1.0),
    "TopShare": dps.TopShare(epsilon=1.0),
}


class Cost(NamedTuple):
    """The time that something took."""

    seconds: float
    processor_seconds: float


def measure(work: Callable[[], object]) -> Cost:
    """Run something and return the time it took."""
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
    """Return the cost of picks for this many users, without generating their scores."""
    widths = np.random.default_rng(0).uniform(0.1, 1.0, CANDIDATES)
    items = pa.table({"candidate": np.arange(CANDIDATES), "sensitivity": widths})
    picks = PickTransform(MECHANISMS[name], bytes(32), layout=Layout(candidate=None, candidates=items))
    picks.transform(next(batches(1000, 1)))  # compiles the kernels or loads them
    generating: list[Cost] = []

    def generated() -> Iterator[pa.RecordBatch]:
        source, batch = batches(users, 2), []
        for _ in range(0, users, BATCH):
            generating.append(measure(lambda: batch.append(next(source))))
            yield batch.pop()

    whole = measure(lambda: deque(picks(generated()), maxlen=0))
    return Cost(*(both - sum(parts) for both, parts in zip(whole, zip(*generating, strict=True), strict=True)))


class Measured(NamedTuple):
    """The cost of picks from one file, in nanoseconds of processor time per candidate."""

    label: str
    kernel: float
    """``mechanism.select`` on the same numbers in memory."""
    reading: float | None
    """Reading the same columns without using them; ``None`` for files that are mapped into memory."""
    whole: float
    """``dpselect select``, from the file to a file of picks."""
    clock: float
    """The throughput relative to the kernel's, by wall-clock time."""

    @property
    def share(self) -> float:
        """The throughput relative to the kernel's."""
        return self.kernel / self.whole

    @property
    def bound(self) -> float:
        """The share if only reading and the kernel took any time."""
        return self.kernel / (self.kernel + (self.reading or 0.0))

    @property
    def rate(self) -> float:
        """MB of scores per second of processor time."""
        return 8e3 / self.whole


class Fleet(NamedTuple):
    """Numbers in memory, and files that repeat them several times."""

    users: int
    scores: np.ndarray
    widths: np.ndarray
    folder: Path


REPEATS = {"scores.parquet": 6, "scores.arrow": 6, "lists.parquet": 2}
"""How often a file repeats the numbers, so that one-time costs do not dominate."""


def write_fleet(folder: Path, users: int) -> Fleet:
    """Write files of list columns: scores, sensitivities and identifiers."""
    generator = np.random.default_rng(3)
    scores, widths = generator.normal(size=users * WIDTH), generator.uniform(0.1, 1.0, users * WIDTH)
    offsets = pa.array(np.arange(users + 1, dtype=np.int32) * WIDTH)
    lists = {"score": scores, "sensitivity": widths, "candidate": np.tile(np.arange(WIDTH), users)}
    columns = {
        name: pa.ListArray.from_arrays(
            offsets, pa.array(values), type=pa.list_(pa.field("item", pa.array(values).type, nullable=False))
        )
        for name, values in lists.items()
    }

    def tables(repeats: int, names: list[str]) -> Iterator[pa.Table]:
        for first in range(0, repeats * users, users):
            arrays = [pa.array(np.arange(first, first + users)), *(columns[name] for name in names)]
            fields = zip(["user", *names], arrays, strict=True)
            schema = pa.schema([pa.field(name, array.type, nullable=False) for name, array in fields])
            yield pa.Table.from_arrays(arrays, schema=schema)

    for name, names in (("scores.parquet", ["score"]), ("lists.parquet", list(columns))):
        whole = pa.concat_tables(tables(REPEATS[name], names))
        pq.write_table(whole, folder / name, **PLAIN | {"row_group_size": ROW_GROUP // len(names)})
    arrow = folder / "scores.arrow"
    with pa.ipc.new_file(arrow, next(tables(1, ["score"])).schema) as file:
        for table in tables(REPEATS["scores.arrow"], ["score"]):
            file.write_table(table, max_chunksize=ROW_GROUP)
    items = pa.table({"candidate": np.arange(WIDTH), "sensitivity": widths[:WIDTH]})
    pq.write_table(items, folder / "items.parquet")
    return Fleet(users, scores, widths, folder)


def file_rows(fleet: Fleet, rounds: int) -> Iterator[Measured]:
    """Yield the cost of picks for several mechanisms and kinds of files."""
    shared = ["--by-position", "--candidates", str(fleet.folder / "items.parquet")]
    stopping = ["rs", "--parameter", "gamma=0.002"]
    for label, mechanism, options, name in (
        ("NoisyMax, scores only", ["rnm"], shared, "scores.parquet"),
        ("NoisyMax, scores only, Arrow IPC", ["rnm"], shared, "scores.arrow"),
        ("GEM, scores only", ["gem"], shared, "scores.parquet"),
        ("GEM, scores only, Arrow IPC", ["gem"], shared, "scores.arrow"),
        ("GEM, scores and sensitivities", ["gem"], ["--by-position"], "lists.parquet"),
        ("GEM, scores, sensitivities and identifiers", ["gem"], [], "lists.parquet"),
        ("HeterogeneousNoisyMax, scores only", ["heterogeneous-rnm"], shared, "scores.parquet"),
        ("TopShare, scores only", ["top-share"], shared, "scores.parquet"),
        ("RandomStopping, γ = 0.002, scores only", stopping, shared, "scores.parquet"),
        ("CombinedGEM, scores and sensitivities", ["combined-gem"], ["--by-position"], "lists.parquet"),
    ):
        chosen = dps.MECHANISMS[mechanism[0]](epsilon=1.0, **({"gamma": 0.002} if mechanism[0] == "rs" else {}))
        bounds = np.arange(fleet.users + 1, dtype=np.int64) * WIDTH
        known = (
            (fleet.scores.reshape(fleet.users, WIDTH), fleet.widths[:WIDTH])
            if options is shared
            else ((fleet.scores, bounds), (fleet.widths, bounds))
        )
        columns = ["user", "score", *([] if options is shared else ["sensitivity"])]
        columns += [] if options else ["candidate"]
        path = fleet.folder / name
        command = ["select", str(path), "--epsilon", "1", "--mechanism", *mechanism, *options, "-q"]
        command += ["-o", str(fleet.folder / "picks.parquet"), "--overwrite"]
        work = {"kernel": lambda m=chosen, k=known: m.select(*k), "whole": lambda c=command: command_line(c)}
        if path.suffix == ".parquet":
            work["reading"] = lambda p=path, c=columns: consume(open_table(p).batches(c))
        costs = medians(work, rounds)
        scale, repeats = 1e9 / fleet.scores.size, REPEATS[name]
        yield Measured(
            label,
            costs["kernel"].processor_seconds * scale,
            costs["reading"].processor_seconds * scale / repeats if "reading" in costs else None,
            costs["whole"].processor_seconds * scale / repeats,
            costs["kernel"].seconds * repeats / costs["whole"].seconds,
        )


def reading_rows(fleet: Fleet, rounds: int) -> Iterator[tuple[str, float, float]]:
    """Yield (how scores are written and read, nanoseconds of processor time and bytes per candidate)."""
    required = pq.read_table(fleet.folder / "scores.parquet").slice(0, fleet.users)
    scores = required.cast(pa.schema([("user", pa.int64()), ("score", pa.list_(pa.float64()))]))

    def by_duckdb(path: Path) -> None:
        with duckdb.connect(config={"threads": 1}) as connection:
            consume(connection.read_parquet(str(path)).select("score").to_arrow_reader(2048))

    def here(path: Path) -> None:
        consume(open_table(path).batches(["score"]))

    for label, read, table, options in (
        ("Parquet as `pyarrow` writes it by default", here, scores, {}),
        ("Parquet, plain", here, scores, PLAIN),
        ("Parquet, plain, `nullable=False`", here, required, PLAIN),
        ("the same, Snappy", here, required, PLAIN | {"compression": "snappy"}),
        ("the same, Zstandard", here, required, PLAIN | {"compression": "zstd"}),
        ("Parquet, plain, read by DuckDB", by_duckdb, scores, PLAIN),
    ):
        path = fleet.folder / "variant.parquet"
        pq.write_table(table, path, **options)
        cost = medians({"reading": lambda r=read, p=path: r(p)}, rounds)["reading"].processor_seconds
        yield label, cost * 1e9 / fleet.scores.size, path.stat().st_size / fleet.scores.size


def consume(items: Iterable[object]) -> None:
    """Iterate over something and keep nothing."""
    for _ in items:
        pass


def medians(work: dict[str, Callable[[], object]], rounds: int) -> dict[str, Cost]:
    """Return median costs of several things that run in turn, after one round that does not count."""
    costs: dict[str, list[Cost]] = {name: [] for name in work}
    for _ in range(rounds + 1):
        for name, run in work.items():
            costs[name].append(measure(run))
    return {
        name: Cost(*(statistics.median(cost[i] for cost in found[1:]) for i in (0, 1)))
        for name, found in costs.items()
    }


def main() -> int:
    """Measure, print the page and write it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=__doc__)
    parser.add_argument("--fast", action="store_true", help="run at a hundredth of the size and write nothing")
    options = parser.parse_args()
    os.environ["DPSELECT_COMPILE"] = "always"  # also what would run in NumPy at first
    shrink = 100 if options.fast else 1
    lines = ["| users × 100 candidates | mechanism | seconds | users per core and second | candidates |"]
    lines += ["| --- | --- | --- | --- | --- |"]
    rates = {}
    for users in (10**5, 10**6, 10**7):
        for name in MECHANISMS:
            # Small fleets run several times, since a single run takes milliseconds.
            costs = [scaling(name, users // shrink) for _ in range(max(1, 10**7 // users // 2))]
            cost = Cost(*map(statistics.median, zip(*costs, strict=True)))
            rates[name] = users // shrink * CANDIDATES / cost.processor_seconds
            rate = f"{users // shrink / cost.processor_seconds:,.0f} | {rates[name] / 1e6:,.0f} million"
            lines.append(f"| {users // shrink:,} | {name} | {cost.seconds:.2f} | {rate} |")
            print(lines[-1], flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fleet = write_fleet(folder, 50_000 // shrink)
        measured = []
        for row in file_rows(fleet, 4):
            measured.append(row)
            print(row, flush=True)
        readings = list(reading_rows(fleet, 4))
    page = as_page("\n".join(lines), measured, readings, rates, fleet.users)
    print(page)
    if not options.fast:
        PAGE.write_text(page, encoding="utf-8")
    return 0


GOAL = 0.7
"""The goal for the share of the kernel's throughput, from a file to picks."""


def verdict(measured: list[Measured]) -> str:
    """Return sentences that say for which files the goal is reached, and where it cannot be."""
    reached = [row.label for row in measured if row.share >= GOAL]
    missed = [row for row in measured if row.share < GOAL]
    bounded = [row for row in missed if row.bound < GOAL]
    others = [row.label for row in missed if row.bound >= GOAL]
    sentences = [f"The goal is {GOAL:.0%} of the kernel's throughput, in processor time."]
    sentences.append(
        f"It is reached for: {'; '.join(reached)}." if reached else "It is reached for none of these files."
    )
    if bounded:
        listed = "; ".join(f"{row.label} (at most {row.bound:.0%})" for row in bounded)
        sentences.append(
            f"It cannot be reached where reading alone takes at least {1 / GOAL - 1:.2f} times the kernel's time: "
            f"{listed}."
        )
    if others:
        sentences.append(f"It is missed, although the time for reading would allow it, for: {'; '.join(others)}.")
    return textwrap.fill(" ".join(sentences), 116, break_on_hyphens=False)


def as_table(heads: list[str], rows: Iterable[list[str]]) -> str:
    """Return a Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def as_page(
    scales: str,
    measured: list[Measured],
    readings: list[tuple[str, float, float]],
    rates: dict[str, float],
    users: int,
) -> str:
    """Return the documentation page."""
    hours = ", ".join(f"{10**9 * 500 / rate / 3600:.1f} core hours with {name}" for name, rate in rates.items())
    through = next(row.rate for row in measured if row.label == "HeterogeneousNoisyMax, scores only")
    reading = 4e6 / through / 3600
    sizing = (
        f"At the throughput above, 5·10¹¹ candidates in memory take {hours}. But the scores are 4 TB and must be "
        "read. From an uncompressed Parquet file to picks of the default, one core handles "
        f"{through:,.0f} MB of scores a second (*HeterogeneousNoisyMax, scores only* below), which gives "
        f"{reading:.1f} core hours in all. To finish in ten minutes you need {math.ceil(reading * 6)} cores, and "
        "storage that delivers 6.7 GB a second. To finish in an hour you need "
        f"{'one core' if reading <= 1 else f'{math.ceil(reading)} cores'}, and 1.1 GB a second. This assumes that "
        "nothing is compressed. Spark adds its own serialisation between the virtual machine and Python; measure "
        "that on your cluster before you size it."
    )
    ratios = as_table(
        ["file", "kernel", "reading", "file to picks", "share", "at most", "share, wall clock", "MB/s"],
        (
            [
                row.label,
                f"{row.kernel:.1f}",
                "mapped" if row.reading is None else f"{row.reading:.1f}",
                f"{row.whole:.1f}",
                f"**{row.share:.0%}**",
                "–" if row.reading is None else f"{row.bound:.0%}",
                f"{row.clock:.0%}",
                f"{row.rate:,.0f}",
            ]
            for row in measured
        ),
    )
    variants = as_table(
        ["scores written", "ns", "bytes"], ([label, f"{cost:.1f}", f"{size:.1f}"] for label, cost, size in readings)
    )
    return f"""# How it scales

From `make bench-fleet`, on {os.cpu_count()} cores. Throughput is per second of *processor time*, which
other work on the same machine disturbs less than wall-clock time. Scores are generated as they are needed, and the
time for that is not counted.

## Users

{scales}

The only state is the addresses of units, which show whether a unit has two rows. Nothing else grows with the number
of users.

## Sizing a cluster: 10⁹ users × 500 candidates

{textwrap.fill(sizing, 116, break_on_hyphens=False)}

## Parquet, end to end

`dpselect select` reads a file of list columns, written as recommended below, and writes a Parquet file of picks for
{users * REPEATS["scores.parquet"]:,} users (with sensitivities: {users * REPEATS["lists.parquet"]:,}) × {WIDTH}
candidates. Times are nanoseconds of processor time per candidate: the *kernel* alone (`mechanism.select` on the
same numbers in memory), *reading* the same columns without using them, and the whole way from *file to picks*. The
*share* is the throughput relative to the kernel's. *At most* is the share if only the kernel and reading took any
time. MB/s are megabytes of scores per second and core.

{ratios}

{verdict(measured)}

## Files that are fast to read

The cost of reading a list column of scores (random numbers, which do not compress), in nanoseconds of processor
time and bytes of the file per candidate:

{variants}

Parquet stores two levels with each number of a list. They mark where lists start and which entries are missing,
and the reader must unpack them. To make reading cheap:

- Use Arrow IPC without compression (`.arrow`): it is mapped into memory and needs no decoding.
- In Parquet, declare lists and their entries as not nullable
  (`pa.field("score", pa.list_(pa.field("item", pa.float64(), nullable=False)), nullable=False)`): the reader
  then unpacks one level less.
- Write scores without a dictionary: `use_dictionary=False` in `pyarrow.parquet.write_table`,
  `parquet.enable.dictionary=false` in Spark. Scores seldom repeat, so a dictionary saves nothing.
- Leave out columns that all users share: a table of candidates with `--candidates` and `--by-position` saves two of
  three columns.

## Cold start

Small calls compile nothing, and large ones compile once for each machine. [Starting quickly](guide/starting.md) has
the times.
"""


if __name__ == "__main__":
    sys.exit(main())
