"""Keys and charges of releases: a key file is for one release, and a column has one role."""

import hashlib
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import dpselect as dps
from dpselect.cli import main
from dpselect.engines.arrow import Layout, PickTransform
from dpselect.release import FreshKey, KeyFile, KeyReuseError, OutputExistsError, release
from dpselect.release.key_files import BoundKey

ROWS = "user,candidate,score,sensitivity\nann,a,0.75,1\nann,b,0.5,1\nbob,a,0.25,1\nbob,c,0.125,1\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(ROWS)
    return tmp_path


def select(*options, table="t.csv", epsilon="1"):
    return main(["select", table, "--epsilon", epsilon, "--key-file", "key", "-o", "picks.csv", "-q", *options])


# --- A key file is for one release -----------------------------------------------------------------------


@pytest.mark.usefixtures("folder")
def test_a_key_gives_the_same_picks_to_the_same_inputs_wherever_they_lie_and_however_often():
    assert select() == 0
    picks = Path("picks.csv").read_bytes()
    Path("elsewhere").mkdir()
    Path("t.csv").rename("elsewhere/u.csv")
    for _ in range(3):
        assert select("--threads", "1", "--batch-candidates", "1", table="elsewhere/u.csv") == 0
        assert Path("picks.csv").read_bytes() == picks
    for name in ("key", "key.used"):
        assert stat.S_IMODE(Path(name).stat().st_mode) == 0o600


CHANGES = {
    "epsilon": ["--epsilon", "2"],
    "mechanism": ["--mechanism", "gem"],
    "parameter": ["--parameter", "tilt=1"],
    "column": ["--score", "sensitivity", "--sensitivity", "1"],
    "sensitivity": ["--sensitivity", "2"],
    "bad units": ["--on-bad-unit", "skip"],
    "one": ["--one"],
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_key_is_refused_with_other_options(change, capsys):
    assert select() == 0
    picks = Path("picks.csv").read_bytes()
    assert select(*change) == 4
    assert "'key.used' says that it was used with other inputs or options" in capsys.readouterr().err
    assert Path("picks.csv").read_bytes() == picks
    assert select() == 0


@pytest.mark.usefixtures("folder")
def test_a_key_is_refused_with_other_scores_before_any_work(capsys):
    assert select() == 0
    Path("t.csv").write_text(ROWS.replace("0.125", "0.875"))
    assert select() == 4
    errors = capsys.readouterr().err
    assert "name another file for a new key" in errors
    assert "0.875" not in errors
    assert not list(Path().glob(".*"))


@pytest.mark.usefixtures("folder")
def test_bad_input_does_not_use_up_a_key(capsys):
    Path("t.csv").write_text(ROWS + "cid,a,nan,1\n")
    assert select() == 3
    assert not Path("key.used").exists()
    Path("t.csv").write_text(ROWS)
    assert not list(Path().glob(".*"))
    assert select() == 0
    assert "not a number" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_what_a_key_was_used_for_is_on_the_disk_before_anything_is_published(monkeypatch):
    """The record must exist before the output gets its name."""
    seen = []
    replace = Path.replace

    def watch(path, target):
        if Path(target).name == "picks.csv":
            seen.append(Path("key.used").exists())
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", watch)
    assert select() == 0
    assert seen == [True]


@pytest.mark.usefixtures("folder")
def test_the_record_reveals_nothing_without_the_key():
    assert select() == 0
    record = Path("key.used").read_text()
    Path("key.used").unlink()
    Path("key").write_text("ab" * 32)
    assert select() == 0
    assert Path("key.used").read_text() != record  # the same inputs: the record depends on the key


@pytest.mark.usefixtures("folder")
def test_a_lost_key_that_was_used_is_not_replaced(capsys):
    assert select() == 0
    Path("key").unlink()
    assert select() == 4
    assert "'key' is gone, but 'key.used' says that it was used" in capsys.readouterr().err
    assert not Path("key").exists()


def test_one_of_two_concurrent_releases_gets_the_key(tmp_path):
    first, second = BoundKey(tmp_path / "key", "spring"), BoundKey(tmp_path / "key", "summer")
    assert first.key == second.key
    first.bind()
    first.bind()
    with pytest.raises(KeyReuseError, match="used with other inputs"):
        second.bind()
    with pytest.raises(KeyReuseError):
        BoundKey(tmp_path / "key", "summer")
    BoundKey(tmp_path / "key", "spring").bind()


@pytest.mark.parametrize("change", ["replaced", "removed", "damaged"])
def test_a_key_file_that_is_exchanged_during_the_release_publishes_and_records_nothing(tmp_path, key_file, change):
    """Its name would stand for a key that the picks were not drawn with."""
    path, before = Path(key_file), Path(key_file).read_text()

    def exchange(_step):
        if change == "removed":
            path.unlink(missing_ok=True)
        else:
            path.write_text("ab" * 32 if change == "replaced" else "text")

    (tmp_path / "t.csv").write_text(ROWS)
    with pytest.raises(ValueError, match=r"'key' (was replaced while|must hold 64 hexadecimal digits)"):
        release(
            tmp_path / "t.csv",
            dps.GEM(epsilon=1.0),
            tmp_path / "picks.csv",
            payment=KeyFile(path),
            progress=exchange,
        )
    assert {found.name for found in tmp_path.iterdir()} <= {"t.csv", "key"}
    path.write_text(before)
    path.chmod(0o600)
    release(tmp_path / "t.csv", dps.GEM(epsilon=1.0), tmp_path / "picks.csv", payment=KeyFile(path))
    with pytest.raises(KeyReuseError):
        BoundKey(path, "another release")


def test_many_concurrent_processes_make_one_key(tmp_path):
    for attempt in range(20):
        path = tmp_path / str(attempt)
        with ThreadPoolExecutor(4) as pool:
            keys = set(pool.map(lambda _, path=path: BoundKey(path, "x").key, range(8)))
        assert len(keys) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(map(str, range(20)))


# --- Columns with two roles ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.arrow"])
def test_one_pick_may_be_a_user(name, tmp_path, capsys):
    """Without units, the column of candidates may have the name that units have elsewhere."""
    table = pa.table({"user": ["ann", "bob", "cid"], "score": [0.0, 0.0, 99.0]})
    path = tmp_path / name
    if name == "t.csv":
        pa.csv.write_csv(table, path)
    elif name == "t.parquet":
        pq.write_table(table, path)
    else:
        pa.feather.write_feather(table, path)
    command = ["select", "--one", str(path), "--candidate", "user", "--sensitivity", "1", "--epsilon", "5", "-q"]
    assert main(command) == 0
    assert capsys.readouterr().out.splitlines() == ['"user"', '"cid"']


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--candidate", "user"], "unit and candidate must be two columns, not both 'user'"),
        (["--unit", "score"], "unit and score must be two columns, not both 'score'"),
        (["--score", "candidate"], "candidate and score must be two columns, not both 'candidate'"),
        (["--one", "--score", "candidate"], "candidate and score must be two columns, not both 'candidate'"),
        (["--sensitivity", "score"], "sensitivity and score must be two columns, not both 'score'"),
        (["--offset", "score"], "offset and score must be two columns, not both 'score'"),
    ],
)
def test_a_column_has_one_role(options, message, capsys):
    assert main(["select", "t.csv", "--epsilon", "1", *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"candidate": "score"}, "candidate and score must be two columns"),
        (
            {"sensitivity": "score"},
            "sensitivity and score must be two columns, not both 'score': scores are private",
        ),
        ({"offset": "score"}, "offset and score must be two columns"),
    ],
)
def test_scores_cannot_be_public_at_the_same_time(names, message):
    with pytest.raises(ValueError, match=message):
        Layout(**names)


