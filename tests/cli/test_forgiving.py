"""The command line forgives: nothing is left behind or released twice by accident, and files from Excel work."""

import io
import signal
import subprocess
import sys

import pytest
from score_tables import FORMS, GOOD_CSV, SECRET, SETTINGS, expected, read, run_csv, write

import dpselect as dps
from dpselect.cli import main
from dpselect.progress import Meter, Step
from dpselect.release import release

# --- A refused job leaves nothing behind --------------------------------------------------------------------


@pytest.mark.parametrize("error", [RuntimeError("internal"), KeyError("internal"), ZeroDivisionError()])
def test_a_job_that_fails_leaves_nothing_that_blocks_the_corrected_input(error, tmp_path, monkeypatch, capsys):
    def fail(*_):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr("dpselect.engines.local.write_batches", fail)
        assert run_csv(tmp_path, GOOD_CSV)[0] == 70
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scores.csv"]
    assert run_csv(tmp_path, GOOD_CSV + "bob,x,1,1\n")[0] == 0
    assert SECRET not in capsys.readouterr().err


@pytest.mark.parametrize("memory", ["1x", "much", "0MB", "-1GB", "80%", ""])
def test_a_memory_limit_that_is_no_size_is_refused_before_any_work(memory, tmp_path, capsys):
    assert run_csv(tmp_path, GOOD_CSV, f"--memory={memory}")[0] == 2
    assert "--memory must be a size such as 500MB or 2GB" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scores.csv"]


# --- Two columns of sensitivities ---------------------------------------------------------------------------


def test_two_columns_of_sensitivities_are_refused(tmp_path, capsys):
    text = "user,candidate,score,sensitivity\nann,a,1,0\nann,b,0,0\n"
    (tmp_path / "items.csv").write_text("candidate,sensitivity\na,1e9\nb,1e9\n")
    options = ["--candidates", str(tmp_path / "items.csv")]
    code, output = run_csv(tmp_path, text, *options)
    assert code == 2
    assert "both 'scores.csv' and the table of candidates have a column 'sensitivity'" in capsys.readouterr().err
    assert not output.exists()
    one = text.replace("user,", "").replace("ann,", "")
    assert run_csv(tmp_path, one, "--one", *options)[0] == 2


def test_two_columns_are_refused_from_python_too():
    table = {"user": [1], "candidate": ["a"], "score": [1.0], "sensitivity": [1.0]}
    items = {"candidate": ["a"], "sensitivity": [2.0]}
    with pytest.raises(ValueError, match="drop it from one of them"):
        dps.select_table(table, dps.GEM(1.0), candidates=items)


# --- Second releases ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("one", [(), ("--one",)])
def test_picking_again_over_an_output_is_refused_unless_it_is_the_same_release_or_you_accept_the_price(
    one, tmp_path, capsys
):
    assert run_csv(tmp_path, GOOD_CSV, *one)[0] == 0
    first = (tmp_path / "picks.csv").read_bytes()
    assert run_csv(tmp_path, GOOD_CSV, *one)[0] == 4
    message = capsys.readouterr().err
    assert "a second release and costs ε = 1 again" in message
    assert "--overwrite" in message
    assert "--key-file" in message
    assert (tmp_path / "picks.csv").read_bytes() == first
    assert run_csv(tmp_path, GOOD_CSV, *one, "--overwrite")[0] == 0
    for _ in range(2):
        assert run_csv(tmp_path, GOOD_CSV, *one, "--key-file", str(tmp_path / "key"))[0] == 0


def test_an_output_in_a_folder_that_does_not_exist_is_refused_by_name(tmp_path, capsys):
    assert run_csv(tmp_path, GOOD_CSV, "-o", str(tmp_path / "no" / "picks.csv"))[0] == 2
    assert "--output must go into a folder that exists: make the folder" in capsys.readouterr().err
    with pytest.raises(ValueError, match="output must go into a folder that exists"):
        release(tmp_path / "scores.csv", dps.GEM(1.0), tmp_path / "no" / "picks.csv")


# --- Progress and interruption ------------------------------------------------------------------------------


