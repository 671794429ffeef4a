"""The exponential mechanism (noisy max with Gumbel noise), by rejection sampling."""

from dpselect.kernels.arrays import UNRESOLVED, FlagArray, FloatArray, IndexArray, Table, Units
from dpselect.kernels.chacha import next_word
from dpselect.kernels.coins import FAIL, PASS, UNSURE, bernoulli_exp, split
from dpselect.kernels.compilation import compiled, compiled_without_refcounts
from dpselect.kernels.lazy_gaps import LazyGaps
from dpselect.kernels.samplers.loops import Visits, Workspace, new_workspace, pick_from_gaps, pick_from_scores


@compiled_without_refcounts
def pick(gaps: LazyGaps, _visits: int, workspace: Workspace) -> int:
    """Propose candidates uniformly and accept with probability exp(−gap): Pr[a] ∝ exp(−gap)."""
    values, top, rate = gaps.values, gaps.top, gaps.rate
    stream, width, _, _ = workspace
    while True:
        a, coin = split(next_word(stream), values.size)
        verdict = UNSURE if a == UNSURE else bernoulli_exp(coin, values.size, (top - values[a]) * rate, width)
        if verdict != FAIL:
            return a if verdict == PASS else UNRESOLVED


@compiled_without_refcounts
def pick_rows_from_scores(
    first: int,
    last: int,
    table: Table,
    budget: float,
    visits: Visits,
    units: Units,
    workspace: Workspace,
    picks: IndexArray,
) -> None:
    """Run the loop over scores with this sampler."""
    pick_from_scores(pick, first, last, table, budget, visits, units, workspace, picks)


@compiled_without_refcounts
def pick_rows_from_gaps(
    rows: IndexArray,
    places: IndexArray,
    gaps: FloatArray,
    trusted: FlagArray,
    visits: Visits,
    units: Units,
    workspace: Workspace,
    picks: IndexArray,
) -> None:
    """Run the loop over gaps with this sampler."""
    pick_from_gaps(pick, rows, places, gaps, trusted, visits, units, workspace, picks)


@compiled
def select_from_scores(
    first: int,
    last: int,
    table: Table,
    budget: float,
    visits: Visits,
    units: Units,
    width: float,
    picks: IndexArray,
) -> None:
    """Pick one candidate for each row of a block, from gaps over the largest sensitivity."""
    workspace = new_workspace(units.key, width, 0, 0)
    pick_rows_from_scores(first, last, table, budget, visits, units, workspace, picks)


@compiled
def select_from_gaps(
    rows: IndexArray,
    places: IndexArray,
    gaps: FloatArray,
    trusted: FlagArray,
    visits: Visits,
    units: Units,
    width: float,
    picks: IndexArray,
) -> None:
    """Pick one candidate for each of the given rows, from gaps computed before."""
    workspace = new_workspace(units.key, width, 0, 0)
    pick_rows_from_gaps(rows, places, gaps, trusted, visits, units, workspace, picks)
