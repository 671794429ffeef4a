"""The command line: from tables of any form to picks."""

import json
import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from score_tables import FORMS, KEY, LISTS, LONG, SETTINGS, expected, read, write

import dpselect as dps
from dpselect.cli import main
from dpselect.engines.arrow import PickTransform
from dpselect.tables.layout import Layout
from dpselect.tables.sorting import SortedUnits
from dpselect.tables.stored import open_table


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


def test_an_error_while_reading_a_long_table_is_reported(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.Table.from_pylist(LONG), path)
    source = SortedUnits(open_table(path), Layout())
    path.unlink()
    with pytest.raises(FileNotFoundError):
        list(source.batches(["user"]))


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow"])
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
    command = ["select", path, "--mechanism", "uniform", "--epsilon", "2", "--quiet", "-o"]
    for name in ("a.csv", "b.csv"):
        assert main([*command, str(tmp_path / name)]) == 0
    assert read(tmp_path / "a.csv") != read(tmp_path / "b.csv")  # fails with probability 1e-24
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


def test_parameters_reach_the_mechanism(tmp_path, key_file):
    path, output = write(tmp_path / "t.parquet", "lists parquet"), tmp_path / "p.csv"
    options = ["--parameter", "tilt=-3", "--parameter", "noise=gumbel", "--key-file", key_file, "-o", str(output)]
    assert main(["select", path, *SETTINGS, *options]) == 0
    selector = PickTransform(dps.GEM(epsilon=2.0, tilt=-3, noise="gumbel"), KEY, layout=Layout())
    picks = pa.Table.from_batches(selector(LISTS.to_batches()))
    assert read(output) == dict(zip(*picks.to_pydict().values(), strict=True))


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
    default = dps.HeterogeneousNoisyMax(epsilon=3.0)
    picks = default.select(scores.reshape(users, width), 1.0, randomness=randomness)
    assert read(output) == dict(enumerate(picks.tolist()))


@pytest.mark.parametrize("command", [[], ["select"], ["budget"], ["budget", "create"], ["audit"], ["advise"]])
def test_help_is_shown_without_loading_array_libraries(command, capsys):
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
    at_once = {**os.environ, "TQDM_MININTERVAL": "0"}  # the job takes a tenth of a second
    process = subprocess.Popen([sys.executable, "-m", "dpselect", *command], stderr=slave, env=at_once)  # noqa: S603
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
    monkeypatch.setattr("dpselect.progress.SECONDS_BETWEEN_LINES", 0.0)
    assert main([*command, "--overwrite"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "0 users, 0%"
    assert "40 users, 100%" in lines


def test_audits_tell_private_mechanisms_from_others(capsys):
    settings = ["--epsilon", "1", "--sensitivities", "1,0.25", "--json"]
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


OWN = """
import numpy as np, dpselect as dps
rng = np.random.default_rng(0)
def pick(scores, sensitivities):
    return np.argmax(scores + rng.exponential(2 * sensitivities))
def half(scores, sensitivities):
    return np.full(scores.size, 1 / scores.size)
def made(epsilon, name="made"):
    return dps.from_pmf(half, guarantee=dps.Guarantee(epsilon=epsilon, theorem="none", reference="none"), name=name)
ready, nothing = made(2.0), 3
"""


def test_your_own_selector_can_be_audited_and_your_own_mechanism_used(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    Path("own_for_a_test.py").write_text(OWN)
    Path("scores.csv").write_text("user,candidate,score,sensitivity\n1,a,1,1\n1,b,2,1\n")
    settings = ["--epsilon", "2", "--sensitivities", "1,0.25", "--draws", "2000"]
    assert main(["audit", "own_for_a_test:pick", *settings, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["verdict"] == "violated"
    assert main(["audit", "own_for_a_test:ready", *settings]) == 0
    assert "made, epsilon=2.0): no violation found" in capsys.readouterr().out
    assert main(["audit", "dpselect:GEM", *settings, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["claimed"] == 2
    select = ["select", "scores.csv", "--epsilon", "2", "--overwrite", "--output", "picks.csv", "--mechanism"]
    assert main([*select, "own_for_a_test:ready"]) == 0
    assert main([*select, "own_for_a_test:made", "--parameter", "name=other", "--count", "2"]) == 0
    assert len(Path("picks.csv").read_text().splitlines()) == 3
    capsys.readouterr()
    for command, rule in (
        (
            [*select, "own_for_a_test:ready", "--epsilon", "1"],
            "--epsilon must be 2.0, the ε of one pick of from_pmf",
        ),
        ([*select, "own_for_a_test:nothing"], "must be a mechanism, or make one from epsilon="),
        ([*select, "own_for_a_test:pick"], "must be a mechanism, or make one from epsilon="),
        (["audit", "own_for_a_test:nothing", *settings], "selector must be a mechanism such as"),
        (["audit", "own_for_a_test:missing", *settings], "cannot be imported: AttributeError"),
        (["audit", "no_such_module:pick", *settings], "cannot be imported: ModuleNotFoundError"),
        (["audit", "own_for_a_test", *settings], "must be MODULE:NAME, such as own:pick"),
        (["audit", "own_for_a_test:pick", "--mechanism", "gem", *settings], "leave one out"),
    ):
        assert main(command) in {2, 3}
        assert rule in capsys.readouterr().err


def test_advice_ranks_mechanisms_from_what_is_public(capsys):
    settings = ["--epsilon", "0.5", "--correlation", "0.9", "--json"]
    assert main(["advise", "--sensitivities", "0.1,0.3,0.5,0.7,0.9", *settings]) == 0
    facts = json.loads(capsys.readouterr().out)
    expected = dps.advice.advise([0.1, 0.3, 0.5, 0.7, 0.9], 0.5, correlation=0.9)
    assert facts["best"] == repr(expected.best)
    assert [row["error"] for row in facts["rows"]] == [row.error for row in expected.ranking]
    assert main(["advise", "--sensitivities", "1,2", "--epsilon", "0.5"]) == 0
    assert "dpselect select scores.csv --epsilon 0.5 --mechanism " in capsys.readouterr().out
    assert main(["advise", "--epsilon", "1"]) == 0
    assert "--mechanism top-share" in capsys.readouterr().out
