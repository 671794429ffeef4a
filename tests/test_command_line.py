"""The command line: from tables of any form to picks, safely and resumably."""

import csv
import json
import os
import pty
import resource
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import dpselect as dps
from dpselect.cli import main
from dpselect.engines.arrow import Layout, Selector
from dpselect.engines.grouping import LongSource
from dpselect.engines.jobs import Job

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
    picks = pa.Table.from_batches(Selector(MECHANISM, key, layout=Layout())(lists.to_batches()))
    return dict(zip(*picks.to_pydict().values(), strict=True))


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "key"
    path.write_text(KEY.hex())
    path.chmod(0o600)
    return str(path)


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
    if path.suffix == ".json":
        rows = json.loads(path.read_text("utf-8"))
    elif path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    elif path.suffix == ".csv":
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


@pytest.mark.parametrize(("form", "name"), FORMS.items(), ids=FORMS)
@pytest.mark.parametrize("batch", ["1", "16", "1000000"])
def test_every_form_of_the_table_gives_the_same_picks(form, name, batch, tmp_path, key_file):
    path = write(tmp_path / "in" / name, form)
    output = str(tmp_path / "picks.parquet")
    code = main(
        ["select", path, *SETTINGS, "--key-file", key_file, "-o", output, "--batch-candidates", batch, "--quiet"]
    )
    assert code == 0
    assert read(output) == expected()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", "key", "key.used", "picks.parquet"]


@pytest.mark.parametrize("name", ["s[1].parquet", "s?.parquet", "*.parquet", "user=zoe/x.parquet", "it's.parquet"])
def test_a_long_table_is_read_from_its_own_file_whatever_that_is_called(name, tmp_path, key_file):
    path = tmp_path / "in" / name
    path.parent.mkdir(parents=True)
    others = pa.Table.from_pylist([row | {"user": "somebody else"} for row in LONG[:1]])
    pq.write_table(others, path.with_name("s1.parquet"))
    pq.write_table(pa.Table.from_pylist(LONG), path)
    output = str(tmp_path / "picks.parquet")
    assert main(["select", str(path), *SETTINGS, "--key-file", key_file, "-o", output, "--quiet"]) == 0
    assert read(output) == expected()


def test_what_stops_the_reading_of_a_long_table_is_told(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.Table.from_pylist(LONG), path)
    source = LongSource([path], "parquet", unit="user", candidate="candidate", numbers=["score"])
    path.unlink()
    with pytest.raises(FileNotFoundError):
        list(source.batches(["user"]))


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".json", ".jsonl", ".arrow"])
def test_every_output_holds_the_picks_and_nothing_else(suffix, tmp_path, key_file):
    path, output = write(tmp_path / "t.csv", "csv"), tmp_path / f"picks{suffix}"
    assert main(["select", path, *SETTINGS, "--key-file", key_file, "-o", str(output)]) == 0
    assert read(output) == expected()


def test_picks_go_to_the_standard_output_and_the_report_elsewhere(tmp_path, key_file, capfdbinary):
    path = write(tmp_path / "t.csv", "csv")
    assert main(["select", path, *SETTINGS, "--key-file", key_file, "--json"]) == 0
    output, errors = capfdbinary.readouterr()
    (tmp_path / "copy.csv").write_bytes(output)
    assert read(tmp_path / "copy.csv") == expected()
    facts = json.loads(errors)
    assert (facts["units"], facts["picked"], facts["skipped"]) == (40, 40, 0)
    assert facts["epsilon"] == 2.0


def test_a_fresh_key_is_taken_for_every_job_and_forgotten(tmp_path):
    path = write(tmp_path / "t.parquet", "lists parquet")
    for name in ("a.csv", "b.csv"):
        assert main(["select", path, *SETTINGS, "-o", str(tmp_path / name), "--quiet"]) == 0
    assert read(tmp_path / "a.csv") != read(tmp_path / "b.csv")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.csv", "b.csv", "t.parquet"]


