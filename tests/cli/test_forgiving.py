"""The command line forgives: nothing is left behind or released twice by accident, and files from Excel work."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from score_tables import GOOD_CSV, LONG, SECRET, SETTINGS, expected, read, run_csv, write

import dpselect as dps
from dpselect.advice import advise
from dpselect.cli import main
from dpselect.cli.arguments import build_parser
from dpselect.cli.options import as_options, make_mechanism
from dpselect.pools import default_pool
from dpselect.progress import Meter, Step
from dpselect.release import release_picks
from dpselect.release.jobs import Job
from dpselect.tables.layout import Layout
from dpselect.tables.memory_sort import memory_bytes
from dpselect.tables.sorting import SortedUnits
from dpselect.tables.sources import prefetched
from dpselect.tables.stored import MemoryTable

# --- A refused job leaves nothing behind --------------------------------------------------------------------


@pytest.mark.parametrize("error", [RuntimeError("internal"), KeyError("internal"), ZeroDivisionError()])
def test_a_job_that_fails_leaves_nothing_that_blocks_the_corrected_input(error, tmp_path, monkeypatch, capsys):
    def fail(*_):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(Job, "add", fail)
        assert run_csv(tmp_path, GOOD_CSV)[0] == 70
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scores.csv"]
    assert run_csv(tmp_path, GOOD_CSV + "bob,x,1,1\n")[0] == 0
    assert SECRET not in capsys.readouterr().err


def test_an_interrupted_job_without_results_does_not_block_another(tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Job, "add", stop)
        assert run_csv(tmp_path, GOOD_CSV)[0] == 130
    assert (tmp_path / ".picks.csv.unfinished").exists()
    assert run_csv(tmp_path, GOOD_CSV + "bob,x,1,1\n")[0] == 0
    assert set(read(tmp_path / "picks.csv")) == {"ann", "bob"}


@pytest.mark.parametrize("memory", ["1x", "much", "0MB", "-1GB", "80%", ""])
def test_a_memory_limit_that_is_no_size_is_refused_before_any_work(memory, tmp_path, capsys):
    assert run_csv(tmp_path, GOOD_CSV, f"--memory={memory}")[0] == 2
    assert "--memory must be a size such as 500MB or 2GB" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scores.csv"]


def test_sizes_have_decimal_and_binary_units():
    sizes = {"1B": 1, "2 kb": 2000, "1.5MB": 1_500_000, "1GiB": 2**30, "3TB": 3 * 10**12}
    assert {text: memory_bytes(text) for text in sizes} == sizes


# --- Two columns of sensitivities ---------------------------------------------------------------------------


def test_two_columns_of_sensitivities_are_refused_until_you_say_which_one_counts(tmp_path, capsys):
    # Under the table's own sensitivities both scores are public, and the higher one is certain.
    text = "user,candidate,score,sensitivity\nann,a,1,0\nann,b,0,0\n"
    (tmp_path / "items.csv").write_text("candidate,sensitivity\na,1e9\nb,1e9\n")
    options = ["--candidates", str(tmp_path / "items.csv")]
    code, output = run_csv(tmp_path, text, *options)
    assert code == 2
    assert "both 'scores.csv' and the table of candidates have a column 'sensitivity'" in capsys.readouterr().err
    assert not output.exists()
    picks = []
    for _ in range(8):
        assert run_csv(tmp_path, text, *options, "--public-from", "input", "--overwrite", "-q")[0] == 0
        picks.append(read(output)["ann"])
    assert picks == ["a"] * 8
    for _ in range(40):
        assert run_csv(tmp_path, text, *options, "--public-from", "candidates", "--overwrite", "-q")[0] == 0
        picks.append(read(output)["ann"])
        if "b" in picks:
            break
    assert "b" in picks
    one = text.replace("user,", "").replace("ann,", "")
    assert run_csv(tmp_path, one, "--one", *options, "--overwrite")[0] == 2
    assert run_csv(tmp_path, one, "--one", *options, "--public-from", "input", "--overwrite")[0] == 0


def test_two_columns_are_refused_from_python_too():
    table = {"user": [1], "candidate": ["a"], "score": [1.0], "sensitivity": [1.0]}
    items = {"candidate": ["a"], "sensitivity": [2.0]}
    with pytest.raises(ValueError, match="drop it from one of them"):
        dps.select_table(table, dps.GEM(1.0), candidates=items)
    with pytest.raises(ValueError, match="public_from must be 'table' or 'candidates'"):
        Layout(public_from="input")


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
    assert main(["pmf", str(tmp_path / "scores.csv"), "--epsilon", "1", "-o", str(tmp_path / "picks.csv")]) == 0


def test_an_output_in_a_folder_that_does_not_exist_is_refused_by_name(tmp_path, capsys):
    assert run_csv(tmp_path, GOOD_CSV, "-o", str(tmp_path / "no" / "picks.csv"))[0] == 2
    assert "--output must go into a folder that exists: make the folder" in capsys.readouterr().err
    with pytest.raises(ValueError, match="output must go into a folder that exists"):
        release_picks(tmp_path / "scores.csv", dps.GEM(1.0), tmp_path / "no" / "picks.csv")


# --- Progress and interruption ------------------------------------------------------------------------------


def test_sorting_has_a_progress_of_its_own_and_nothing_is_estimated_too_early(capsys, monkeypatch):
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
        "reading: 50 rows, 50%, 8 a second, about 6 seconds left",
        "sorting: 100 rows, for 0 seconds so far",
        "sorting: 100 rows, for 6 seconds so far",
        "20 candidates, 20%",
        "80 candidates, 80%, 10 a second, about 2 seconds left",
    ]


class Slow(MemoryTable):
    """A table that takes ten minutes to read."""

    def batches(self, columns, *, entries=0, skip=0):
        for _ in range(6000):
            yield from super().batches(columns, entries=entries, skip=skip)
            time.sleep(0.1)


@pytest.mark.parametrize("fits", [True, False], ids=["in memory", "by DuckDB"])
def test_a_sort_ends_within_a_second_when_nothing_more_is_wanted(fits, monkeypatch):
    monkeypatch.setattr("dpselect.tables.sorting.can_sort", lambda _: fits)
    source = SortedUnits(Slow(pa.Table.from_pylist(LONG)), Layout())
    seen = []

    def look():
        seen.append(source.waiting)
        if len(seen) == 3:
            raise KeyboardInterrupt

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        next(prefetched(source.batches(Layout().columns), interrupt=source.interrupt, waiting=look))
    assert time.monotonic() - started < 10  # three looks, and a second; far from ten minutes on any machine
    assert {step.phase for step in seen} == {"reading"}
    assert seen[-1].done > 0


def test_a_source_is_read_whole_after_it_was_interrupted():
    source = SortedUnits(MemoryTable(pa.Table.from_pylist(LONG)), Layout())
    source.interrupt()
    assert sum(located.batch.num_rows for located in source.batches(["user"])) == 40


SLOWLY = """
import sys, time, dpselect.tables.stored as stored, dpselect.progress as progress
from dpselect.cli import main
progress.SECONDS_BETWEEN_LINES = 0.0
genuine = stored.CsvTable.batches
def slowly(self, columns, **settings):
    while True:
        yield from genuine(self, columns, **settings)
        time.sleep(0.05)
