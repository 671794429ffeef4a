"""Datasets: complete, incomplete, missing and unknown ones."""

import numpy as np
import pytest
from rating_files import write_dat, write_parquet

from experiments.recommender.datasets import DATASETS, load, runs_in
from experiments.recommender.formats import (
    BadDataError,
)


@pytest.mark.parametrize("name", list(DATASETS))
def test_a_missing_set_is_named_with_where_to_get_it(name, tmp_path):
    with pytest.raises(FileNotFoundError) as raised:
        load(name, tmp_path)
    assert DATASETS[name].source in str(raised.value)
    assert str(tmp_path) not in str(raised.value)


def test_a_set_with_too_few_rows_is_refused_with_both_counts(tmp_path):
    (tmp_path / "ml-1m").mkdir()
    write_dat(tmp_path / "ml-1m")
    with pytest.raises(
        BadDataError, match=r"ratings\.dat: found 6 interactions .* has 1,000,209 interactions of 6,040 users"
    ):
        load("ml-1m", tmp_path)


def test_a_set_without_any_like_is_refused(tmp_path):
    write_parquet(tmp_path, rating=np.ones(6, np.float32))
    with pytest.raises(BadDataError, match="no interactions rated 4 or better"):
        load("own", tmp_path)


def test_every_set_in_a_folder_is_found_under_all_its_forms(tmp_path):
    for dataset in DATASETS.values():
        for number, form in enumerate(dataset.forms):
            folder = tmp_path / f"{dataset.name}-{number}"
            path = folder / form
            path.parent.mkdir(parents=True)
            path.touch()
            assert {run.dataset for run in runs_in(folder)} == {dataset.name}


def test_any_other_parquet_file_is_a_set_of_its_own(tmp_path):
    write_parquet(tmp_path)
    assert [run.name for run in runs_in(tmp_path)] == ["own"]
    assert load("own", tmp_path).counts.rows == 6