def test_a_key_file_is_made_private_and_must_be(tmp_path, capsys):
    path, key = write(tmp_path / "t.csv", "csv"), tmp_path / "new-key"
    command = ["select", path, *SETTINGS, "--key-file", str(key), "-o", str(tmp_path / "p.csv")]
    assert main(command) == 0
    assert key.stat().st_mode & 0o777 == 0o600
    assert read(tmp_path / "p.csv") == expected(key=bytes.fromhex(key.read_text()))
    key.chmod(0o644)
    assert main(command) == 3
    assert "chmod 600" in capsys.readouterr().err
    key.chmod(0o600)
    key.write_text("xyz")
    assert main(command) == 3
    assert "64 hexadecimal digits" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["csv", "lists parquet"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_sensitivities_come_from_a_second_table_or_are_one_number(form, suffix, tmp_path, key_file):
    path = write(tmp_path / f"t.{'csv' if form == 'csv' else 'parquet'}", form)
    second = pa.table(
        {"candidate": [f"item {c:02}" for c in range(30)], "width": [(c + 1) / 16 for c in range(30)]}
    )
    other = tmp_path / f"items{suffix}"
    pa.csv.write_csv(second, other) if suffix == ".csv" else pq.write_table(second, other)
    output = tmp_path / "picks.csv"
    joined = ["--candidates", str(other), "--sensitivity", "width"]
    assert main(["select", path, *SETTINGS, *joined, "--key-file", key_file, "-o", str(output)]) == 0
    assert read(output) == expected()
    (tmp_path / "key.used").unlink()
    constant = LISTS.set_column(3, "sensitivity", pa.array([[0.5] * len(c.as_py()) for c in LISTS["candidate"]]))
    assert main(["select", path, *SETTINGS, "--sensitivity", "0.5", "--key-file", key_file, "-o", str(output)]) == 0
    assert read(output) == expected(constant)


def test_scores_by_position_are_named_by_the_second_table(tmp_path, key_file):
    scores = pa.table({"user": ["a", "b"], "score": [[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]})
    pq.write_table(scores, tmp_path / "t.parquet")
    (tmp_path / "items.csv").write_text("candidate,sensitivity\nx,1\ny,0.5\nz,2\n")
    options = ["--by-position", "--candidates", str(tmp_path / "items.csv"), "--key-file", key_file]
    assert main(["select", str(tmp_path / "t.parquet"), *SETTINGS, *options, "-o", str(tmp_path / "p.csv")]) == 0
    full = scores.append_column("candidate", pa.array([list("xyz")] * 2))
    full = full.append_column("sensitivity", pa.array([[1.0, 0.5, 2.0]] * 2))
    assert read(tmp_path / "p.csv") == expected(full)


def test_probabilities_are_exact_and_come_with_a_warning(tmp_path, capfd):
    path = write(tmp_path / "t.csv", "csv")
    assert main(["pmf", path, *SETTINGS, "-o", str(tmp_path / "p.parquet")]) == 0
    assert "without paying" in capfd.readouterr().err
    found = {row["user"]: row for row in pq.read_table(tmp_path / "p.parquet").to_pylist()}
    for row in LISTS.to_pylist():
        assert found[row["user"]]["candidate"] == row["candidate"]
        assert found[row["user"]]["probability"] == MECHANISM.pmf(row["score"], row["sensitivity"]).tolist()
    assert main(["pmf", path, *SETTINGS]) == 0
    lines = list(csv.DictReader(capfd.readouterr().out.splitlines()))
    assert len(lines) == len(LONG)
    assert float(lines[0]["probability"]) == found["000"]["probability"][0]


def test_parameters_reach_the_mechanism(tmp_path, key_file):
    path, output = write(tmp_path / "t.parquet", "lists parquet"), tmp_path / "p.csv"
    options = ["--parameter", "tilt=-3", "--parameter", "noise=gumbel", "--key-file", key_file, "-o", str(output)]
    assert main(["select", path, *SETTINGS, *options]) == 0
    selector = Selector(dps.GEM(epsilon=2.0, tilt=-3, noise="gumbel"), KEY, layout=Layout())
    picks = pa.Table.from_batches(selector(LISTS.to_batches()))
    assert read(output) == dict(zip(*picks.to_pydict().values(), strict=True))


# --- Wrong usage and bad input ----------------------------------------------------------------------------

GOOD_CSV = f"user,candidate,score,sensitivity\nann,a,{SECRET},1\nann,b,0.5,1\n"


def run_csv(tmp_path, text, *options, name="scores.csv"):
    (tmp_path / name).write_text(text)
    output = tmp_path / "picks.csv"
    return main(["select", str(tmp_path / name), "--epsilon", "1", "-o", str(output), *options]), output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--score", "rating"], "unknown column 'rating': 'scores.csv' has 'user', 'candidate', 'score'"),
        (["--sensitivity", "width"], "or give --sensitivity a number"),
        (["--mechanism", "magic"], "--mechanism must be one of rnm"),
        (["--parameter", "tlit=3"], "rnm has no field 'tlit'"),
        (["--parameter", "beta=3"], "beta must lie strictly between 0 and 1"),
        (["--parameter", "tilt=abc"], "--parameter tilt must be a number"),
        (["--mechanism", "em", "--parameter", "noise=laplace"], "em has no field 'noise' to set"),
        (["-o", "picks.xlsx"], "--output must end in one of .parquet"),
        (["--epsilon", "0"], "--epsilon must be positive"),
        (["--by-position", "--candidate", "candidate"], "--by-position needs a list column"),
    ],
)
def test_wrong_usage_is_explained(options, message, tmp_path, capsys):
    code, output = run_csv(tmp_path, GOOD_CSV, *options)
    assert code == 2
    assert message in capsys.readouterr().err
    assert not output.exists()


