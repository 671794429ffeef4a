"""The exponential mechanism (noisy max with Gumbel noise), by rejection sampling."""

from dpselect.kernels.arrays import UNRESOLVED, IndexArray
from dpselect.kernels.chacha import next_word
from dpselect.kernels.coins import FAIL, PASS, UNSURE, bernoulli_exp, split
from dpselect.kernels.compilation import compiled_without_refcounts
from dpselect.kernels.lazy_gaps import LazyGaps
from dpselect.kernels.samplers.loops import GapRows, ScoreRows, Setup, Workspace, pick_from_gaps, pick_from_scores


@compiled_without_refcounts
def pick(gaps: LazyGaps, _visits: int, workspace: Workspace) -> int:
    """Propose candidates uniformly and accept with probability exp(−gap): Pr[a] ∝ exp(−gap)."""
    values, top, rate = gaps.values, gaps.top, gaps.rate
    stream, error_bound, _, _ = workspace
    while True:
        a, coin = split(next_word(stream), values.size)
        verdict = UNSURE if a == UNSURE else bernoulli_exp(coin, values.size, (top - values[a]) * rate, error_bound)
        if verdict != FAIL:
            return a if verdict == PASS else UNRESOLVED


@compiled_without_refcounts
def select_from_scores(rows: ScoreRows, setup: Setup, space: Workspace, picks: IndexArray) -> None:
    """Pick one candidate for each row of a block, from gaps over the largest sensitivity."""
    pick_from_scores(pick, rows, setup, space, picks)


@compiled_without_refcounts
def select_from_gaps(rows: GapRows, setup: Setup, space: Workspace, picks: IndexArray) -> None:
    """Pick one candidate for each of the given rows, from gaps computed before."""
    pick_from_gaps(pick, rows, setup, space, picks)
