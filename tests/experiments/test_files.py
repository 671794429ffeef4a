"""Files are complete or absent."""

import pytest

from experiments.files import replacing


def test_an_interrupted_write_leaves_the_old_file_and_no_half_one(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old", encoding="utf-8")

    def write_half():
        with replacing(path) as temporary:
            temporary.write_text("ha", encoding="utf-8")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert [file.name for file in tmp_path.iterdir()] == ["table.csv"]
    assert path.read_text(encoding="utf-8") == "old"
