"""Releases charged to a ledger: paid once, never unpaid, with the same picks again."""

import json

import pytest

import dpselect as dps
from dpselect.budget import Ledger
from dpselect.cli import main
from dpselect.engines import local
from dpselect.guarantees import SAME_DIRECTION
from dpselect.tables.stored import StoredTable

CSV = "user,candidate,score,sensitivity\nann,a,0.5,1\nann,b,0.25,1\nbob,a,3,1\nbob,b,1,1\n"


def keys_of_releases(folder):
    return [path for path in folder.iterdir() if path.name != "fingerprints.key"]


@pytest.fixture
def commands(tmp_path, capsys):
    (tmp_path / "scores.csv").write_text(CSV)
    ledger = str(tmp_path / "budget.db")

    def run(*arguments, output="picks.csv"):
        if arguments[0] == "select":
            names = ["--budget", ledger, "--population", "readers", "--epsilon", "0.6", "--json"]
            arguments = [
                "select",
                str(tmp_path / "scores.csv"),
                *names,
                "-o",
                str(tmp_path / output),
                *arguments[1:],
            ]
        else:
            arguments = [*arguments[:2], ledger, *arguments[2:], "--json"]
        code = main(arguments)
        captured = capsys.readouterr()
        return code, json.loads(captured.out) if code == 0 else captured.err

    assert run("budget", "create", "--population", "readers", "--epsilon", "1")[0] == 0
    return run


def test_a_release_from_the_command_line_is_paid_for_once(commands, tmp_path):
    code, facts = commands("select", "--release", "spring", "--what", "a test")
    assert (code, facts["charged"], facts["epsilon_spent"], facts["epsilon_cap"]) == (0, True, 0.6, 1.0)
    code, facts = commands("select", "--release", "spring", output="again.csv")
    assert (code, facts["charged"], facts["epsilon_spent"]) == (0, False, 0.6)
    assert (tmp_path / "picks.csv").read_bytes() == (tmp_path / "again.csv").read_bytes()
    code, errors = commands("select", "--release", "summer", output="summer.csv")
    assert code == 4
    assert "would have spent ε = 1.2" in errors
    assert not (tmp_path / "summer.csv").exists()
    (tmp_path / "scores.csv").write_text(CSV.replace("0.5", "0.75"))
    code, errors = commands("select", "--release", "spring", output="other.csv")
    assert code == 4
    assert "other inputs" in errors
    code, shown = commands("budget", "show")
    [population] = shown["populations"]
    assert [(r["name"], r["what"], r["epsilon"]) for r in population["releases"]] == [("spring", "a test", 0.6)]


@pytest.mark.parametrize("table", [[], ["--one"]], ids=["units", "one"])
@pytest.mark.parametrize("reporting", [[], ["--quiet"], ["--json"]], ids=["lines", "quiet", "json"])
def test_a_paid_release_ends_with_exit_code_0_however_it_is_reported(table, reporting, tmp_path, capsys):
    (tmp_path / "scores.csv").write_text("candidate,score,sensitivity\na,3,1\nb,1,1\n" if table else CSV)
    ledger = str(tmp_path / "budget.db")
    assert main(["budget", "create", ledger, "--population", "readers", "--epsilon", "1", "--quiet"]) == 0
    command = ["select", str(tmp_path / "scores.csv"), *table, "--epsilon", "0.5", "--budget", ledger]
    command += ["--population", "readers", "--release", "spring", "-o", str(tmp_path / "picks.csv"), *reporting]
    assert main(command) == 0
    reported = capsys.readouterr()
    if reporting == ["--json"]:
        assert json.loads(reported.out)["charged"] is True
    elif not reporting:
        assert "charged to 'readers': ε = 0.5 of 1 spent" in reported.err
    else:
        assert (reported.out, reported.err) == ("", "")
    assert (tmp_path / "picks.csv").exists()


def test_bad_input_costs_nothing(commands, tmp_path):
    (tmp_path / "scores.csv").write_text(CSV + "eve,a,nan,1\n")
    code, errors = commands("select", "--release", "spring")
    assert code == 3
    assert "'score'" in errors
    assert commands("budget", "show")[1]["populations"][0]["epsilon_spent"] == 0
    (tmp_path / "scores.csv").write_text(CSV)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["budget.db", "budget.db.keys", "scores.csv"]
    assert not keys_of_releases(tmp_path / "budget.db.keys")
    assert commands("select", "--release", "spring")[0] == 0


