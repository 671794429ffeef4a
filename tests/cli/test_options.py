"""Wrong usage and bad input on the command line: messages are clear and show no score."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from score_tables import GOOD_CSV, LISTS, SECRET, SETTINGS, read, run_csv

import dpselect as dps
from dpselect.cli import main
from dpselect.kernels import caches


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--score", "rating"],
            "has 'user', 'candidate', 'score', 'sensitivity'; name it with --score",
        ),
        (["--sensitivity", "width"], "name it with --sensitivity, or give --sensitivity a number"),
        (["--mechanism", "magic"], "--mechanism must be one of heterogeneous-rnm"),
        (["--parameter", "tlit=3"], "rnm has no field 'tlit'"),
        (["--parameter", "beta=3"], "beta must be strictly between 0 and 1"),
        (["--parameter", "tilt=abc"], "--parameter tilt must be a number"),
        (["--mechanism", "em", "--parameter", "noise=laplace"], "em has no field 'noise' to set"),
        (["-o", "picks.xlsx"], "--output must end in one of .parquet"),
        (["--epsilon", "0"], "--epsilon must be positive"),
        (["--by-position", "--candidate", "candidate"], "leave out --by-position"),
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
@pytest.mark.parametrize("more", [[], ["--one"]])
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


@pytest.mark.parametrize("one", [[], ["--one"]], ids=["units", "one"])
def test_candidates_that_are_the_same_number_written_in_two_ways_are_bad_input(one, tmp_path, capsys):
    whole = pa.table({"user": ["ann"], "candidate": [[1, 2]], "score": [[0.5, 0.25]]})
    flat = pa.table({"candidate": [1, 2], "score": [0.5, 0.25]})
    pq.write_table(flat if one else whole, tmp_path / "t.parquet")
    (tmp_path / "items.csv").write_text("candidate,width\n1,1\n01,2\n2,1\n")
    joined = ["--candidates", str(tmp_path / "items.csv"), "--sensitivity", "width", "--epsilon", "1", "-q"]
    command = ["select", str(tmp_path / "t.parquet"), *joined, *one, "-o", str(tmp_path / "p.csv")]
    assert main(command) == 3
    assert "distinct identifiers in column 'candidate'" in capsys.readouterr().err
    assert not (tmp_path / "p.csv").exists()
    (tmp_path / "items.csv").write_text("candidate,width\n1,1\n02,2\n")
    assert main(command) == 0


def test_an_internal_error_is_reported_without_its_message(tmp_path, capsys, monkeypatch):
    def fail(_options):
        raise KeyError(SECRET)

    monkeypatch.setattr("dpselect.cli.select.run", fail)
    assert run_csv(tmp_path, GOOD_CSV)[0] == 70
    reported = capsys.readouterr().err
    assert f"internal error: KeyError in {Path(__file__).name}, line" in reported
    assert SECRET not in reported
    monkeypatch.setenv("DPSELECT_DEBUG", "1")
    with pytest.raises(KeyError):
        run_csv(tmp_path, GOOD_CSV)


@pytest.mark.parametrize(
    "error", [pa.ArrowInvalid(SECRET), UnicodeDecodeError("utf-8", SECRET.encode(), 0, 3, SECRET)]
)
def test_the_message_of_a_librarys_error_is_not_shown(error, tmp_path, capsys, monkeypatch):
    def fail(_options):
        raise error

    monkeypatch.setattr("dpselect.cli.select.run", fail)
    assert run_csv(tmp_path, GOOD_CSV)[0] == 3
    reported = capsys.readouterr().err
    assert f"the input cannot be read ({type(error).__name__})" in reported
    assert SECRET not in reported


def test_a_library_that_is_missing_is_named_with_its_extra(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert run_csv(tmp_path, GOOD_CSV, "--memory", "1B")[0] == 5
    assert "duckdb, which is not installed: pip install 'dpselect[cli]'" in capsys.readouterr().err


def test_kernels_can_be_compiled_ahead(capsys, monkeypatch):
    assert main(["compile", "uniform"]) == 0
    assert f"kept in {caches.cache_directory()}" in capsys.readouterr().out
    assert main(["compile", "ouija"]) == 3
    assert f"mechanism must be one of {', '.join(dps.MECHANISMS)}; got 'ouija'" in capsys.readouterr().err
    monkeypatch.setattr("dpselect.cli.compile.cache_directory", lambda: None)
    assert main(["compile"]) == 5
    assert "set DPSELECT_CACHE to a directory" in capsys.readouterr().err


def test_the_package_can_be_run_as_a_module():
    shown = subprocess.run(
        [sys.executable, "-m", "dpselect", "--version"], capture_output=True, text=True, check=True
    )
    assert shown.stdout == f"dpselect {dps.__version__}\n"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["help"], "usage: dpselect "),
        (["help", "select"], "usage: dpselect select "),
        (["version"], f"dpselect {dps.__version__}\n"),
    ],
)
def test_help_and_version_are_commands_too(words, shown, capsys):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith(shown)


def test_help_asks_first_whose_data_is_in_a_row(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "Whose data is in a row of scores?" in " ".join(capsys.readouterr().out.split())


def test_usage_errors_say_the_cause_first(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["select", "scores.csv"])
    assert caught.value.code == 2
    cause, hint = capsys.readouterr().err.splitlines()
    assert cause == "dpselect: the following arguments are required: --epsilon"
    assert hint == "`dpselect select --help` lists the options."


@pytest.mark.parametrize("moment", ["argparse", "numpy", "pyarrow.lib"])
def test_ctrl_c_ends_a_command_that_is_still_loading(moment):
    command = [sys.executable, "-X", "importtime", "-m", "dpselect", "select", "-", "--epsilon", "1"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:  # noqa: S603
        while process.stderr.readline().split("|")[-1].strip() != moment:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        errors = process.stderr.read()  # to its end
        assert process.wait() == 130
    assert time.monotonic() - started < 2.0
    assert "interrupted" in errors
    assert "Traceback" not in errors


BAD_ROWS = {
    "duplicate candidate": (
        "bob,x,0.5,1\nbob,x,0.25,1\n",
        ", user 'bob': column 'candidate' must name each candidate once",
    ),
    "missing sensitivity": ("bob,x,0.5,\n", ", user 'bob': column 'sensitivity' is missing"),
    "negative sensitivity": ("bob,x,0.5,-1\n", ", user 'bob': column 'sensitivity' must be ≥ 0"),
    "NaN score": ("bob,x,nan,1\n", ", user 'bob': column 'score' is missing or not a number"),
    "missing score": ("bob,x,,1\n", ", user 'bob': column 'score' is missing or not a number"),
    "text for a score": (f"bob,x,{SECRET}x,1\n", ", user 'bob': column 'score' is missing or not a number"),
    "infinite score": ("bob,x,inf,1\n", ", user 'bob': column 'score' must be finite"),
    "no user": (",x,0.5,1\n", ": column 'user' is missing"),
    "no candidate": ("bob,,0.5,1\n", ", user 'bob': column 'candidate' has a candidate without an identifier"),
}


@pytest.mark.parametrize(("rows", "message"), BAD_ROWS.values(), ids=BAD_ROWS)
def test_bad_rows_stop_a_job_or_are_skipped_and_counted(rows, message, tmp_path, capsys):
    code, output = run_csv(tmp_path, GOOD_CSV + rows)
    captured = capsys.readouterr()
    assert code == 3
    row = GOOD_CSV.count("\n") - 1 + (rows.count("\n") - 1)  # from 0, without the line of names
    assert f"scores.csv, row {row}{message}" in captured.err
    assert "0.12" not in captured.err + captured.out
    assert not output.exists()
    code, output = run_csv(tmp_path, GOOD_CSV + rows, "--on-bad-unit", "skip", "--json")
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
    assert (
        "t.parquet, row group 2, row 3, user '023': column 'score' is missing or not a number"
        in capsys.readouterr().err
    )
    assert main([*command, "--on-bad-unit", "skip"]) == 0
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
    for kind in (FileNotFoundError, ValueError):
        with pytest.raises(kind, match="there is no file"):
            dps.select_table(tmp_path / "no.csv", dps.GEM(1.0))
    (tmp_path / "t").mkdir()
    assert main(["select", str(tmp_path / "t"), "--epsilon", "1"]) == 3
    assert "holds no Parquet files" in capsys.readouterr().err
    pq.write_table(LISTS, tmp_path / "t" / "a.parquet")
    pq.write_table(LISTS.rename_columns(["user", "item", "score", "sensitivity"]), tmp_path / "t" / "b.parquet")
    assert main(["select", str(tmp_path / "t"), "--epsilon", "1"]) == 3
    assert "'b.parquet' has other columns than 'a.parquet'" in capsys.readouterr().err
