"""Interrupted and refused jobs leave nothing half done, compute nothing twice, and leave nothing behind."""

import json
import os
import resource
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from score_tables import GOOD_CSV, KEY, LISTS, SETTINGS, expected, make_rows, read, run_csv, write

from dpselect.budget.databases import DatabaseError
from dpselect.cli import main
from dpselect.release.jobs import Job

PATIENCE = 600
"""The time in seconds within which a busy machine must start a job, and end it."""


def start(*arguments, **settings):
    command = [sys.executable, "-W", "error", "-m", "dpselect.cli", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings)  # noqa: S603


def wait_for_parts(directory, count):
    deadline = time.monotonic() + PATIENCE
    while len(list(directory.glob("part-*.arrow"))) < count:
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.mark.parametrize(
    ("form", "signal_number"),
    [("csv", signal.SIGKILL), ("lists parquet", signal.SIGKILL), ("lists parquet", signal.SIGTERM)],
)
def test_a_killed_job_leaves_nothing_half_done_and_is_resumed(form, signal_number, tmp_path, capsys):
    long, lists = make_rows(users=400, seed=1)
    path = tmp_path / ("t.csv" if form == "csv" else "t.parquet")
    if form == "csv":
        pa.csv.write_csv(pa.Table.from_pylist(long), path)
    else:
        pq.write_table(lists, path, row_group_size=100)
    output = tmp_path / "picks.parquet"
    command = ["select", path, *SETTINGS, "-o", output, "--batch-candidates", "4", "--json"]
    unfinished = tmp_path / ".picks.parquet.unfinished"
    process = start(*command)
    wait_for_parts(unfinished, 12)
    process.send_signal(signal_number)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == (-signal.SIGKILL if signal_number == signal.SIGKILL else 130), errors
    assert not output.exists()
    assert unfinished.stat().st_mode & 0o777 == 0o700
    assert (unfinished / "key").stat().st_mode & 0o777 == 0o600
    key = (unfinished / "key").read_bytes()
    assert main([*map(str, command)]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["resumed"] >= 12
    assert facts["units"] == 400
    assert read(output) == expected(lists, key)
    assert not unfinished.exists()


@pytest.fixture
def interrupt(monkeypatch):
    """Return a function that interrupts the next job after some batches."""

    genuine = Job.add

    def after(batches):
        done = []

        def add(job, batch):
            if len(done) == batches:
                raise KeyboardInterrupt
            done.append(batch)
            genuine(job, batch)

        monkeypatch.setattr(Job, "add", add)

    return after


def test_parts_damaged_by_a_power_failure_are_computed_again(tmp_path, interrupt, monkeypatch):
    _, lists = make_rows(users=30, seed=5)
    pq.write_table(lists, tmp_path / "t.parquet")
    output = tmp_path / "p.csv"
    command = ["select", str(tmp_path / "t.parquet"), *SETTINGS, "-o", str(output), "--batch-candidates", "9"]
    interrupt(6)
    assert main(command) == 130
    unfinished = tmp_path / ".p.csv.unfinished"
    parts = sorted(unfinished.glob("part-*.arrow"))
    key = (unfinished / "key").read_bytes()
    assert len(parts) == 6
    content = bytearray(parts[2].read_bytes())
    content[len(content) // 2] ^= 1
    parts[2].write_bytes(content)
    interrupt(4)
    assert main(command) == 130
    again = sorted(unfinished.glob("part-*.arrow"))
    assert [path.name for path in again] == [path.name for path in parts]
    monkeypatch.undo()
    assert main(command) == 0
    assert read(output) == expected(lists, key)


def test_a_resumed_job_with_skipped_users_still_finds_users_with_two_rows(tmp_path, capsys, interrupt, monkeypatch):
    users = [*LISTS["user"].to_pylist()[:-1], "000"]
    users[3] = None
    pq.write_table(LISTS.set_column(0, "user", pa.array(users)), tmp_path / "t.parquet", row_group_size=10)
    command = ["select", str(tmp_path / "t.parquet"), *SETTINGS, "--on-bad-unit", "skip"]
    command += ["-o", str(tmp_path / "p.csv")]
    interrupt(3)
    assert main(command) == 130
    assert len(list((tmp_path / ".p.csv.unfinished").glob("part-*"))) == 3
    monkeypatch.undo()
    assert main(command) == 3
    assert "'user' must name each unit once" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.parquet"]


def test_an_unfinished_job_is_not_mixed_with_another(tmp_path, capsys, interrupt, monkeypatch):
    (tmp_path / "t.csv").write_text(GOOD_CSV + "bob,x,1,1\n")
    command = ["select", str(tmp_path / "t.csv"), "-o", str(tmp_path / "p.csv"), "--batch-candidates", "1"]
    interrupt(1)
    assert main([*command, "--epsilon", "1"]) == 130
    monkeypatch.undo()
    assert main([*command, "--epsilon", "2"]) == 3
    assert "had other inputs or options" in capsys.readouterr().err
    (tmp_path / "t.csv").write_text(GOOD_CSV)
    assert main([*command, "--epsilon", "1"]) == 3
    assert "had other inputs or options" in capsys.readouterr().err
    assert main([*command, "--epsilon", "1", "--restart"]) == 0
    assert list(read(tmp_path / "p.csv")) == ["ann"]


@pytest.mark.parametrize("options", [[], ["--key-file", "key"], ["--one", "--unit", "nobody"]])
def test_a_job_refused_for_bad_input_leaves_nothing_behind(options, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, output = run_csv(tmp_path, GOOD_CSV + "bob,x,nan,1\n", *options)
    assert code == 3
    assert "not a number" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "key") == ["scores.csv"]
    assert run_csv(tmp_path, GOOD_CSV, *options)[0] == 0
    assert output.exists()


def test_a_system_error_leaves_the_job_to_be_resumed(tmp_path):
    def fail(error):
        with Job(tmp_path / "picks.csv", {}) as job:
            job.key()
            raise error

    kept = tmp_path / ".picks.csv.unfinished" / "key"
    with pytest.raises(OSError, match="disk"):
        fail(OSError("disk"))
    assert kept.exists()
    with pytest.raises(DatabaseError, match="locked"):
        fail(DatabaseError("locked"))
    assert kept.exists()
    with pytest.raises(ValueError, match="bad"):
        fail(ValueError("bad"))
    assert not kept.parent.exists()


def test_an_unfinished_directory_that_others_could_have_prepared_is_refused(tmp_path, capsys):
    path = write(tmp_path / "t.csv", "csv")
    folder = tmp_path / ".picks.csv.unfinished"
    command = ["select", path, *SETTINGS, "-o", str(tmp_path / "picks.csv"), "--quiet"]

    def refused():
        code = main(command)
        assert not (tmp_path / "picks.csv").exists()
        return code == 3 and capsys.readouterr().err

    folder.mkdir(mode=0o700)
    folder.chmod(0o755)
    assert "not yours alone" in refused()
    folder.chmod(0o700)
    (folder / "key").write_bytes(KEY)
    (folder / "key").chmod(0o644)
    assert "not yours alone" in refused()
    (folder / "key").unlink()
    (tmp_path / "theirs").write_bytes(KEY)
    (tmp_path / "theirs").chmod(0o600)
    (folder / "key").symlink_to(tmp_path / "theirs")
    assert "must not be a link" in refused()
    (folder / "key").unlink()
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    assert "not yours alone" in refused()
    folder.unlink()
    if os.geteuid() == 0:
        folder.mkdir(mode=0o700)
        os.chown(folder, 12345, -1)
        assert "not yours alone" in refused()
        os.chown(folder, 0, -1)
    assert main(command) == 0


def test_what_an_unfinished_job_keeps_is_readable_by_its_owner_only(tmp_path):
    before = os.umask(0)
    try:
        with Job(tmp_path / "picks.csv", {}) as job:
            job.key()
            job.key_id(lambda: "some", None)
            job.add(pa.RecordBatch.from_pydict({"x": [1]}))
            modes = {path.name[:4]: path.stat().st_mode & 0o777 for path in job.directory.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(["lock", "job.", "key", "key-", "part"], 0o600)


def test_two_processes_do_not_write_one_output(tmp_path, capsys):
    _, lists = make_rows(users=400, seed=2)
    pq.write_table(lists, tmp_path / "t.parquet")
    command = ["select", str(tmp_path / "t.parquet"), *SETTINGS, "-o", str(tmp_path / "p.parquet")]
    command += ["--batch-candidates", "4"]
    process = start(*command)
    wait_for_parts(tmp_path / ".p.parquet.unfinished", 1)
    process.send_signal(signal.SIGSTOP)  # it cannot end before the other has started
    assert main(command) == 3
    process.send_signal(signal.SIGCONT)
    assert "another process is writing 'p.parquet'" in capsys.readouterr().err
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert len(read(tmp_path / "p.parquet")) == 400


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
