"""A fingerprint changes with every setting, one at a time, and stays what it was for releases already paid for."""

import hashlib
import json
from dataclasses import fields, replace

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from score_tables import MECHANISM

import dpselect as dps
from dpselect.budget import Ledger, ReleaseConflictError
from dpselect.engines import Limits
from dpselect.engines.arrow import Layout
from dpselect.engines.local import open_tables
from dpselect.randomness import STREAM_FORMAT
from dpselect.release import Charge, Csv, KeyFile, KeyReuseError, release

NUMBERS = ["score", "score 2", "sensitivity", "sensitivity 2", "0.5", "offset", "offset 2", "weight"]
LONG = pa.table({"user": [1, 1], "user 2": [2, 2], "candidate": ["a", "b"], "candidate 2": ["a", "c"]})
for number, name in enumerate(NUMBERS):
    LONG = LONG.append_column(name, [[0.25 * (number + 1), 0.5]])
LISTS = pa.table({name: [LONG[name].to_pylist()] for name in ("candidate", *NUMBERS)} | {"user": [1]})
ITEMS = pa.table({"candidate": ["a", "b"], "sensitivity": [1.0, 2.0]})


@pytest.fixture
def folder(tmp_path):
    pq.write_table(LONG, tmp_path / "long.parquet")
    pq.write_table(LISTS, tmp_path / "lists.parquet")
    pq.write_table(LONG.slice(0, 1), tmp_path / "wide.parquet")
    pq.write_table(ITEMS, tmp_path / "items.parquet")
    pq.write_table(ITEMS.slice(0, 1), tmp_path / "fewer.parquet")
    pa.csv.write_csv(LONG, tmp_path / "long.csv")
    return tmp_path


SECOND = {"sensitivity": "sensitivity 2"}  # a column that both tables have is refused
CHANGES = {
    "unit": ("long.parquet", {}, {"unit": "user 2"}, {"unit"}),
    "no unit": ("long.parquet", {}, {"unit": None}, {"unit", "one"}),
    "candidate": ("long.parquet", {}, {"candidate": "candidate 2"}, {"candidate"}),
    "by position": ("lists.parquet", {}, {"candidate": None}, {"by_position"}),
    "score": ("long.parquet", {}, {"score": "score 2"}, {"score"}),
    "sensitivity": ("long.parquet", {}, {"sensitivity": "sensitivity 2"}, {"sensitivity"}),
    "number": ("long.parquet", {"sensitivity": 0.5}, {"sensitivity": 0.25}, {"sensitivity"}),
    "number or column": ("long.parquet", {"sensitivity": 0.5}, {"sensitivity": "0.5"}, {"sensitivity"}),
    "an offset": ("long.parquet", {}, {"offset": "offset"}, {"offset"}),
    "offset": ("long.parquet", {"offset": "offset"}, {"offset": "offset 2"}, {"offset"}),
    "a weight": ("long.parquet", {}, {"weight": "weight"}, {"weight"}),
    "weight": ("long.parquet", {"weight": "weight"}, {"weight": "offset"}, {"weight"}),
    "a second table": ("long.parquet", SECOND, {"candidates": "items.parquet"}, {"readings"}),
    "its contents": (
        "long.parquet",
        SECOND | {"candidates": "items.parquet"},
        {"candidates": "fewer.parquet"},
        set(),
    ),
    "a column for each candidate": (
        "wide.parquet",
        {"sensitivity": 0.5},
        {"candidate_columns": ["score", "sensitivity"]},
        {"readings"},
    ),
    "candidate_columns": (
        "wide.parquet",
        {"sensitivity": 0.5, "candidate_columns": ["score", "sensitivity"]},
        {"candidate_columns": ["sensitivity", "score"]},
        {"readings"},
    ),
    "on_bad_unit": ("long.parquet", {}, {"on_bad_unit": "skip"}, {"on_bad_unit"}),
    "format": ("long.csv", {}, {"format": Csv(encoding="latin-1")}, {"readings"}),
}
"""What is changed alone: a table, the layout before and after, and the entries of a fingerprint that change."""


@pytest.mark.parametrize("what", CHANGES)
def test_one_setting_changed_alone_is_another_release(what, folder, ledger, key_file):
    table, before, change, entries = CHANGES[what]
    first, second = (_layout(folder, settings) for settings in (before, before | change))
    opened = [open_tables(folder / table, each, limits=Limits(), output=None) for each in (first, second)]
    one, other = (tables._settings() for tables in opened)
    assert {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)} == entries
    assert len({tables.fingerprint({}) for tables in opened}) == 2
    charge, key = Charge(ledger, "readers", "spring"), KeyFile(key_file)
    mechanism = dps.TopShare(0.5) if "weight" in change else replace(MECHANISM, epsilon=0.5)
    for payment in (charge, key):
        release(folder / table, mechanism, layout=first, payment=payment)
        release(folder / table, mechanism, layout=replace(first), payment=payment)  # the same settings
    with pytest.raises(ReleaseConflictError, match="other inputs"):
        release(folder / table, mechanism, layout=second, payment=charge)
    with pytest.raises(KeyReuseError, match="other inputs or options"):
        release(folder / table, mechanism, layout=second, payment=key)


def test_every_setting_of_a_layout_is_changed_above():
    changed = {name for _, _, change, _ in CHANGES.values() for name in change}
    assert changed == {field.name for field in fields(Layout)}


def _layout(folder, settings):
    tables = {"candidates": folder / settings["candidates"]} if "candidates" in settings else {}
    return Layout(**settings | tables)


@pytest.fixture
def ledger(tmp_path):
    with Ledger.create(tmp_path / "budget.db") as ledger:
        ledger.add_population("readers", epsilon=5.0)
        yield ledger


@pytest.mark.parametrize(
    ("layout", "settings"),
    [
        ({}, {}),
        ({"sensitivity": 0.5}, {"sensitivity": "0.5"}),
        ({"sensitivity": 2}, {"sensitivity": "2.0"}),
        ({"unit": None}, {"unit": None, "one": True}),
        ({"offset": "offset", "on_bad_unit": "skip"}, {"offset": "offset", "on_bad_unit": "skip"}),
    ],
)
def test_what_was_paid_for_with_an_earlier_version_is_recognised(layout, settings, folder):
    """Computed here from the format that releases were recorded in: entries by name, and a hash of each file."""
    entries = {
        "unit": "user",
        "candidate": "candidate",
        "score": "score",
        "sensitivity": "sensitivity",
        "offset": None,
        "anchor": None,
        "by_position": False,
        "on_bad_unit": "raise",
        "one": False,
        "readings": [["input", "parquet"]],
        "stream format": STREAM_FORMAT,
    }
    text = json.dumps(entries | settings, sort_keys=True).encode()
    content = hashlib.blake2b((folder / "long.parquet").read_bytes(), digest_size=32).digest()
    expected = hashlib.blake2b(text + content, digest_size=16, person=b"dpselect inputs").hexdigest()
    tables = open_tables(folder / "long.parquet", Layout(**layout), limits=Limits(), output=None)
    assert tables.fingerprint({}) == expected
