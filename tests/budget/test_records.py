"""Records are stored as they always were: a ledger outlives the version that wrote it."""

import hashlib
import json

import dpselect as dps
from dpselect.budget import Ledger
from dpselect.budget.records import checksum, release_of, values_of


def test_a_checksum_is_a_hash_of_json_as_it_is_written():
    expected = hashlib.blake2b('["before", "ε", 1]'.encode(), digest_size=16, person=b"dpselect ledger")
    assert checksum("before", ["ε", 1]) == expected.hexdigest()


def test_a_guarantee_is_stored_as_sorted_json_and_read_back(tmp_path):
    with Ledger.create(tmp_path / "budget.db") as ledger:
        ledger.add_population("readers", epsilon=1.0)
        ledger.charge("readers", "spring", dps.GEM(0.5), fingerprint="inputs")
        [release] = ledger.statement("readers").releases
        secret = ledger.keys.secret()
    values = values_of(release)
    stored = json.loads(values[3])
    assert list(stored) == sorted(stored)
    assert stored["neighbours"] in values[3]  # with its Greek letters
    assert release_of(values) == release
    keyed = hashlib.blake2b(b"inputs", key=secret, digest_size=16, person=b"dpselect inputs").hexdigest()
    assert release.fingerprint.split()[0] == keyed
