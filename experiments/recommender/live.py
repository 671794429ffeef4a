"""The tables of the section on synthetic interactions, computed with every report."""

from collections.abc import Sequence
from functools import cache, partial

import pyarrow as pa

from experiments.experiment import Effort, Task
from experiments.recommender import lists, private, private_lists, protocol, shares, tuned
from experiments.recommender.gains import gain_rows
from experiments.recommender.generated import generate
from experiments.recommender.models import DenseModel, fit_ease
from experiments.recommender.preprocessing import Split, hold_out_users
from experiments.recommender.scoring import Candidates, Ranges, find_candidates, find_ranges, recall

__all__ = ["TITLE", "plan", "plan_lists"]

TITLE = "synthetic interactions"
SEED = 42
L2 = 100.0
GAMMA = 0.008
MOST_USERS = 300
TILT_EPSILON = 1.0


def _size(effort: Effort) -> int:
    return min(MOST_USERS, effort.trials)


@cache
def _trained(test_users: int) -> tuple[Split, DenseModel]:
    likes = generate(users=9 * test_users, items=600 + 2 * test_users, seed=SEED)
    split = hold_out_users(likes, test_users=test_users, calibration_users=test_users, seed=SEED)
    return split, fit_ease(split.train, l2=L2)


@cache
def _scored(test_users: int) -> tuple[Candidates, Ranges]:
    split, model = _trained(test_users)
    return find_candidates(model, split.inputs), find_ranges(model, split.inputs)


def _lists(effort: Effort, variant: str) -> protocol.Lists:
    candidates, ranges = _scored(_size(effort))
    return protocol.lists(candidates, ranges, clipped=variant == "clipped")


def _epsilons(effort: Effort) -> Sequence[float]:
    return protocol.EPSILONS if effort.trials > MOST_USERS else protocol.EPSILONS[::3]


def plan(effort: Effort) -> list[Task]:
    """Return the tasks. They make the same tables as a run on real data."""
    variants = ("clipped", "unclipped")
    return [
        Task(label="data and model", table="facts", compute=partial(_facts, effort)),
        *(
            Task(
                label=f"correlations, {variant}",
                table="correlations",
                compute=partial(_correlations, effort, variant),
            )
            for variant in variants
        ),
        Task(label="ratios", table="ratios", compute=partial(_ratios, effort)),
        *(
            Task(
                label=f"{record.symbol}, {variant}",
                table="errors",
                compute=partial(_errors, effort, variant, mechanism),
            )
            for variant in variants
            for mechanism, record in protocol.MEASURED.items()
        ),
        Task(label="tilts", table="tilts", compute=partial(_tilts, effort)),
        Task(label="the default", table="gains", compute=partial(_gains, effort)),
        Task(label="tuning", table="tuned", compute=partial(_tuned, effort)),
        Task(label="private from end to end", table="private", compute=partial(_private, effort)),
        Task(label="dominating top share", table="dominated", compute=partial(_dominated, effort)),
        Task(label="private lists", table="private_lists", compute=partial(_end_to_end_lists, effort)),
    ]


def plan_lists(effort: Effort) -> list[Task]:
    """Return the task of the section on private lists."""
    return [Task(label=TITLE, table="lists", compute=partial(_private_lists, effort))]


def _named(table: pa.Table) -> pa.Table:
    return table.add_column(0, "run", pa.array([TITLE] * table.num_rows))


def _facts(effort: Effort) -> pa.Table:
    split, model = _trained(_size(effort))
    candidates, _ = _scored(_size(effort))
    users, items = split.train.shape
    values = {
        "data": f"synthetic: {users:,} users in training, {items:,} items, {split.train.nnz:,} likes",
        "test users": f"{split.inputs.shape[0]}",
        "model": model.description,
        "recall@20": f"{recall(candidates, split.targets, capped=True):.4f}",
    }
    return _named(pa.table({"name": list(values), "value": list(values.values())}))


def _correlations(effort: Effort, variant: str) -> pa.Table:
    found, _ = protocol.correlation_table(_lists(effort, variant))
    return _named(found.add_column(0, "variant", pa.array([variant] * found.num_rows)))


def _ratios(effort: Effort) -> pa.Table:
    found, _ = protocol.ratio_table(_lists(effort, "clipped"), seed=SEED)
    return _named(found)


def _errors(effort: Effort, variant: str, mechanism: str) -> pa.Table:
    users = _lists(effort, variant)
    found = [
        protocol.error_row(users, mechanism, e, gamma=GAMMA, seed=SEED, slow_users=effort.slow_trials)
        for e in _epsilons(effort)
    ]
    return _named(pa.Table.from_pylist([{"variant": variant, **row} for row in found]))


def _gains(effort: Effort) -> pa.Table:
    return _named(pa.Table.from_pylist(gain_rows(_lists(effort, "clipped"))))


def _tilts(effort: Effort) -> pa.Table:
    tilts = protocol.TILTS if effort.trials > MOST_USERS else protocol.TILTS[::3]
    return _named(pa.Table.from_pylist(protocol.tilt_rows(_lists(effort, "clipped"), TILT_EPSILON, tilts)))


def _tuned(effort: Effort) -> pa.Table:
    row = tuned.tuned_row(_lists(effort, "clipped"), TILT_EPSILON, seed=SEED)
    return _named(pa.Table.from_pylist([row]))


def _private_lists(effort: Effort) -> pa.Table:
    candidates, ranges = _scored(_size(effort))
    full = effort.trials > MOST_USERS
    rows = lists.list_rows(
        _lists(effort, "clipped"),
        ranges.midpoints[candidates.items],
        seed=SEED,
        epsilons=lists.EPSILONS if full else lists.EPSILONS[::2],
        opendp_users=lists.OPENDP_USERS if full else effort.slow_trials,
    )
    return _named(pa.Table.from_pylist(rows))


@cache
def _held_out(test_users: int) -> private.HeldOut:
    split, model = _trained(test_users)
    return private.prepare(model, split, seed=SEED)


def _some(epsilons: Sequence[float], effort: Effort) -> Sequence[float]:
    return epsilons if effort.trials > MOST_USERS else epsilons[1::4]


def _private(effort: Effort) -> pa.Table:
    found = _held_out(_size(effort))
    rows = [
        row
        for epsilon in _some(private.EPSILONS, effort)
        for row in (
            *private.side_rows(found, epsilon, gamma=GAMMA),
            *shares.share_rows(found, epsilon, seed=SEED),
        )
    ]
    return _named(pa.Table.from_pylist(rows))


def _dominated(effort: Effort) -> pa.Table:
    found, users = _held_out(_size(effort)), effort.slow_trials
    epsilons = _some(private.EPSILONS, effort)[-1:]
    rows = [row for e in epsilons for row in shares.dominated_rows(found, e, gamma=GAMMA, users=users)]
    return _named(pa.Table.from_pylist(rows))


def _end_to_end_lists(effort: Effort) -> pa.Table:
    found, users = _held_out(_size(effort)), min(effort.slow_trials, lists.OPENDP_USERS)
    epsilons = _some(private_lists.EPSILONS, effort)[-2:]
    rows = [row for e in epsilons for row in private_lists.list_rows(found, e, seed=SEED, opendp_users=users)]
    return _named(pa.Table.from_pylist(rows))