@pytest.mark.parametrize("options", [["--epsilon", "one"], ["--parameter", "tilt"], ["--threads", "0"], ["--oops"]])
def test_options_that_cannot_be_read_are_refused_by_name(options, tmp_path, capsys):
    with pytest.raises(SystemExit) as caught:
        run_csv(tmp_path, GOOD_CSV, *options)
    assert caught.value.code == 2
    assert options[0] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("header", "column"),
    [("user,user,candidate,score,sensitivity", "user"), ("user,candidate,score,score,sensitivity", "score")],
)
@pytest.mark.parametrize("more", [[], ["--one", "--unit", "nobody"]])
def test_columns_of_one_name_are_bad_input(header, column, more, tmp_path, capsys):
    """One pick out of all does not read users."""
    code, output = run_csv(tmp_path, f"{header}\n1,2,3,4,5\n", *more)
    if more and column == "user":
        assert code == 0
    else:
        assert code == 3
        assert f"ambiguous column {column!r}: 'scores.csv' has 'user'" in capsys.readouterr().err
        assert not output.exists()


def test_columns_of_one_name_are_bad_input_in_other_tables_too(tmp_path, capsys):
    twice = pa.Table.from_arrays([*LISTS.columns, LISTS.column("score")], [*LISTS.schema.names, "score"])
    pq.write_table(twice, tmp_path / "t.parquet")
    assert main(["select", str(tmp_path / "t.parquet"), *SETTINGS]) == 3
    assert "ambiguous column 'score': 't.parquet' has" in capsys.readouterr().err
    (tmp_path / "items.csv").write_text("candidate,width,width\na,1,1\nb,1,1\n")
    code, _ = run_csv(tmp_path, GOOD_CSV, "--candidates", str(tmp_path / "items.csv"), "--sensitivity", "width")
    assert code == 3
    assert "ambiguous column 'width': 'items.csv' has" in capsys.readouterr().err


