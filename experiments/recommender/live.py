"""The tables of the section on synthetic interactions, computed with every report."""

from collections.abc import Sequence
from functools import cache, partial

import pyarrow as pa

from experiments.experiment import Effort, Task
from experiments.mechanisms import COMPARED
from experiments.recommender import lists, private, protocol, tuned
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
                label=f"{COMPARED[mechanism].symbol}, {variant}",
                table="errors",
                compute=partial(_errors, effort, variant, mechanism),
            )
            for variant in variants
            for mechanism in COMPARED
        ),
        Task(label="tilts", table="tilts", compute=partial(_tilts, effort)),
        Task(label="the default", table="gains", compute=partial(_gains, effort)),
        Task(label="tuning", table="tuned", compute=partial(_tuned, effort)),
        Task(label="end-to-end private", table="private", compute=partial(_private, effort)),
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


def _private(effort: Effort) -> pa.Table:
    split, model = _trained(_size(effort))
    sides = private.prepare_sides(model, split)
    rows = [row for e in _epsilons(effort) for row in private.side_rows(sides, e, gamma=GAMMA)]
    return _named(pa.Table.from_pylist(rows))