def test_sorting_has_a_progress_of_its_own(capsys, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("dpselect.progress.time.monotonic", lambda: now[0])
    steps = [
        (1.0, Step(10, 100, "rows", phase="reading")),
        (6.0, Step(50, 100, "rows", phase="reading")),
        (6.5, Step(60, 100, "rows", phase="reading")),
        (12.0, Step(100, None, "rows", phase="sorting")),
        (18.0, Step(100, None, "rows", phase="sorting")),
        (24.0, Step(20, 100, "candidates")),
        (30.0, Step(80, 100, "candidates")),
    ]
    with Meter() as meter:
        for seconds, step in steps:
            now[0] = 100 + seconds
            meter(step)
    assert capsys.readouterr().err.splitlines() == [
        "reading: 50 rows, 50%",
        "sorting: 100 rows",
        "sorting: 100 rows",
        "20 candidates, 20%",
        "80 candidates, 80%",
    ]


SLOWLY = """
import sys, time, dpselect.tables.stored as stored, dpselect.progress as progress
from dpselect.cli import main
progress.SECONDS_BETWEEN_LINES = 0.0
genuine = stored.StoredTable.batches
def slowly(self, columns, **settings):
    while True:
        yield from genuine(self, columns, **settings)
        time.sleep(0.05)
stored.StoredTable.batches = slowly
sys.exit(main(sys.argv[1:]))
"""


def test_ctrl_c_ends_the_command_while_duckdb_sorts(tmp_path):
    path = write(tmp_path / "t.csv", "csv")
    command = [sys.executable, "-c", SLOWLY, "select", path, *SETTINGS, "-o", str(tmp_path / "p.csv")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)  # noqa: S603
    assert process.stderr.readline().startswith("reading: ")
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=300)[1]  # the table has no end
    assert process.returncode == 130
    assert rest.endswith("interrupted; run the same command again\n")


# --- CSV from Excel, and the standard input -----------------------------------------------------------------

TEXT = "user,candidate,score,sensitivity\nann,thé,0.5,1.5\nann,rum,0.25,0.5\nbob,thé,1.5,0.5\n"
COMMAS = TEXT.replace(",", ";").replace(".", ",")
FILES = {
    "semicolons": (TEXT.replace(",", ";").encode(), []),
    "semicolons, given": (TEXT.replace(",", ";").encode(), ["--delimiter", ";"]),
    "tabs": (TEXT.replace(",", "\t").encode(), []),
    "bars": (TEXT.replace(",", "|").encode(), []),
    "UTF-8 with a mark": (TEXT.encode("utf-8-sig"), []),
    "UTF-16": (TEXT.encode("utf-16"), []),
    "UTF-16, big-endian": (b"\xfe\xff" + TEXT.encode("utf-16-be"), []),
    "UTF-16 without a mark": (TEXT.encode("utf-16-le"), ["--encoding", "utf-16-le"]),
    "Latin-1": (TEXT.encode("latin-1"), ["--encoding", "latin-1"]),
    "Windows": (TEXT.replace("\n", "\r\n").encode("cp1252"), ["--encoding", "cp1252"]),
    "decimal commas": (COMMAS.encode(), ["--decimal", ","]),
    "German Excel": (COMMAS.encode("cp1252"), ["--decimal", ",", "--encoding", "cp1252"]),
    "UTF-16 from Excel": (TEXT.replace(",", "\t").encode("utf-16"), []),
}


def picks_of(tmp_path, content, *options):
    (tmp_path / "t.csv").write_bytes(content)
    output = tmp_path / "p.csv"
    command = ["select", str(tmp_path / "t.csv"), *SETTINGS, "-o", str(output), *options]
    return main(command), output


@pytest.mark.parametrize(("content", "options"), FILES.values(), ids=FILES)
def test_csv_of_any_kind_gives_the_same_picks(content, options, tmp_path, key_file):
    code, output = picks_of(tmp_path, TEXT.encode(), "--key-file", key_file)
    assert code == 0
    plain = read(output)
    (tmp_path / "key.used").unlink()
    code, output = picks_of(tmp_path, content, "--key-file", key_file, *options)
    assert code == 0
    assert read(output) == plain
    assert set(plain) == {"ann", "bob"}


