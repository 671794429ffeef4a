"""The known datasets: their files, sizes and sources, and the runs on them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from experiments.recommender.formats import (
    BadDataError,
    read_lightgcn,
    read_netflix,
    read_parquet,
    read_ratings_csv,
    read_ratings_dat,
)
from experiments.recommender.interactions import Batch, Counts, Interactions, collect
from experiments.recommender.preprocessing import LEAST_RATING

__all__ = ["DATASETS", "RUNS", "Dataset", "Run", "Sansa", "find", "load", "runs_in"]


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A dataset of interactions, in one of its published forms."""

    name: str
    title: str
    forms: Mapping[str, Callable[[Path], Iterator[Batch]]]
    """The readers, by the file or folder that each one reads."""
    counts: Counts | None
    """The counts of a complete copy; None if unknown."""
    source: str
    """The source, in one sentence."""
    held_out: int | None = None
    """The number of test users, and of calibration users; None if the dataset has its own split."""
    gamma: float = 0.008


@dataclass(frozen=True, kw_only=True)
class Sansa:
    """Settings of SANSA; see :func:`experiments.recommender.sansa.fit_sansa`."""

    l2: float
    density: float
    factorisation: Literal["cholmod", "icf"]
    scans: int = 1


@dataclass(frozen=True, kw_only=True)
class Run:
    """A dataset and a model: one column of the figure."""

    name: str
    title: str
    dataset: str
    sansa: Sansa | None
    """None for EASE."""
    l2: float = 600.0
    """EASE's penalty."""
    private: bool = True
    """Whether to run the private protocol too, which trains again on public users only."""
    published: str = "–"
    """Published recall@20, and its setting."""


def _lightgcn(counts: Counts) -> Callable[[Path], Iterator[Batch]]:
    return partial(read_lightgcn, users=counts.users, items=counts.items)


def _parquet(counts: Counts, *, first_id: int = 0) -> Callable[[Path], Iterator[Batch]]:
    return partial(read_parquet, users=counts.users + first_id, items=counts.items + first_id)


def _with_own_split(name: str, title: str, counts: Counts) -> Dataset:
    return Dataset(
        name=name,
        title=title,
        forms={name: _lightgcn(counts), f"{name}.parquet": _parquet(counts)},
        counts=counts,
        source=f"{title} is in the folder Data/{name} of LightGCN’s repository on GitHub (kuandeng/LightGCN).",
    )


_AMAZON = Counts(rows=2_984_108, users=52_643, items=91_599)
_PARTIAL = Counts(rows=2_502_997, users=52_643, items=91_599)
_ML_1M = Counts(rows=1_000_209, users=6_040, items=3_706)

_KNOWN = (
    Dataset(
        name="ml-1m",
        title="MovieLens-1M",
        forms={"ml-1m/ratings.dat": read_ratings_dat, "ml-1m.parquet": _parquet(_ML_1M, first_id=1)},
        counts=_ML_1M,
        source="MovieLens-1M is ml-1m.zip on GroupLens’ page of MovieLens datasets.",
        held_out=600,
    ),
    Dataset(
        name="ml-20m",
        title="MovieLens-20M",
        forms={
            "ml-20m/ratings.csv": read_ratings_csv,
            "ml-20m/rating.csv": read_ratings_csv,
            "ml-20m.parquet": read_parquet,
        },
        counts=Counts(rows=20_000_263, users=138_493, items=26_744),
        source="MovieLens-20M is ml-20m.zip on GroupLens’ page of MovieLens datasets.",
        held_out=10_000,
    ),
    Dataset(
        name="netflix",
        title="Netflix Prize",
        forms={"netflix": read_netflix, "netflix.parquet": read_parquet},
        counts=Counts(rows=100_480_507, users=480_189, items=17_770),
        source="Netflix Prize data is on Kaggle as netflix-inc/netflix-prize-data: four combined_data files.",
        held_out=40_000,
        gamma=0.0008,
    ),
    _with_own_split("gowalla", "Gowalla", Counts(rows=1_027_370, users=29_858, items=40_981)),
    _with_own_split("yelp2018", "Yelp2018", Counts(rows=1_561_406, users=31_668, items=38_048)),
    _with_own_split("amazon-book", "Amazon Books", _AMAZON),
    Dataset(
        name="amazon-book-partial",
        title="Amazon Books, 84 % of interactions",
        forms={"amazon-book-partial.parquet": _parquet(_PARTIAL)},
        counts=_PARTIAL,
        source="The complete set is in the folder Data/amazon-book of LightGCN’s repository on GitHub.",
    ),
)

