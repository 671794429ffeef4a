"""A table of users in every form that the command line reads, and the picks it must give."""

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq

import dpselect as dps
from dpselect.cli import main
from dpselect.engines.arrow import Layout, PickTransform

KEY = bytes(range(32))
SECRET = "0.123456789"  # noqa: S105 - a score that no message may show
SETTINGS = ("--mechanism", "gem", "--epsilon", "2")
MECHANISM = dps.GEM(epsilon=2.0)


def make_rows(users=40, seed=0):
    """Return long rows in random order, and the same as a table of lists with candidates in order."""
    rng = np.random.default_rng(seed)
    lists = {"user": [], "candidate": [], "score": [], "sensitivity": []}
    for user in range(users):
        items = sorted(f"item {c:02}" for c in rng.permutation(30)[: rng.integers(1, 9)])
        lists["user"].append(f"{user:03}")
        lists["candidate"].append(items)
        lists["score"].append((rng.integers(-64, 64, len(items)) / 32).tolist())
        lists["sensitivity"].append([(int(item[-2:]) + 1) / 16 for item in items])
    long = [
        {"user": user, "candidate": c, "score": q, "sensitivity": d}
        for user, *row in zip(*lists.values(), strict=True)
        for c, q, d in zip(*row, strict=True)
    ]
    return [long[i] for i in rng.permutation(len(long))], pa.table(lists)


LONG, LISTS = make_rows()


def expected(lists=LISTS, key=KEY):
    picks = pa.Table.from_batches(PickTransform(MECHANISM, key, layout=Layout())(lists.to_batches()))
    return dict(zip(*picks.to_pydict().values(), strict=True))


def write(path, form):
    """Write the rows in a format and form, and return the path."""
    long = pa.Table.from_pylist(LONG)
    path.parent.mkdir(exist_ok=True)
    if form == "csv":
        pa.csv.write_csv(long, path)
    elif form == "tsv":
        pa.csv.write_csv(long, path, pa.csv.WriteOptions(delimiter="\t"))
    elif form == "long parquet":
        pq.write_table(long, path, row_group_size=7)
    elif form == "long arrow":
        pa.feather.write_feather(long, path, chunksize=5)
    elif form == "long dictionaries":
        index = [long.column_names.index(name) for name in ("user", "candidate")]
        for i in index:
            long = long.set_column(i, long.column_names[i], long.column(i).dictionary_encode())
        pa.feather.write_feather(long, path)
    elif form == "lists parquet":
        pq.write_table(LISTS, path, row_group_size=7)
    elif form == "folder":
        path.mkdir()
        (path / "_ignored").mkdir()
        pq.write_table(LISTS.slice(0, 15), path / "a.parquet", row_group_size=4)
        pq.write_table(LISTS.slice(15), path / "b.parquet")
    elif form == "lists arrow":
        pa.feather.write_feather(LISTS, path, chunksize=6)
    elif form == "stream":
        with pa.ipc.new_stream(path, LISTS.schema) as stream:
            stream.write_table(LISTS, max_chunksize=9)
    return str(path)


FORMS = {
    "csv": "t.csv",
    "tsv": "t.tsv",
    "long parquet": "t.parquet",
    "long arrow": "t.arrow",
    "long dictionaries": "t.feather",
    "lists parquet": "t.parquet",
    "folder": "t",
    "lists arrow": "t.arrow",
    "stream": "t.arrows",
}


def read(path):
    path = Path(path)
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
    elif path.suffix == ".parquet":
        rows = pq.read_table(path).to_pylist()
    else:
        rows = pa.feather.read_table(path).to_pylist()
    assert all(list(row) == ["user", "candidate"] for row in rows)
    picks = {row["user"]: row["candidate"] for row in rows}
    assert len(picks) == len(rows)
    return picks


GOOD_CSV = f"user,candidate,score,sensitivity\nann,a,{SECRET},1\nann,b,0.5,1\n"


def run_csv(tmp_path, text, *options, name="scores.csv"):
    (tmp_path / name).write_text(text)
    output = tmp_path / "picks.csv"
    return main(["select", str(tmp_path / name), "--epsilon", "1", "-o", str(output), *options]), output
