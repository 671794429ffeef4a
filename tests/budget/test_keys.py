"""Keys on disk: for their owner alone, whole, and never half a key."""

import hashlib
import stat

import pytest

from dpselect.budget.keys import KeyStore

KEY = bytes(range(32))


def checksum(key):
    return hashlib.blake2b(key, digest_size=8, person=b"dpselect key").hexdigest()


@pytest.mark.parametrize("first", ["new", "make_secret"])
def test_a_folder_of_keys_is_made_with_those_above_it_for_its_owner(tmp_path, first):
    folder = tmp_path / "above" / "keys"
    keys = KeyStore(folder)
    getattr(keys, first)()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    keys.new()
    keys.make_secret()
    assert len(list(folder.iterdir())) == 2 + (first == "new")


def test_a_key_has_a_name_of_128_random_bits_and_can_be_forgotten_twice(tmp_path):
    keys = KeyStore(tmp_path / "keys")
    name = keys.new(KEY)
    assert len(bytes.fromhex(name)) == 16
    assert keys.get(name) == KEY
    for _ in range(2):
        keys.forget(name)
    with pytest.raises(ValueError, match="is not in 'keys'"):
        keys.get(name)


@pytest.mark.parametrize(
    "text",
    [
        f"{KEY.hex()} {checksum(KEY[::-1])}",
        f"{KEY[:31].hex()} {checksum(KEY[:31])}",
        f"{KEY.hex()}00 {checksum(KEY + bytes(1))}",
        f"xy {checksum(b'')}",
        KEY.hex(),
    ],
)
def test_a_damaged_key_is_refused(tmp_path, text):
    keys = KeyStore(tmp_path / "keys")
    name = keys.new(KEY)
    (tmp_path / "keys" / f"{name}.key").write_text(text)
    with pytest.raises(ValueError, match="is damaged: restore it from a backup"):
        keys.get(name)
