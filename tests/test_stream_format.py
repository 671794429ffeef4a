"""A key's streams depend on the law and on the stream format; results of another format are refused."""

import itertools
import sys
from operator import attrgetter

import numpy as np
import pytest

import dpselect as dps
from dpselect import randomness
from dpselect.budget import Ledger, ReleaseConflictError
from dpselect.budget.fingerprints import combine_hashes
from dpselect.cli import main

KEY = bytes(range(32))
ROWS = 4000
ALARM = 6.0
"""Standard errors: the false-alarm rate is below one in 10⁸ comparisons."""

LAWS = [
    dps.NoisyMax(epsilon=1.0),
    dps.NoisyMax(epsilon=1.0, noise="gumbel"),
    dps.NoisyMax(epsilon=1.0, noise="laplace"),
    dps.NoisyMax(epsilon=1.0, beta=0.1),
    dps.NoisyMax(epsilon=1.001),
    dps.GEM(epsilon=1.0),
    dps.ModifiedGEM(epsilon=1.0),
    dps.RandomStopping(epsilon=1.0),
    dps.RandomStopping(epsilon=1.0, gamma=0.06),
    dps.CombinedGEM(epsilon=1.0),
    dps.RandomizedResponse(epsilon=1.0),
    dps.Uniform(),
]


def picks_of(mechanism):
    return mechanism.select(np.zeros((ROWS, 8)), 1.0, randomness=dps.Randomness.keyed(KEY, range(ROWS)))


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(LAWS, 2)), ids=attrgetter("law_name"))
def test_two_laws_under_one_key_agree_only_by_chance(one, other):
    """All scores are equal, so each law is uniform over eight candidates; independent picks agree with probability
    1/8.
    """
    agreed = (picks_of(one) == picks_of(other)).mean()
    assert abs(agreed - 1 / 8) < ALARM * np.sqrt(1 / 8 * 7 / 8 / ROWS)


def test_two_ways_to_write_a_law_give_the_same_law():
    assert (picks_of(dps.ModifiedGEM(epsilon=1.0)) == picks_of(dps.GEM(epsilon=1.0, tilt=-1.0))).all()
    assert (picks_of(dps.GEM(epsilon=1.0, tilt=-0.0)) == picks_of(dps.GEM(epsilon=1, tilt=0))).all()


def test_text_and_bytes_are_different_units():
    names = [f"user {i}" for i in range(ROWS)]
    mechanism, scores = dps.Uniform(), np.zeros((ROWS, 8))
    texts = mechanism.select(scores, 1.0, randomness=dps.Randomness.keyed(KEY, names))
    raw = mechanism.select(scores, 1.0, randomness=dps.Randomness.keyed(KEY, [name.encode() for name in names]))
    assert abs((texts == raw).mean() - 1 / 8) < ALARM * np.sqrt(1 / 8 * 7 / 8 / ROWS)


@pytest.fixture
def other_format(monkeypatch):
    """Pretend to be a version of dpselect with another stream format."""

    def pretend():
        for name, module in list(sys.modules.items()):
            if name.startswith("dpselect.") and hasattr(module, "STREAM_FORMAT"):
                monkeypatch.setattr(module, "STREAM_FORMAT", 3)

    return pretend


def test_another_stream_format_gives_other_picks(monkeypatch):
    before = picks_of(dps.NoisyMax(epsilon=1.0))
    monkeypatch.setattr(randomness, "STREAM_FORMAT", randomness.STREAM_FORMAT + 1)
    assert (picks_of(dps.NoisyMax(epsilon=1.0)) == before).mean() < 0.25


def test_a_paid_release_is_refused_in_another_stream_format(tmp_path, other_format):
    mechanism = dps.GEM(epsilon=0.5)
    with Ledger.create(tmp_path / "budget.db") as book:
        book.add_population("readers", epsilon=1.0)
        book.charge("readers", "spring", mechanism, fingerprint="march")
        assert not book.charge("readers", "spring", mechanism, fingerprint="march").charged
        other_format()
        for ask in (book.charge, book.check):
            with pytest.raises(ReleaseConflictError, match="or by another version of dpselect"):
                ask("readers", "spring", mechanism, fingerprint="march")
        assert book.statement("readers").epsilon_spent == 0.5
        assert book.charge("readers", "summer", mechanism, fingerprint="june").charged


def test_fingerprints_of_files_depend_on_the_stream_format(other_format):
    before = combine_hashes([], {"a": 1})
    other_format()
    assert combine_hashes([], {"a": 1}) != before


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("user,candidate,score,sensitivity\nann,tea,1,1\nann,rum,2,1\nbob,tea,3,1\nbob,rum,0,1\n")
    return path


def test_a_used_key_file_is_refused_in_another_stream_format(table, tmp_path, other_format, capsys):
    command = ["select", str(table), "--epsilon", "1", "--key-file", str(tmp_path / "key"), "--quiet", "--output"]
    assert main([*command, str(tmp_path / "picks.csv")]) == 0
    assert main([*command, str(tmp_path / "again.csv")]) == 0
    assert (tmp_path / "picks.csv").read_text() == (tmp_path / "again.csv").read_text()
    other_format()
    assert main([*command, str(tmp_path / "third.csv")]) == 4
    assert "or by another version of dpselect" in capsys.readouterr().err
    assert not (tmp_path / "third.csv").exists()