DATASETS: Mapping[str, Dataset] = MappingProxyType({dataset.name: dataset for dataset in _KNOWN})

_MOVIELENS = Sansa(l2=600, density=0.01, factorisation="cholmod")
_SPARSE = Sansa(l2=20, density=5e-5, factorisation="icf", scans=3)
_DENSER = Sansa(l2=20, density=5e-4, factorisation="icf", scans=3)
_ML_20M_RECALL = "SANSA on MovieLens-20M: .3767 (density 0.1 %) to .3884 (1 %)"
_AMAZON_RECALL = "SANSA on all of Amazon Books, density 5e-5: .0768"

RUNS = (
    Run(
        name="ml-1m",
        title="MovieLens-1M",
        dataset="ml-1m",
        sansa=_MOVIELENS,
        published=_ML_20M_RECALL,
    ),
    Run(
        name="ml-1m-ease",
        title="MovieLens-1M, EASE",
        dataset="ml-1m",
        sansa=None,
        published=_ML_20M_RECALL,
    ),
    Run(name="ml-20m", title="MovieLens-20M", dataset="ml-20m", sansa=_MOVIELENS, published=_ML_20M_RECALL),
    Run(
        name="netflix",
        title="Netflix Prize",
        dataset="netflix",
        sansa=Sansa(l2=1200, density=0.01, factorisation="cholmod"),
        published="SANSA: .3538 to .3558",
    ),
    Run(name="gowalla", title="Gowalla", dataset="gowalla", sansa=_DENSER, published="LightGCN: .1830"),
    Run(name="yelp2018", title="Yelp2018", dataset="yelp2018", sansa=_DENSER, published="LightGCN: .0649"),
    Run(
        name="amazon-book",
        title="Amazon Books",
        dataset="amazon-book",
        sansa=_SPARSE,
        private=False,
        published="SANSA: .0768",
    ),
    Run(
        name="amazon-book-denser",
        title="Amazon Books, density 5e-4",
        dataset="amazon-book",
        sansa=_DENSER,
        private=False,
        published="SANSA, density 5e-5: .0768",
    ),
    Run(
        name="amazon-book-partial",
        title="Amazon Books 84 %, density 5e-5",
        dataset="amazon-book-partial",
        sansa=_SPARSE,
        private=False,
        published=_AMAZON_RECALL,
    ),
    Run(
        name="amazon-book-partial-denser",
        title="Amazon Books 84 %, density 5e-4",
        dataset="amazon-book-partial",
        sansa=_DENSER,
        private=False,
        published=_AMAZON_RECALL,
    ),
)
"""In the order of the figure."""


def find(dataset: Dataset, folder: Path) -> Path | None:
    """Return the file or folder of a dataset, or None if it is missing."""
    return next((folder / form for form in dataset.forms if (folder / form).exists()), None)


def runs_in(folder: Path) -> list[Run]:
    """Return the runs whose datasets are in the folder. Every other Parquet file there is a dataset too."""
    known = [run for run in RUNS if find(DATASETS[run.dataset], folder)]
    names = {form for dataset in DATASETS.values() for form in dataset.forms}
    others = sorted(path.stem for path in folder.glob("*.parquet") if path.name not in names)
    return known + [Run(name=name, title=name, dataset=name, sansa=None) for name in others]


def load(name: str, folder: Path) -> Interactions:
    """Read the likes of a dataset and check that it is complete.

    Args:
        name: A name of :data:`DATASETS`, or of a Parquet file in the folder without its ending.
        folder: The directory of the datasets.

    Raises:
        FileNotFoundError: The dataset is missing; the message names its source.
        BadDataError: A file is damaged or incomplete.
    """
    dataset = DATASETS.get(name) or _unknown(name)
    path = find(dataset, folder)
    if path is None:
        raise FileNotFoundError(f"no {' or '.join(dataset.forms)} in the data folder. {dataset.source}")
    reader = next(reader for form, reader in dataset.forms.items() if folder / form == path)
    likes = collect(reader(path), least_rating=LEAST_RATING)
    if dataset.counts is not None and likes.counts != dataset.counts:
        raise BadDataError(
            f"{path.name}: found {likes.counts}; a complete copy of {dataset.title} has {dataset.counts}. "
            f"{dataset.source}"
        )
    if likes.users.size == 0:
        raise BadDataError(f"{path.name}: no interactions" + (" rated 4 or better" if likes.counts.rows else ""))
    return likes


def _unknown(name: str) -> Dataset:
    return Dataset(
        name=name,
        title=name,
        forms={f"{name}.parquet": read_parquet},
        counts=None,
        source="Your own dataset is a Parquet file with the columns user and item, and optionally rating and "
        "split.",
    )