UNREADABLE = {
    "Latin-1": (TEXT.encode("latin-1"), [], "is not UTF-8: give its encoding, --encoding cp1252 or latin-1"),
    "Latin-1 far down": (
        TEXT.encode() + b"u,c,1,1\n" * 20_000 + "zoé,c,1,1\n".encode("latin-1"),
        [],
        "is not UTF-8: give its encoding",
    ),
    "UTF-16 without a mark": (TEXT.encode("utf-16-le"), [], "give --encoding utf-16-le or utf-16-be"),
    "decimal commas": (COMMAS.encode(), [], "'score' seems to have decimal commas; give --decimal ,"),
    "points for thousands": (
        b"user;candidate;score;sensitivity\nann;a;1.234,5;1\n",
        ["--decimal", ","],
        "column 'score' is missing or not a number",
    ),
    "another encoding": (TEXT.encode("latin-1"), ["--encoding", "utf-8"], "is not UTF-8"),
    "no ASCII": (TEXT.encode(), ["--encoding", "ascii"], "is not ascii text"),
}


@pytest.mark.parametrize(("content", "options", "message"), UNREADABLE.values(), ids=UNREADABLE)
def test_csv_that_may_be_read_wrongly_is_refused_with_the_option_to_give(
    content, options, message, tmp_path, capsys
):
    code, output = picks_of(tmp_path, content, *options)
    assert code == 3
    assert message in capsys.readouterr().err
    assert not output.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv"]


@pytest.mark.parametrize(
    "options",
    [
        ["--delimiter", ";;"],
        ["--encoding", "klingon"],
        ["--decimal", ",", "--delimiter", ","],
        ["--delimiter", ";", "--format", "arrow"],
    ],
)
def test_options_for_csv_that_make_no_sense_are_refused(options, tmp_path):
    assert picks_of(tmp_path, TEXT.encode(), *options)[0] == 2


def test_the_second_table_is_read_with_the_same_options(tmp_path):
    (tmp_path / "items.csv").write_bytes("candidate;width\nthé;1,5\nrum;0,5\n".encode("cp1252"))
    options = ["--candidates", str(tmp_path / "items.csv"), "--sensitivity", "width", "--decimal", ","]
    code, output = picks_of(tmp_path, COMMAS.encode("cp1252"), *options, "--encoding", "cp1252")
    assert code == 0
    assert set(read(output)) == {"ann", "bob"}


def test_another_encoding_is_another_release(tmp_path, key_file):
    content = TEXT.encode()
    assert picks_of(tmp_path, content, "--key-file", key_file)[0] == 0
    assert picks_of(tmp_path, content, "--key-file", key_file, "--encoding", "latin-1")[0] == 4


@pytest.mark.parametrize("form", ["csv", "long parquet", "long arrow", "stream"])
def test_the_standard_input_is_a_table(form, tmp_path, key_file, monkeypatch, capfd):
    path = write(tmp_path / "in" / FORMS[form], form)
    with open(path, "rb") as file:  # noqa: PTH123
        content = file.read()
    command = ["select", "-", *SETTINGS, "--key-file", key_file, "-o", str(tmp_path / "p.csv")]
    for _ in range(2):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert main(command) == 0
        assert read(tmp_path / "p.csv") == expected()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert main(["select", "-", *SETTINGS]) == 3
    assert "'standard input.csv' cannot be read as CSV" in capfd.readouterr().err


# --- Speed --------------------------------------------------------------------------------------------------


def test_a_long_table_of_numbers_is_picked_from_without_duckdb_and_pandas(tmp_path):
    """Loading them takes longer than a million picks."""
    path = write(tmp_path / "t.parquet", "long parquet")
    script = "import sys, dpselect.cli as c; c.main(sys.argv[1:]); print({'duckdb', 'pandas'} & {*sys.modules})"
    command = [sys.executable, "-c", script, "select", path, *SETTINGS, "-o", str(tmp_path / "p.parquet"), "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "set()\n"
    assert len(read(tmp_path / "p.parquet")) == 40