@pytest.mark.parametrize("table", [[], ["--one"]], ids=["units", "one"])
@pytest.mark.parametrize("moment", ["fingerprint", "batches"])
def test_files_exchanged_between_fingerprint_and_reading_are_not_published(
    table, moment, commands, tmp_path, monkeypatch
):
    if table:
        (tmp_path / "scores.csv").write_text("candidate,score,sensitivity\na,3,1\nb,1,1\n")
    owner, name = (local, "hash_files") if moment == "fingerprint" else (StoredTable, "batches")
    genuine = getattr(owner, name)

    def exchange(*arguments, **settings):
        result = genuine(*arguments, **settings)
        content = (tmp_path / "scores.csv").read_text()
        (tmp_path / "other.csv").write_text(content.replace("3,1", "9,1"))
        (tmp_path / "other.csv").rename(tmp_path / "scores.csv")
        return result

    monkeypatch.setattr(owner, name, exchange)
    code, errors = commands("select", "--release", "spring", *table)
    assert code == 3
    assert "has changed while it was read" in errors
    assert not (tmp_path / "picks.csv").exists()
    assert commands("budget", "show")[1]["populations"][0]["epsilon_spent"] == 0


@pytest.mark.usefixtures("commands")
def test_the_same_bytes_read_in_another_way_are_other_inputs(tmp_path, capsys):
    names = ["user", "candidate", "score", "sensitivity"]
    rows = [(names, names), (["ann", "a", "1", "1"], ["bob", "b", "5", "1"])]  # one table for commas, one for tabs
    content = "".join(",".join([*left, "z"]) + "\t" + "\t".join(right) + "\n" for left, right in rows)
    command = ["--epsilon", "0.5", "--budget", str(tmp_path / "budget.db"), "--population", "readers"]
    command += ["--release", "spring", "--quiet", "-o", str(tmp_path / "picks.csv")]
    for name in ("t.csv", "u.csv", "t.tsv"):
        (tmp_path / name).write_text(content)
    assert [main(["select", str(tmp_path / name), *command]) for name in ("t.csv", "u.csv", "t.tsv")] == [0, 0, 4]
    assert "other inputs" in capsys.readouterr().err


def test_a_budget_spent_by_others_in_the_meantime_leaves_nothing_unpaid(commands, tmp_path, monkeypatch):
    genuine = Ledger.charge

    def late(self, *arguments, **terms):
        genuine(self, "readers", "faster", dps.GEM(epsilon=0.9), fingerprint="theirs")
        return genuine(self, *arguments, **terms)

    monkeypatch.setattr(Ledger, "charge", late)
    code, errors = commands("select", "--release", "spring")
    assert code == 4
    assert "would have spent ε = 1.5" in errors
    assert not list(tmp_path.glob("*picks.csv*"))
    assert len(keys_of_releases(tmp_path / "budget.db.keys")) == 1


def test_two_runs_of_one_release_publish_the_picks_of_the_first_to_pay(commands, tmp_path, monkeypatch):
    genuine = Ledger.charge
    others = []

    def second(self, *arguments, **terms):
        if not others:
            others.append(genuine(self, *arguments, **{**terms, "key": bytes(range(32))}))
        return genuine(self, *arguments, **terms)

    monkeypatch.setattr(Ledger, "charge", second)
    code, facts = commands("select", "--release", "spring")
    assert (code, facts["charged"]) == (0, False)
    monkeypatch.undo()
    assert commands("select", "--release", "spring", output="again.csv")[0] == 0
    assert (tmp_path / "picks.csv").read_bytes() == (tmp_path / "again.csv").read_bytes()
    assert commands("budget", "show")[1]["populations"][0]["releases"][0]["key_id"] == others[0].key_id
    assert [path.stem for path in keys_of_releases(tmp_path / "budget.db.keys")] == [others[0].key_id]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--budget", "b.db"], "--budget needs --population and --release"),
        (["--release", "spring"], "need --budget"),
        (
            ["--budget", "b", "--population", "p", "--release", "r", "--key-file", "k"],
            "--key-file does not go with",
        ),
    ],
)
def test_options_of_the_budget_go_together(options, message, tmp_path, capsys):
    (tmp_path / "scores.csv").write_text(CSV)
    assert main(["select", str(tmp_path / "scores.csv"), "--epsilon", "1", *options]) == 2
    assert message in capsys.readouterr().err


def test_a_ledger_is_shown_in_words_too(commands, tmp_path, capsys):
    commands("select", "--release", "spring", "--what", "the spring letter")
    assert main(["budget", "show", str(tmp_path / "budget.db")]) == 0
    shown = capsys.readouterr().out
    assert "readers: ε = 0.6 of 1 is spent, in 1 release\n" in shown
    assert "the spring letter" in shown
    assert "for scores within the sensitivities" in shown
    create = ["budget", "create", str(tmp_path / "budget.db"), "--population", "counts", "--epsilon", "1", "--json"]
    assert main([*create, "--neighbours", "same-direction"]) == 0
    assert json.loads(capsys.readouterr().out)["neighbours"] == SAME_DIRECTION
    assert main(["budget", "show", str(tmp_path / "nowhere.db")]) == 5
    assert "there is no budget" in capsys.readouterr().err
