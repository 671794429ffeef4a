"""Interrupted, killed and refused jobs leave nothing half done, and the same command ends with one charge."""

import itertools
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from score_tables import GOOD_CSV, SETTINGS, expected, make_rows, read, run_csv

from dpselect.budget import Ledger
from dpselect.cli import main
from dpselect.files import write_atomically

PATIENCE = 600
"""The time in seconds within which a busy machine must start a job, and end it."""


def start(*arguments, script="-m dpselect", **settings):
    program = script.split() if script.startswith("-m") else ["-c", script]
    command = [sys.executable, "-W", "error", *program, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings)  # noqa: S603


SLOWLY = """
import sys, time, dpselect.engines.local as local
from dpselect.cli import main
genuine = local.write_batches
def slowly(results, *rest):
    genuine((time.sleep(0.02) or batch for batch in results), *rest)
local.write_batches = slowly
sys.exit(main(sys.argv[1:]))
"""
"""A job that has not ended before a signal reaches it: it takes at least two seconds."""


def wait_for_bytes(folder, count):
    """Wait until a job has written some of its output, under another name."""
    deadline = time.monotonic() + PATIENCE
    while not any(path.stat().st_size >= count for path in folder.glob(".p.csv.*.part")):
        assert time.monotonic() < deadline
        time.sleep(0.002)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def job(tmp_path):
    """Return a table with many small batches, the command for its picks, and the ledger that is charged."""
    long, lists = make_rows(users=400, seed=1)
    ledger = tmp_path / "ledger" / "budget.db"
    with Ledger.create(ledger) as book:
        book.add_population("readers", epsilon=3.0)
    command = ["select", tmp_path / "t", *SETTINGS, "-o", tmp_path / "p.csv", "--batch-candidates", "16", "--json"]
    return long, lists, command, ledger


PAID = ["--population", "readers", "--release", "spring"]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_killed_job_is_run_again_and_charged_once(form, job, tmp_path, capsys):
    long, lists, [command, _, *options], ledger = job
    path = tmp_path / f"t.{form}"
    pa.csv.write_csv(pa.Table.from_pylist(long), path) if form == "csv" else pq.write_table(lists, path)
    options += ["--budget", ledger, *PAID]
    process = start(command, path, *options, script=SLOWLY)
    wait_for_bytes(tmp_path, 1)
    process.kill()
    process.communicate(timeout=PATIENCE)
    [left] = tmp_path.glob(".*")
    assert stat.S_IMODE(left.stat().st_mode) == 0o600
    assert names(ledger.parent / "budget.db.keys") == ["fingerprints.key"]
    assert main([command, *map(str, [path, *options])]) == 0
    assert json.loads(capsys.readouterr().out)["charged"]
    left = [name for name in names(tmp_path) if not name.startswith("dpselect-sort-")]  # scratch of the sort
    assert left == ["ledger", "p.csv", path.name]
    with Ledger.open(ledger) as book:
        [paid] = book.statement("readers").releases
        assert read(tmp_path / "p.csv") == expected(lists, book.keys.get(paid.key_id))


KILL = """
import os, signal, sys
from pathlib import Path
from dpselect.budget import Ledger
from dpselect.cli import main
from dpselect.engines.local import LocalTables
def kill_before(owner, name):
    setattr(owner, name, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
def kill_after(owner, name):
    genuine = getattr(owner, name)
    setattr(owner, name, lambda *a, **k: (genuine(*a, **k), os.kill(os.getpid(), signal.SIGKILL)))
{moment}
sys.exit(main(sys.argv[1:]))
"""
MOMENTS = {
    "before the work": ("kill_before(LocalTables, 'pick')", 0),
    "after the work": ("kill_after(LocalTables, 'pick')", 0),
    "in the charge": ("kill_after(Ledger, '_write')", 0),
    "after the charge": ("kill_after(Ledger, 'charge')", 1),
    "before the renaming": ("kill_before(Path, 'chmod')", 1),
    "after the renaming": ("kill_before(Ledger, 'close')", 1),
}