def test_a_mistake_of_the_program_is_told_without_the_words_of_the_error(tmp_path, capsys, monkeypatch):
    def fail(_options):
        raise KeyError(SECRET)

    monkeypatch.setattr("dpselect.cli.select.run", fail)
    assert run_csv(tmp_path, GOOD_CSV)[0] == 70
    told = capsys.readouterr().err
    assert "KeyError in test_command_line.py, line" in told
    assert SECRET not in told
    monkeypatch.setenv("DPSELECT_DEBUG", "1")
    with pytest.raises(KeyError):
        run_csv(tmp_path, GOOD_CSV)


@pytest.mark.parametrize(
    "error", [pa.ArrowInvalid(SECRET), UnicodeDecodeError("utf-8", SECRET.encode(), 0, 3, SECRET)]
)
def test_the_words_of_a_librarys_error_are_not_shown(error, tmp_path, capsys, monkeypatch):
    def fail(_options):
        raise error

    monkeypatch.setattr("dpselect.cli.select.run", fail)
    assert run_csv(tmp_path, GOOD_CSV)[0] == 3
    told = capsys.readouterr().err
    assert f"the input cannot be read ({type(error).__name__})" in told
    assert SECRET not in told


def test_a_library_that_is_missing_is_named_with_its_extra(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert run_csv(tmp_path, GOOD_CSV)[0] == 5
    assert "duckdb, which is not installed: pip install 'dpselect[cli]'" in capsys.readouterr().err


def test_the_first_run_says_that_it_compiles(tmp_path, capsys, monkeypatch):
    def told(kept, *options):
        monkeypatch.setattr("dpselect.kernels.compilation.cache_directory", lambda: kept)
        assert run_csv(tmp_path, GOOD_CSV, *options)[0] == 0
        return [line for line in capsys.readouterr().err.splitlines() if line.startswith("compiling")]

    (kept := tmp_path / "kernels").mkdir()
    assert told(kept) == ["compiling, this once: some twenty seconds"]
    assert told(kept, "--quiet") == told(kept, "--json") == []
    (kept / "of one version").mkdir()
    (kept / "of one version" / "rows.nbi").touch()
    assert told(kept) == []
    [line] = told(None)
    assert "each time" in line


def test_the_package_can_be_run_as_a_module():
    shown = subprocess.run(
        [sys.executable, "-m", "dpselect", "--version"], capture_output=True, text=True, check=True
    )
    assert shown.stdout == f"dpselect {dps.__version__}\n"


BAD_ROWS = {
    "duplicate candidate": (
        "bob,x,0.5,1\nbob,x,0.25,1\n",
        "user 'bob': column 'candidate' names a candidate twice",
    ),
    "missing sensitivity": ("bob,x,0.5,\n", "user 'bob': column 'sensitivity' is missing"),
    "negative sensitivity": ("bob,x,0.5,-1\n", "user 'bob': column 'sensitivity' must not be negative"),
    "NaN score": ("bob,x,nan,1\n", "user 'bob': column 'score' is missing or not a number"),
    "missing score": ("bob,x,,1\n", "user 'bob': column 'score' is missing or not a number"),
    "text for a score": (f"bob,x,{SECRET}x,1\n", "user 'bob': column 'score' is missing or not a number"),
    "infinite score": ("bob,x,inf,1\n", "user 'bob': column 'score' must be finite"),
    "no user": (",x,0.5,1\n", "rows without user: column 'user' is missing"),
    "no candidate": ("bob,,0.5,1\n", "user 'bob': column 'candidate' has a candidate without an identifier"),
}


@pytest.mark.parametrize(("rows", "message"), BAD_ROWS.values(), ids=BAD_ROWS)
def test_bad_rows_stop_a_job_or_are_skipped_and_counted(rows, message, tmp_path, capsys):
    code, output = run_csv(tmp_path, GOOD_CSV + rows)
    captured = capsys.readouterr()
    assert code == 3
    assert f"scores.csv, {message}" in captured.err
    assert "0.12" not in captured.err + captured.out
    assert not output.exists()
    code, output = run_csv(tmp_path, GOOD_CSV + rows, "--on-bad-unit", "skip", "--json", "--restart")
    facts = json.loads(capsys.readouterr().out)
    assert code == 0
    assert (facts["picked"], facts["skipped"]) == (1, 1)
    [(problem, count)] = facts["problems"].items()
    assert problem in message or message.split(": ")[1] in problem
    assert count == 1
    assert list(read(output)) == ["ann"]


def test_bad_units_of_list_columns_are_located_by_row_group_and_row(tmp_path, capsys):
    scores = LISTS["score"].to_pylist()
    scores[23][0] = float("nan")
    bad = LISTS.set_column(2, "score", pa.array(scores))
    pq.write_table(bad, tmp_path / "t.parquet", row_group_size=10)
    command = ["select", str(tmp_path / "t.parquet"), *SETTINGS, "-o", str(tmp_path / "p.csv")]
    assert main(command) == 3
    assert "t.parquet, row group 2, row 3: column 'score' is missing or not a number" in capsys.readouterr().err
    assert main([*command, "--on-bad-unit", "skip", "--restart"]) == 0
    assert "skipped 1: column 'score'" in capsys.readouterr().err
    assert len(read(tmp_path / "p.csv")) == 39


def test_a_user_in_two_rows_of_lists_is_refused_even_in_two_files(tmp_path, capsys):
    (tmp_path / "t").mkdir()
    pq.write_table(LISTS.slice(0, 20), tmp_path / "t" / "a.parquet")
    pq.write_table(LISTS.slice(19), tmp_path / "t" / "b.parquet")
    assert main(["select", str(tmp_path / "t"), *SETTINGS, "-o", str(tmp_path / "p.csv")]) == 3
    assert "'user' must name each unit once" in capsys.readouterr().err
    assert not (tmp_path / "p.csv").exists()


BROKEN = {
    "ragged": (GOOD_CSV + f"bob,x,{SECRET}\n", "scores.csv", "3 fields where 4 are expected"),
    "empty": ("", "scores.csv", "cannot be read as CSV"),
    "no rows": ("user,candidate,score,sensitivity\n", "scores.csv", "holds no user"),
    "not Parquet": (GOOD_CSV, "scores.parquet", "damaged, or of another format"),
    "not Arrow": (GOOD_CSV, "scores.arrow", "damaged, or of another format"),
    "unknown": (GOOD_CSV, "scores.xlsx", "cannot tell the format"),
}


@pytest.mark.parametrize(("text", "name", "message"), BROKEN.values(), ids=BROKEN)
def test_files_that_cannot_be_read_are_named_and_not_quoted(text, name, message, tmp_path, capsys):
    code, output = run_csv(tmp_path, text, name=name)
    captured = capsys.readouterr()
    assert code == 3
    assert message in captured.err
    assert name in captured.err
    assert SECRET not in captured.err
    assert not output.exists()


def test_files_that_are_not_there_or_differ_are_named(tmp_path, capsys):
    assert main(["select", str(tmp_path / "no.csv"), "--epsilon", "1"]) == 3
    assert "there is no file" in capsys.readouterr().err
    (tmp_path / "t").mkdir()
    assert main(["select", str(tmp_path / "t"), "--epsilon", "1"]) == 3
    assert "holds no Parquet files" in capsys.readouterr().err
    pq.write_table(LISTS, tmp_path / "t" / "a.parquet")
    pq.write_table(LISTS.rename_columns(["user", "item", "score", "sensitivity"]), tmp_path / "t" / "b.parquet")
    assert main(["select", str(tmp_path / "t"), "--epsilon", "1"]) == 3
    assert "'b.parquet' has other columns than 'a.parquet'" in capsys.readouterr().err


# --- Interruptions ------------------------------------------------------------------------------------------


def start(*arguments, **settings):
    command = [sys.executable, "-W", "error", "-m", "dpselect.cli", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings)  # noqa: S603


def wait_for_parts(directory, count):
    deadline = time.monotonic() + 60
    while len(list(directory.glob("part-*.arrow"))) < count:
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.mark.parametrize(
    ("form", "signal_number"),
    [("csv", signal.SIGKILL), ("lists parquet", signal.SIGKILL), ("lists parquet", signal.SIGTERM)],
)
def test_a_killed_job_leaves_nothing_half_done_and_is_resumed(form, signal_number, tmp_path, capsys):
    long, lists = make_rows(users=150, seed=1)
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
    _, errors = process.communicate(timeout=60)
    assert process.returncode == (-signal.SIGKILL if signal_number == signal.SIGKILL else 130), errors
    assert not output.exists()
    assert unfinished.stat().st_mode & 0o777 == 0o700
    assert (unfinished / "key").stat().st_mode & 0o777 == 0o600
    key = (unfinished / "key").read_bytes()
    assert main([*map(str, command)]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["resumed"] >= 12
    assert facts["units"] == 150
    assert read(output) == expected(lists, key)
    assert not unfinished.exists()


def test_parts_that_a_power_failure_has_spoilt_are_computed_again(tmp_path):
    _, lists = make_rows(users=30, seed=5)
    scores = lists["score"].to_pylist()
    pq.write_table(
        lists.set_column(2, "score", pa.array([*scores[:-1], [float("nan")] * len(scores[-1])])),
        tmp_path / "t.parquet",
    )
    command = [
        "select",
        str(tmp_path / "t.parquet"),
        *SETTINGS,
        "-o",
        str(tmp_path / "p.csv"),
        "--batch-candidates",
        "9",
    ]
    command += ["--on-bad-unit", "raise", "--json"]
    assert main(command) == 3
    unfinished = tmp_path / ".p.csv.unfinished"
    parts = sorted(unfinished.glob("part-*.arrow"))
    key = (unfinished / "key").read_bytes()
    assert len(parts) > 4
    content = bytearray(parts[2].read_bytes())
    content[len(content) // 2] ^= 1
    parts[2].write_bytes(content)
    assert main(command) == 3
    again = sorted(unfinished.glob("part-*.arrow"))
    assert [path.name for path in again] == [path.name for path in parts]
    found = pa.concat_tables([pa.feather.read_table(path) for path in again]).to_pydict()
    whole = expected(lists, key)
    assert dict(zip(*found.values(), strict=True)) == {user: whole[user] for user in found["user"]}


def test_a_job_with_skipped_users_is_resumed_and_still_finds_who_has_two_rows(tmp_path, capsys):
    users = [*LISTS["user"].to_pylist()[:-1], "000"]
    users[3] = None
    pq.write_table(LISTS.set_column(0, "user", pa.array(users)), tmp_path / "t.parquet", row_group_size=10)
    command = [
        "select",
        str(tmp_path / "t.parquet"),
        *SETTINGS,
        "--on-bad-unit",
        "skip",
        "-o",
        str(tmp_path / "p.csv"),
    ]
    for _ in range(2):
        assert main(command) == 3
        assert "'user' must name each unit once" in capsys.readouterr().err
        assert len(list((tmp_path / ".p.csv.unfinished").glob("part-*"))) == 4


def test_an_unfinished_job_is_not_mixed_with_another(tmp_path, capsys):
    (tmp_path / "t.csv").write_text(GOOD_CSV + "bob,x,nan,1\n")
    command = ["select", str(tmp_path / "t.csv"), "-o", str(tmp_path / "p.csv"), "--batch-candidates", "1"]
    assert main([*command, "--epsilon", "1"]) == 3
    assert main([*command, "--epsilon", "2"]) == 3
    assert "had other inputs or options" in capsys.readouterr().err
    (tmp_path / "t.csv").write_text(GOOD_CSV)
    assert main([*command, "--epsilon", "1"]) == 3
    assert "had other inputs or options" in capsys.readouterr().err
    assert main([*command, "--epsilon", "1", "--restart"]) == 0
    assert list(read(tmp_path / "p.csv")) == ["ann"]


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
    _, lists = make_rows(users=100, seed=2)
    pq.write_table(lists, tmp_path / "t.parquet")
    command = ["select", str(tmp_path / "t.parquet"), *SETTINGS, "-o", str(tmp_path / "p.parquet")]
    command += ["--batch-candidates", "4"]
    process = start(*command)
    wait_for_parts(tmp_path / ".p.parquet.unfinished", 1)
    assert main(command) == 3
    assert "another process is writing 'p.parquet'" in capsys.readouterr().err
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert len(read(tmp_path / "p.parquet")) == 100


def test_a_full_disk_is_reported_and_leaves_nothing_under_the_name(tmp_path, key_file):
    _, lists = make_rows(users=3000, seed=3)
    pq.write_table(lists, tmp_path / "t.parquet")
    output = tmp_path / "p.csv"
    command = ["select", tmp_path / "t.parquet", *SETTINGS, "-o", output, "--key-file", key_file]

    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    process = start(*command, preexec_fn=small_files, env=os.environ | {"NUMBA_CACHE_DIR": ""})
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 5, errors
    assert "File too large" in errors
    assert not output.exists()
    assert main([*map(str, command)]) == 0
    assert read(output) == expected(lists)


def test_an_old_output_stays_until_the_new_one_is_complete(tmp_path):
    output = tmp_path / "picks.csv"
    output.write_text("old")
    assert run_csv(tmp_path, GOOD_CSV + "bob,x,nan,1\n")[0] == 3
    assert output.read_text() == "old"
    assert run_csv(tmp_path, GOOD_CSV, "--restart")[0] == 0
    assert list(read(output)) == ["ann"]


# --- Size, help, progress -----------------------------------------------------------------------------------


def test_a_long_table_larger_than_the_memory_for_sorting_works(tmp_path, key_file):
    users, width = 20_000, 100
    rng = np.random.default_rng(4)
    order = rng.permutation(users * width)
    long = pa.table(
        {
            "user": order // width,
            "candidate": order % width,
            "score": rng.integers(-64, 64, order.size) / 32,
        }
    )
    pq.write_table(long, tmp_path / "t.parquet")
    options = ["--sensitivity", "1", "--memory", "40MB", "--key-file", key_file, "--batch-candidates", "50000"]
    output = tmp_path / "p.parquet"
    assert main(["select", str(tmp_path / "t.parquet"), "--epsilon", "3", *options, "-o", str(output)]) == 0
    scores = np.empty(order.size)
    scores[order] = long["score"].to_numpy()
    randomness = dps.Randomness.keyed(KEY, np.arange(users))
    picks = dps.NoisyMax(epsilon=3.0).select(scores.reshape(users, width), 1.0, randomness=randomness)
    assert read(output) == dict(enumerate(picks.tolist()))


@pytest.mark.parametrize(
    "command", [[], ["select"], ["pmf"], ["budget"], ["budget", "create"], ["audit"], ["advise"], ["tune"]]
)
def test_help_is_there_and_loads_no_arrays(command, capsys):
    script = (
        "import sys; from dpselect.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: print(sorted({'numba', 'pyarrow', 'duckdb'} & set(sys.modules)))"
    )
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", script, *command, "--help"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("usage: dpselect")
    assert done.stdout.endswith("[]\n")
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"dpselect {dps.__version__}\n"


def test_progress_is_a_bar_on_a_terminal_and_lines_elsewhere(tmp_path, monkeypatch, capsys):
    path = write(tmp_path / "t.parquet", "lists parquet")
    command = ["select", path, *SETTINGS, "-o", str(tmp_path / "p.csv"), "--batch-candidates", "8"]
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, 100))
    process = subprocess.Popen([sys.executable, "-m", "dpselect.cli", *command], stderr=slave)  # noqa: S603
    os.close(slave)
    shown = b""
    while True:
        try:
            shown += os.read(master, 65536)
        except OSError:  # the other end is closed
            break
    os.close(master)
    assert process.wait() == 0
    assert b"users/s" in shown
    assert b"%|" in shown
    monkeypatch.setattr("dpselect.cli.progress.SECONDS_BETWEEN_LINES", 0.0)
    assert main(command) == 0
    lines = capsys.readouterr().err.splitlines()
    assert any("users, " in line and "a second, 100%, about 0 seconds left" in line for line in lines)


def test_audits_tell_private_mechanisms_from_others(capsys):
    settings = ["--epsilon", "1", "--sensitivities", "1,0.25", "--restarts", "4", "--json"]
    assert main(["audit", "--mechanism", "gem", *settings]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["verdict"] == "no violation found"
    assert facts["loss"] <= 1 + 1e-9
    assert main(["audit", "--mechanism", "rnmh", *settings]) == 1
    facts = json.loads(capsys.readouterr().out)
    assert facts["loss"] == "infinite" or facts["loss"] > 1
    assert main(["audit", "--mechanism", "rnmh", *settings[:-1]]) == 1
    assert "violated" in capsys.readouterr().out
    assert main(["audit", "--epsilon", "1", "--sensitivities", "1;2"]) == 2
    assert "with commas between them" in capsys.readouterr().err


def test_advice_ranks_mechanisms_from_what_is_public(tmp_path, capsys):
    settings = ["--epsilon", "0.5", "--correlation", "0.9", "--json"]
    assert main(["advise", "--sensitivities", "0.1,0.3,0.5,0.7,0.9", *settings]) == 0
    facts = json.loads(capsys.readouterr().out)
    (tmp_path / "items.csv").write_text("candidate,width\na,0.1\nb,0.3\nc,0.5\nd,0.7\ne,0.9\n")
    assert main(["advise", "--candidates", str(tmp_path / "items.csv"), "--sensitivity", "width", *settings]) == 0
    assert json.loads(capsys.readouterr().out) == facts
    expected = dps.advice.advise([0.1, 0.3, 0.5, 0.7, 0.9], 0.5, correlation=0.9)
    assert facts["best"] == repr(expected.best)
    assert [row["error"] for row in facts["rows"]] == [row.error for row in expected.rows]
    assert main(["advise", "--sensitivities", "1,2", "--epsilon", "0.5"]) == 0
    assert "dpselect select … --epsilon 0.5 --mechanism " in capsys.readouterr().out
    assert main(["advise", "--epsilon", "1"]) == 2
    assert main(["advise", "--epsilon", "1", "--candidates", str(tmp_path / "items.csv")]) == 2


@pytest.mark.parametrize("form", ["csv", "lists parquet"])
def test_tuning_chooses_what_suits_the_users(form, tmp_path, capsys):
    rng = np.random.default_rng(6)
    users, width = 300, 12
    widths = np.linspace(0.1, 1.0, width)
    scores = np.clip(widths + 0.1 * rng.normal(size=(users, width)), 0, 1)  # the best ones are sensitive
    path = tmp_path / ("t.csv" if form == "csv" else "t.parquet")
    if form == "csv":
        long = {
            "user": np.repeat(np.arange(users), width),
            "candidate": np.tile(np.arange(width), users),
            "score": scores.reshape(-1),
            "sensitivity": np.tile(widths, users),
        }
        pa.csv.write_csv(pa.table(long), path)
    else:
        lists = {"candidate": [list(range(width))] * users, "score": scores.tolist()}
        table = {"user": list(range(users)), **lists, "sensitivity": [widths.tolist()] * users}
        pq.write_table(pa.table(table), path)
    command = ["tune", str(path), "--epsilon", "1", "--tuning-epsilon", "8", "--json"]
    assert main([*command, "--cap", "1"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["users"], facts["cap"], facts["epsilon_with_picks"]) == (users, 1.0, 9.0)
    options = dict(part.strip().split("=") for part in facts["options"].split("--parameter ")[1:])
    assert float(options["tilt"]) < 0
    chosen = facts["options"].split()
    assert main(["select", str(path), "--epsilon", "1", *chosen, "-o", str(tmp_path / "p.csv"), "-q"]) == 0
    assert main([*command, "--cap", "1,2,3"]) == 2