stored.CsvTable.batches = slowly
sys.exit(main(sys.argv[1:]))
"""


def test_ctrl_c_ends_the_command_while_duckdb_sorts(tmp_path):
    path = write(tmp_path / "t.csv", "csv")
    command = [sys.executable, "-c", SLOWLY, "select", path, *SETTINGS, "-o", str(tmp_path / "p.csv")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)  # noqa: S603
    assert process.stderr.readline().startswith("reading: ")
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    rest = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert rest.endswith("interrupted; run the same command again to go on\n")
    assert time.monotonic() - started < 10


# --- Sorting in memory and by DuckDB ------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)
identifiers = st.sampled_from(
    [
        (st.integers(-(2**63), 2**63 - 1), pa.int64()),
        (st.integers(2**64 - 3, 2**64 - 1), pa.uint64()),
        (st.integers(-3, 3), pa.int8()),
        (texts, pa.string()),
        (texts, pa.large_string()),
        (texts, pa.dictionary(pa.int32(), pa.string())),
        (st.binary(max_size=3), pa.binary()),
    ]
)


@given(st.data(), identifiers, identifiers)
@settings(suppress_health_check=list(HealthCheck), max_examples=60)
def test_a_sort_in_memory_gives_what_duckdb_gives(data, unit, candidate):
    rows = data.draw(st.lists(st.tuples(unit[0], candidate[0], st.integers(-5, 5)), min_size=1, max_size=8))
    columns = zip(*rows, strict=True)
    kinds = (unit[1], candidate[1], pa.int16())
    arrays = [pa.array(column).cast(kind) if pa.types.is_dictionary(kind) else pa.array(column, kind)
              for column, kind in zip(columns, kinds, strict=True)]  # fmt: skip
    table = pa.table(arrays, names=["user", "candidate", "score"])
    layout = Layout(sensitivity=1.0)
    found = []
    for fits in (True, False):
        with patch("dpselect.tables.sorting.can_sort", lambda _, fits=fits: fits):
            source = SortedUnits(MemoryTable(table), layout, batch_candidates=4)
            whole = pa.Table.from_batches([located.batch for located in source.batches(layout.columns)])
        units = [(row["user"], row["candidate"]) for row in whole.to_pylist()]
        numbers = [sorted(row) for row in whole["score"].to_pylist()]  # rows of one name may be in any order
        found.append((whole.schema, units, numbers))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("column", "message"),
    [("user", "rows without user: column 'user' is missing"), ("candidate", "without an identifier")],
)
def test_rows_of_parquet_without_a_name_are_reported(column, message, tmp_path, capsys):
    rows = [row | ({column: None} if number == 3 else {}) for number, row in enumerate(LONG)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    assert main(["select", str(tmp_path / "t.parquet"), *SETTINGS, "-o", str(tmp_path / "p.csv")]) == 3
    assert message in capsys.readouterr().err


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


@pytest.mark.parametrize("form", ["csv", "long parquet", "long arrow"])
def test_the_standard_input_is_a_table(form, tmp_path, key_file, monkeypatch, capfd):
    path = write(
        tmp_path / "in" / {"csv": "t.csv", "long parquet": "t.parquet", "long arrow": "t.arrow"}[form], form
    )
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


def test_an_interrupted_job_from_the_standard_input_starts_again(tmp_path):
    path = write(tmp_path / "t.csv", "csv")
    command = [sys.executable, "-m", "dpselect.cli", "select", "-", *SETTINGS, "-o", str(tmp_path / "p.csv"), "-q"]
    folder = tmp_path / ".p.csv.unfinished"
    folder.mkdir(mode=0o700)
    (folder / "job.json").write_text("{}")
    for file in folder.iterdir():
        file.chmod(0o600)
    with open(path, "rb") as file:  # noqa: PTH123
        subprocess.run(command, stdin=file, check=True)  # noqa: S603
    assert len(read(tmp_path / "p.csv")) == 40
    assert not folder.exists()


# --- Advice -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mechanism", [*default_pool(0.7), dps.NoisyMax(0.7, monotone=True, noise="gumbel")], ids=repr
)
def test_the_options_of_a_mechanism_can_be_pasted(mechanism):
    epsilon = ["--epsilon", "0.7"]
    options = build_parser().parse_args(["select", "scores.csv", *epsilon, *as_options(mechanism).split()])
    assert make_mechanism(options) == mechanism


SITUATIONS = [(e, c) for e in (0.1, 1 / 3, 1.0, 5.0, 20.0) for c in (None, -0.9, -0.3, 0.0, 0.3, 0.9)]


@pytest.mark.parametrize(("epsilon", "correlation"), SITUATIONS)
def test_advice_agrees_with_itself(epsilon, correlation, capsys):
    widths = [0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0]
    stated = [] if correlation is None else [f"--correlation={correlation}"]
    command = ["advise", "--epsilon", repr(epsilon), "--sensitivities", ",".join(map(str, widths)), *stated]
    assert main(command) == 0
    shown = capsys.readouterr().out
    found = advise(widths, epsilon, correlation=correlation)
    pasted = build_parser().parse_args(shown.splitlines()[-1].split()[1:])
    assert make_mechanism(pasted) == found.best
    errors = {row.mechanism: row.error for row in found.ranking}
    losers = sum(row.of_random > 1.001 for row in found.ranking)
    for line in shown.splitlines():
        if "In all, " in line:
            assert f"{losers} of the {len(errors)} mechanisms" in line
        if line.startswith("(") and "mechanisms: the five best" in line:
            table = shown.split("\n\n")[1].splitlines()
            assert line == f"({len(table) - 2} of {len(errors)} mechanisms: the five best and those of the paper)"
    favours_large = errors[dps.ModifiedGEM(epsilon)] < errors[dps.GEM(epsilon)]
    exception = "Here the noise matters more" in found.reasons[0]
    if "This suits mechanisms that favour large" in found.reasons[0]:
        assert favours_large != exception
    if "This suits mechanisms that favour small" in found.reasons[0]:
        assert favours_large == exception
    if "so public information decides" in found.reasons[1]:
        assert getattr(found.best, "tilt", 0.0) != 0
    assert "Noisy max is a compromise" not in shown


def test_advice_in_json_has_the_options_of_every_mechanism(capsys):
    assert main(["advise", "--epsilon", "1", "--sensitivities", "1,0.5", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["options"] in {row["options"] for row in facts["rows"]}
    assert os.linesep not in facts["options"]


def test_a_name_of_a_mechanism_in_other_letters_is_refused_with_the_name_to_give(tmp_path, capsys):
    assert run_csv(tmp_path, GOOD_CSV, "--mechanism", "GEM")[0] == 2
    assert "write 'gem'" in capsys.readouterr().err


# --- Speed --------------------------------------------------------------------------------------------------


def test_a_long_table_of_numbers_is_picked_from_without_duckdb_and_pandas(tmp_path):
    """Loading them takes longer than a million picks."""
    path = write(tmp_path / "t.parquet", "long parquet")
    script = "import sys, dpselect.cli as c; c.main(sys.argv[1:]); print({'duckdb', 'pandas'} & {*sys.modules})"
    command = [sys.executable, "-c", script, "select", path, *SETTINGS, "-o", str(tmp_path / "p.parquet"), "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "set()\n"
    assert len(read(tmp_path / "p.parquet")) == 40