def test_units_of_a_batch_have_their_own_column():
    batch = pa.RecordBatch.from_pydict({"score": [[1.0]], "candidate": [["a"]]})
    selector = PickTransform(dps.Uniform(), bytes(32), layout=Layout(unit="candidate", sensitivity=1.0))
    with pytest.raises(ValueError, match="unit and candidate must be two columns, not both 'candidate'"):
        selector.transform(batch)


@pytest.mark.usefixtures("folder")
def test_one_pick_out_of_repeated_candidates_is_refused_by_column(capsys):
    assert main(["select", "--one", "t.csv", "--epsilon", "1"]) == 3
    assert "column 'candidate' must name each candidate once" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_a_second_table_may_have_columns_of_the_same_names():
    Path("items.csv").write_text("candidate,width,user,score\na,1,x,7\nb,2,y,7\nc,1,z,7\n")
    assert select("--candidates", "items.csv", "--sensitivity", "width") == 0
    assert len(Path("picks.csv").read_text().splitlines()) == 3


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ["scores", "scores.csv", "scores.parquet"])
def test_a_missing_file_is_reported_whatever_its_name(name, capsys):
    assert main(["select", name, "--epsilon", "1"]) == 3
    assert f"there is no file '{name}'" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_a_bad_score_is_named_by_its_place(capsys):
    scores = [[0.5, 0.25]] * 3 + [[0.5, float("nan")]]
    table = pa.table(
        {"user": [1, 2, 3, 4], "candidate": [["a", "b"]] * 4, "score": scores, "sensitivity": [[1.0, 1]] * 4}
    )
    pq.write_table(table, "bad.parquet", row_group_size=3)
    assert main(["select", "bad.parquet", "--epsilon", "1"]) == 3
    place = "bad.parquet, row group 1, row 0, user 4"
    assert f"{place}: column 'score' is missing or not a number" in capsys.readouterr().err


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o601, 0o620])
def test_a_key_file_is_for_its_owner_alone(key_file, mode):
    path = Path(key_file)
    path.chmod(mode)
    with pytest.raises(ValueError, match="'key' must be readable by its owner only: chmod 600"):
        BoundKey(path, "inputs")
    path.chmod(0o700)
    assert BoundKey(path, "inputs").key == bytes.fromhex(path.read_text())


@pytest.mark.parametrize("text", ["", "ab" * 31, "ab" * 33, "xy" * 32])
def test_a_key_file_holds_a_key(key_file, text):
    Path(key_file).write_text(text)
    with pytest.raises(ValueError, match="'key' must hold 64 hexadecimal digits"):
        BoundKey(Path(key_file), "inputs")


def test_the_record_of_a_key_is_a_keyed_hash_as_it_always_was(key_file):
    bound = BoundKey(Path(key_file), "inputs")
    bound.bind()
    expected = hashlib.blake2b(b"inputs", key=bound.key, digest_size=16, person=b"dpselect use").hexdigest()
    assert Path(f"{key_file}.used").read_text().split()[0] == expected


# --- A fresh key -----------------------------------------------------------------------------------------


def test_an_output_is_refused_before_any_work_and_when_another_process_was_faster(tmp_path):
    output, computed = tmp_path / "picks.csv", []
    terms = SimpleNamespace(output=output, released=dps.NoisyMax(1.0))

    def compute(key):
        computed.append(key)
        output.touch()

    for calls in (1, 1):  # first the file appears while picks are computed; then it is there
        with pytest.raises(OutputExistsError):
            FreshKey().pay_for(terms, compute)
        assert len(computed) == calls
