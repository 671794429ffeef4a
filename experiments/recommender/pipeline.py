"""One run from files to tables. You can interrupt it at any point; the next run resumes there."""

import json
import os
import platform
import resource
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import dpselect as dps
from experiments import report, tables
from experiments.files import replacing
from experiments.recommender import gains, lists, private, private_lists, protocol, results, shares, tuned
from experiments.recommender.datasets import DATASETS, Run, find, load
from experiments.recommender.interactions import Counts, Interactions
from experiments.recommender.models import Model, fit_ease
from experiments.recommender.preprocessing import Split, hold_out_users, own_split
from experiments.recommender.sansa import fit_sansa, sansa_is_installed
from experiments.recommender.scoring import Candidates, Ranges, find_candidates, find_ranges, recall

__all__ = ["execute"]

PROTOCOL = "3"
"""Change this when kept results of an older version must not be reused."""
SEED = 42
HELD_OUT_SHARE, MOST_HELD_OUT = 0.1, 3000
UNCLIPPED_USERS, RATIO_USERS, TILT_USERS, TUNED_USERS, LIST_USERS = 3000, 10_000, 1000, 1000, 1000
DOMINATED_USERS = 200
TILT_EPSILONS = (0.1, 1.0, 8.0)


@dataclass
class Log:
    """Reports the current stage, and adds up the time of every stage."""

    home: Path
    say: Callable[[str, float], None]
    stages: dict[str, dict[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self._file.is_file():
            self.stages = json.loads(self._file.read_text(encoding="utf-8"))

    @property
    def _file(self) -> Path:
        return self.home / "stages.json"

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure the stage that runs inside."""
        self.say(name, 0.0)
        started, used = time.monotonic(), time.process_time()
        yield
        known = self.stages.get(name, {"seconds": 0.0, "processor": 0.0})
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << (20 if sys.platform != "darwin" else 30))
        self.stages[name] = {
            "seconds": known["seconds"] + time.monotonic() - started,
            "processor": known["processor"] + time.process_time() - used,
            "peak_gib": max(peak, known.get("peak_gib", 0.0)),
        }
        with replacing(self._file) as temporary:
            temporary.write_text(json.dumps(self.stages), encoding="utf-8")


def execute(run: Run, folder: Path, output: Path, say: Callable[[str, float], None]) -> Path:
    """Compute the missing tables of a run, and return their folder.

    Args:
        run: The dataset and the model.
        folder: The directory of the datasets.
        output: The output directory; results go to ``recommender/NAME``.
        say: Receives the running stage and the share of it that is done.
    """
    home = output / "recommender" / run.name
    _forget_others(home, _key(run, folder))
    if results.complete(home):
        return home
    log = Log(home, say)
    scored = _scored(run, folder, home, log)
    gamma = DATASETS[run.dataset].gamma if run.dataset in DATASETS else 0.008
    clipped, unclipped = (protocol.lists(scored.candidates, scored.ranges, clipped=flag) for flag in (True, False))
    sample = unclipped.sample(UNCLIPPED_USERS, SEED)
    _tables(home, log, scored, clipped, sample, gamma)
    if run.private:
        _private(run, folder, home, log, gamma)
    results.write_summary(_summary(run, scored, log), home / results.SUMMARY)
    return home


def _tables(
    home: Path, log: Log, scored: "_Scored", clipped: protocol.Lists, sample: protocol.Lists, gamma: float
) -> None:
    def table(name: str, compute: Callable[[], tuple[pa.Table, dict[str, object]]]) -> None:
        path = home / f"{name}.csv"
        if path.is_file():
            return
        with log.stage(name):
            found, further = compute()
        _keep(home, further)
        tables.write(found, path)

    def correlations() -> tuple[pa.Table, dict[str, object]]:
        found, further = [], dict[str, object]()
        for variant, users in (("clipped", clipped), ("unclipped", sample)):
            part, summary = protocol.correlation_table(users)
            found.append(part.add_column(0, "variant", pa.array([variant] * part.num_rows)))
            further |= {f"correlation_{variant}_{name}": value for name, value in summary.items()}
        return pa.concat_tables(found), further

    def ratios() -> tuple[pa.Table, dict[str, object]]:
        found, summary = protocol.ratio_table(clipped.sample(RATIO_USERS, SEED), seed=SEED)
        return found, {f"ratio_{name}": value for name, value in summary.items()}

    def tilts() -> tuple[pa.Table, dict[str, object]]:
        users = clipped.sample(TILT_USERS, SEED)
        return pa.Table.from_pylist([row for e in TILT_EPSILONS for row in protocol.tilt_rows(users, e)]), {}

    def chosen() -> tuple[pa.Table, dict[str, object]]:
        users = clipped.sample(TUNED_USERS, SEED)
        return pa.Table.from_pylist([tuned.tuned_row(users, e, seed=SEED) for e in TILT_EPSILONS]), {}

    def gained() -> tuple[pa.Table, dict[str, object]]:
        return pa.Table.from_pylist(gains.gain_rows(clipped)), {}

    def listed() -> tuple[pa.Table, dict[str, object]]:
        users, midpoints = clipped.sample(LIST_USERS, SEED), scored.midpoints(clipped, LIST_USERS)
        rows = lists.list_rows(users, midpoints, seed=SEED, fleet=len(clipped), epsilons=lists.EPSILONS)
        return pa.Table.from_pylist(rows), lists.provenance()

    table("correlations", correlations)
    table("ratios", ratios)
    table("tilts", tilts)
    table("gains", gained)
    _errors(home, log, {"clipped": clipped, "unclipped": sample}, gamma)
    table("tuned", chosen)
    table("lists", listed)


def _kept(home: Path) -> dict[str, object]:
    """Return the numbers that go to the summary."""
    path = home / "measured.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _keep(home: Path, further: dict[str, object]) -> None:
    measured = _kept(home) | further
    with replacing(home / "measured.json") as temporary:
        temporary.write_text(json.dumps(measured), encoding="utf-8")


def _errors(home: Path, log: Log, variants: dict[str, protocol.Lists], gamma: float) -> None:
    """Compute the errors for one ε and variant at a time, and keep each at once."""
    if (home / "errors.csv").is_file():
        return
    parts: list[pa.Table] = []
    steps = [(variant, epsilon) for variant in variants for epsilon in protocol.EPSILONS]
    for number, (variant, epsilon) in enumerate(steps):
        path = home / "parts" / f"{variant}-{epsilon:g}.parquet"
        if not path.is_file():
            with log.stage("errors"):
                rows = []
                for place, mechanism in enumerate(protocol.MEASURED):
                    log.say("errors", (number + place / len(protocol.MEASURED)) / len(steps))
                    found = protocol.error_row(variants[variant], mechanism, epsilon, gamma=gamma, seed=SEED)
                    rows.append({"variant": variant, **found})
            with replacing(path) as temporary:
                parquet.write_table(pa.Table.from_pylist(rows), temporary)
        parts.append(parquet.read_table(path))
    tables.write(pa.concat_tables(parts), home / "errors.csv")


def _private(run: Run, folder: Path, home: Path, log: Log, gamma: float) -> None:
    """Compute the tables that are private from end to end, one ε at a time, and keep each at once."""
    computed: dict[str, tuple[Sequence[float], Callable[[private.HeldOut, float], list[protocol.Row]]]] = {
        "private": (
            private.EPSILONS,
            lambda found, e: [
                *private.side_rows(found, e, gamma=gamma),
                *shares.share_rows(found, e, seed=SEED),
            ],
        ),
        "private_lists": (private_lists.EPSILONS, lambda found, e: private_lists.list_rows(found, e, seed=SEED)),
        "dominated": (
            private.EPSILONS,
            lambda found, e: shares.dominated_rows(found, e, gamma=gamma, users=DOMINATED_USERS),
        ),
    }
    missing = [name for name in computed if not (home / f"{name}.csv").is_file()]
    held_out = _held_out_rows(run, folder, home, log) if missing else None
    for name in missing:
        parts: list[pa.Table] = []
        epsilons, compute = computed[name]
        for number, epsilon in enumerate(epsilons):
            path = home / "parts" / f"{name}-{epsilon:g}.parquet"
            if not path.is_file() and held_out is not None:
                with log.stage(name.replace("_", " ")):
                    log.say(name, number / len(epsilons))
                    rows = compute(held_out, epsilon)
                with replacing(path) as temporary:
                    parquet.write_table(pa.Table.from_pylist(rows), temporary)
            parts.append(parquet.read_table(path))
        tables.write(pa.concat_tables(parts), home / f"{name}.csv")
        _keep(home, {"private_commit": report.commit(), "private_date": f"{datetime.now(UTC):%Y-%m-%d}"})


def _held_out_rows(run: Run, folder: Path, home: Path, log: Log) -> private.HeldOut:
    path = home / "held_out.npz"
    if not path.is_file():
        with log.stage("private: training"):
            split = _held_out(run, load(run.dataset, folder))
            model = _fit(run, split)
        with log.stage("private: scores"):
            private.prepare(model, split, seed=SEED, step=log.say).save(path)
    return private.HeldOut.load(path)


@dataclass(frozen=True, kw_only=True)
class _Scored:
    """The kept scores: each user's candidates and each item's range."""

    candidates: Candidates
    ranges: Ranges
    facts: dict[str, str]

    def midpoints(self, users: protocol.Lists, size: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        """Return the midpoint of each candidate's range, for the users of ``users.sample(size)``."""
        midpoints = self.ranges.midpoints[self.candidates.items]
        return protocol.Lists(scores=midpoints, sensitivities=users.sensitivities).sample(size, SEED).scores


def _scored(run: Run, folder: Path, home: Path, log: Log) -> _Scored:
    path = home / "scores.npz"
    if not path.is_file():
        with log.stage("reading"):
            likes = load(run.dataset, folder)
            split = own_split(likes) if likes.test is not None else _held_out(run, likes)
        with log.stage("training"):
            model = _fit(run, split)
        with log.stage("percentiles"):
            ranges = find_ranges(model, split.inputs, step=log.say)
        with log.stage("candidates"):
            found = find_candidates(model, split.inputs, step=log.say)
        facts = _facts(likes.counts, split, model, found, ranges, own=likes.test is not None)
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.savez(
                file,
                items=found.items,
                scores=found.scores,
                nonzero=found.nonzero,
                lower=ranges.lower,
                upper=ranges.upper,
                facts=np.array(json.dumps(facts)),
            )
    with np.load(path) as kept:
        return _Scored(
            candidates=Candidates(items=kept["items"], scores=kept["scores"], nonzero=kept["nonzero"]),
            ranges=Ranges(lower=kept["lower"], upper=kept["upper"]),
            facts=json.loads(str(kept["facts"])),
        )


def _held_out(run: Run, likes: Interactions) -> Split:
    """Hold users out. Of a dataset with its own split, use only the training part, which all users have."""
    if likes.test is not None:
        train = ~likes.test
        likes = Interactions(users=likes.users[train], items=likes.items[train], test=None, counts=likes.counts)
    known = DATASETS[run.dataset].held_out if run.dataset in DATASETS else None
    size = known or max(1, min(MOST_HELD_OUT, int(HELD_OUT_SHARE * np.unique(likes.users).size)))
    return hold_out_users(likes, test_users=size, calibration_users=size, seed=SEED)


def _fit(run: Run, split: Split) -> Model:
    if run.sansa is None or not sansa_is_installed():
        return fit_ease(split.train, l2=run.l2)
    settings = run.sansa
    return fit_sansa(
        split.train,
        l2=settings.l2,
        density=settings.density,
        factorisation=settings.factorisation,
        scans=settings.scans,
    )


def _facts(
    counts: Counts, split: Split, model: Model, found: Candidates, ranges: Ranges, *, own: bool
) -> dict[str, str]:
    """Return facts about the dataset and the model, as text."""
    size = found.items.shape[1]
    users, items = split.train.shape
    return {
        "data": str(counts),
        "likes in training": f"{split.train.nnz:,} of {users:,} users with {items:,} items",
        "split": "the set’s own; all users are in training" if own else "test users held out of training",
        "test users": f"{split.inputs.shape[0]}",
        "model": model.description,
        "recall@20": f"{recall(found, split.targets, capped=not own):.4f}",
        "items with equal percentiles": f"{float(np.mean(ranges.upper <= ranges.lower)):.4f}",
        "users with fewer non-zero scores than candidates": f"{float(np.mean(found.nonzero < size)):.4f}",
    }


def _summary(run: Run, scored: _Scored, log: Log) -> dict[str, str]:
    """Return provenance and measured numbers: enough to reproduce the tables, and nothing that names a machine."""
    measured, stages = _kept(log.home), log.stages
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "title": run.title,
        **scored.facts,
        "published recall@20": run.published,
        "training": f"{stages['training']['seconds']:.0f} s",
        "percentiles and candidates": f"{stages['percentiles']['seconds'] + stages['candidates']['seconds']:.0f} s",
        "whole run": f"{sum(stage['seconds'] for stage in stages.values()):.0f} s",
        "processor time": f"{sum(stage['processor'] for stage in stages.values()):.0f} s",
        "peak memory": f"{max(stage['peak_gib'] for stage in stages.values()):.1f} GiB",
        "machine": f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.machine()}, shared with other work",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "dpselect": dps.__version__,
        "commit": report.commit(),
        **{name: str(value) for name, value in measured.items()},
    }


def _key(run: Run, folder: Path) -> str:
    path = find(DATASETS[run.dataset], folder) if run.dataset in DATASETS else folder / f"{run.dataset}.parquet"
    size = path.stat().st_size if path is not None and path.is_file() else 0
    return sha256(repr((PROTOCOL, run, size, sansa_is_installed())).encode()).hexdigest()


def _forget_others(home: Path, key: str) -> None:
    """Remove results that were kept for other settings or other data."""
    mark = home / "key"
    if home.exists() and not (mark.is_file() and mark.read_text(encoding="utf-8") == key):
        shutil.rmtree(home)
    with replacing(mark) as temporary:
        temporary.write_text(key, encoding="utf-8")