@pytest.mark.parametrize(("moment", "charges"), MOMENTS.values(), ids=MOMENTS)
def test_a_job_killed_at_any_moment_ends_with_its_picks_and_one_charge(moment, charges, job, tmp_path, capsys):
    _, lists, [command, _, *options], ledger = job
    pq.write_table(lists, tmp_path / "t.parquet")
    command = [command, tmp_path / "t.parquet", *options, "--budget", ledger, *PAID]
    process = start(*command, script=KILL.format(moment=moment))
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == -signal.SIGKILL, errors
    with Ledger.open(ledger) as book:
        assert len(book.statement("readers").releases) == charges
    for again in range(2):
        assert main([*map(str, command)]) == 0
        assert json.loads(capsys.readouterr().out)["charged"] is (not charges and not again)
    assert names(tmp_path) == ["ledger", "p.csv", "t.parquet"]
    with Ledger.open(ledger) as book:
        [paid] = book.statement("readers").releases
        assert read(tmp_path / "p.csv") == expected(lists, book.keys.get(paid.key_id))


@pytest.mark.parametrize("payment", [[], ["--key-file", "key"]], ids=["fresh key", "key file"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_job_leaves_nothing(payment, number, job, tmp_path):
    _, lists, [command, _, *options], _ = job
    pq.write_table(lists, tmp_path / "t.parquet")
    process = start(command, tmp_path / "t.parquet", *options, *payment, cwd=tmp_path, script=SLOWLY)
    wait_for_bytes(tmp_path, 0)
    process.send_signal(number)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, errors
    assert "interrupted; run the same command again" in errors
    assert [name for name in names(tmp_path) if name != "key"] == ["ledger", "t.parquet"]


def test_two_jobs_may_write_one_output(job, tmp_path, key_file):
    _, lists, [command, _, *options], _ = job
    pq.write_table(lists, tmp_path / "t.parquet")
    command = [command, tmp_path / "t.parquet", *options, "--key-file", key_file]
    process = start(*command, script=SLOWLY)
    wait_for_bytes(tmp_path, 0)
    process.send_signal(signal.SIGSTOP)  # it cannot end before the other has
    assert main([*map(str, command)]) == 0
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert read(tmp_path / "p.csv") == expected(lists)
    assert names(tmp_path) == ["key", "key.used", "ledger", "p.csv", "t.parquet"]


def test_an_output_can_be_read_by_others_only_once_it_is_complete(tmp_path):
    before = os.umask(0o022)
    try:
        with write_atomically(tmp_path / "p.csv") as file:
            file.write(b"picks")
            file.flush()
            [hidden] = tmp_path.iterdir()
            assert stat.S_IMODE(hidden.stat().st_mode) == 0o600
        assert stat.S_IMODE((tmp_path / "p.csv").stat().st_mode) == 0o644
    finally:
        os.umask(before)


def test_what_other_processes_are_writing_stays(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    others = [f".p.csv.{process}-0.part" for process in (os.getpid(), os.getppid(), ended.pid)]
    kept = [*others[:2], ".p.csv.-.part", ".p.csv.x-0.part", f".q.csv.{ended.pid}-0.part"]
    for name in itertools.chain(others, kept):
        (tmp_path / name).write_text("")
    with write_atomically(tmp_path / "p.csv"):
        pass
    assert names(tmp_path) == sorted([*kept, "p.csv"])


@pytest.mark.parametrize("options", [[], ["--key-file", "key"], ["--one"]])
def test_a_job_refused_for_bad_input_leaves_nothing_behind(options, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, output = run_csv(tmp_path, GOOD_CSV + "bob,x,nan,1\n", *options)
    assert code == 3
    assert "not a number" in capsys.readouterr().err
    assert [name for name in names(tmp_path) if name != "key"] == ["scores.csv"]
    assert run_csv(tmp_path, GOOD_CSV, *options)[0] == 0
    assert output.exists()


def test_a_full_disk_is_reported_and_leaves_nothing_under_the_name(tmp_path, key_file):
    _, lists = make_rows(users=3000, seed=3)
    pq.write_table(lists, tmp_path / "t.parquet")
    output = tmp_path / "p.csv"
    command = ["select", tmp_path / "t.parquet", *SETTINGS, "-o", output, "--key-file", key_file]

    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    process = start(*command, preexec_fn=small_files, env=os.environ | {"NUMBA_CACHE_DIR": ""})
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 5, errors
    assert "File too large" in errors
    assert not output.exists()
    assert main([*map(str, command)]) == 0
    assert read(output) == expected(lists)


def test_an_old_output_stays_until_the_new_one_is_complete(tmp_path):
    output = tmp_path / "picks.csv"
    output.write_text("old")
    assert run_csv(tmp_path, GOOD_CSV + "bob,x,nan,1\n", "--overwrite")[0] == 3
    assert output.read_text() == "old"
    assert run_csv(tmp_path, GOOD_CSV, "--overwrite")[0] == 0
    assert list(read(output)) == ["ann"]
