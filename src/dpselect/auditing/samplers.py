"""Audits of samplers by their draws: do they follow the claimed law, and what do they give away at least?"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

import dpselect.parameters as check
from dpselect.auditing.losses import FloatArray
from dpselect.auditing.tails import binomial_quantile, chi_squared_tail
from dpselect.candidates import read_neighbours
from dpselect.progress import tracked

__all__ = ["Sampler", "SamplerAudit", "audit_sampler"]

Counts: TypeAlias = NDArray[np.int64]

DRAWS_AT_ONCE = 1 << 22
"""How many numbers one call of ``select`` gets at most."""

EXPECTED = 5.0
"""Cells of the chi-squared test expect at least so many draws; smaller ones are merged."""


class Sampler(Protocol):
    """Whatever picks: a mechanism of this library or a few lines around another one."""

    def select(self, scores: Any, sensitivities: Any, /) -> Any:  # noqa: ANN401 - an index, or one for each row
        """Return the index of the pick, or one for each row of a batch."""
        ...


@dataclass(frozen=True, kw_only=True)
class SamplerAudit:
    """What the draws of a sampler say, on one pair of neighbours."""

    draws: int
    """From each of the two sets of scores."""
    confidence: float
    """How certain the lower bound is."""
    epsilon: float
    """With that confidence, no ε below this one covers the sampler; 0 if the draws show nothing."""
    event: tuple[int, ...]
    """The set of candidates that shows it."""
    p_value: float | None
    """The chance of draws at least as far from the claimed law, if it is the true one; ``None`` without one."""

    def refutes(self, claim: float) -> bool:
        """Return whether the draws show, at the stated confidence, that the sampler is not ``claim``-DP."""
        return self.epsilon > claim


def audit_sampler(
    sampler: Sampler,
    scores: ArrayLike,
    neighbour: ArrayLike,
    sensitivities: ArrayLike,
    *,
    draws: int = 100_000,
    confidence: float = 0.99,
    law: Callable[[FloatArray, FloatArray], ArrayLike] | None = None,
    batched: bool = True,
    progress: bool | None = None,
) -> SamplerAudit:
    """Put a sampler's draws to the test on one pair of neighbours.

    A lower bound on ε: half of the draws choose an event E and a direction, the other half bound its
    probabilities, from below on one side and from above on the other (Clopper and Pearson, each at half of the
    error allowed); log(lower/upper) is then below the true privacy loss with the stated confidence. No law needs
    to be known, so it works for any library. With a claimed law also its goodness of fit: the chi-squared test on
    the draws of both sides, cells that expect fewer than five draws merged.

    A good pair of neighbours is the witness of :func:`audit` on the mechanism that the sampler should be.

    Args:
        sampler: Any object with ``select(scores, sensitivities)``.
        scores: One set of scores.
        neighbour: Another, within the sensitivities.
        sensitivities: The sensitivities.
        draws: How many draws from each side.
        confidence: Of the lower bound, between 0 and 1.
        law: The claimed law, ``law(scores, sensitivities)``; the sampler's own ``pmf`` unless given, if it has one.
        batched: Whether ``select`` takes a batch of rows; if not it is called once for each draw.
        progress: Whether to show a progress bar; ``None`` means on a terminal only.

    Cost:
        2 · draws picks.

    Example:
        >>> import dpselect as dps
        >>> private, naive = dps.NoisyMax(epsilon=1.0), dps.unsafe.HeterogeneousNoisyMax(epsilon=1.0)
        >>> scores, neighbour, sensitivities = [0.0, 0.5], [0.0, -0.5], [0.0, 1.0]
        >>> dps.auditing.audit_sampler(private, scores, neighbour, sensitivities, confidence=1 - 1e-9).refutes(1.0)
        False
        >>> dps.auditing.audit_sampler(naive, scores, neighbour, sensitivities, confidence=1 - 1e-9).refutes(1.0)
        True

    References:
        Z. Ding et al., Detecting violations of differential privacy, 2018.
        C. J. Clopper, E. S. Pearson, The use of confidence or fiducial limits illustrated in the case of the
        binomial, 1934.
    """
    check.require_attributes("sampler", sampler, "select")
    here, there, bounds = read_neighbours(scores, neighbour, sensitivities)
    if here.ndim != 1:
        raise ValueError("scores must be one set of candidates, not a batch")
    level = check.inside_unit_interval("confidence", confidence)
    half = check.count("draws", draws, least=2) // 2
    claimed = getattr(sampler, "pmf", None) if law is None else law
    rest = draws - half
    in_batches = check.flag("batched", batched)
    parts = [(here, half), (there, half), (here, rest), (there, rest)]
    exploring_here, exploring_there, here_counts, there_counts = (
        _draw(sampler, side, bounds, number, batched=in_batches)
        for side, number in tracked(parts, total=len(parts), label="draws", shown=progress)
    )
    event, forward = _most_telling(exploring_here, exploring_there)
    more, less = (here_counts, there_counts) if forward else (there_counts, here_counts)
    lower, upper = _surely(int(more[event].sum()), int(less[event].sum()), rest, (1 - level) / 2)
    p_value = None
    if claimed is not None:
        laws = [np.asarray(claimed(side, bounds), dtype=np.float64) for side in (here, there)]
        p_value = _goodness_of_fit([exploring_here + here_counts, exploring_there + there_counts], laws)
    return SamplerAudit(
        draws=draws,
        confidence=level,
        epsilon=max(0.0, math.log(lower / upper)) if lower > 0 else 0.0,
        event=tuple(event.tolist()),
        p_value=p_value,
    )


def _draw(sampler: Sampler, scores: FloatArray, sensitivities: FloatArray, draws: int, *, batched: bool) -> Counts:
    """Return how often each candidate was picked."""
    counts = np.zeros(scores.size, dtype=np.int64)
    block = max(1, DRAWS_AT_ONCE // scores.size) if batched else 1
    for first in range(0, draws, block):
        rows = min(block, draws - first)
        batch = np.broadcast_to(scores, (rows, scores.size)) if batched else scores
        picks = np.atleast_1d(np.asarray(sampler.select(batch, sensitivities)))
        if (
            picks.shape != (rows,)
            or picks.dtype.kind not in "iu"
            or not ((picks >= 0) & (picks < scores.size)).all()
        ):
            raise ValueError("sampler must return an index of a candidate for each row: does it take batches?")
        counts += np.bincount(picks, minlength=scores.size)
    return counts


def _most_telling(here: Counts, there: Counts) -> tuple[NDArray[np.intp], bool]:
    """Return the event, and whether it is likelier here, that promises the largest lower bound.

    The best event for any loss is a set of candidates whose ratio of probabilities is above a threshold, so the
    sets to try are the beginnings of the candidates in order of that ratio. An upper bound of a few standard
    deviations keeps rare candidates from looking better than they can be shown to be.
    """
    best = (-math.inf, np.arange(here.size), True)
    for forward, more, less in ((True, here, there), (False, there, here)):
        order = np.argsort(-(more + 0.5) / (less + 0.5), kind="stable")
        above, below = more[order].cumsum(), less[order].cumsum()
        promise = np.log(np.maximum(above - 3 * np.sqrt(above), 1e-9)) - np.log(below + 3 * np.sqrt(below) + 5)
        size = int(promise.argmax())
        if promise[size] > best[0]:
            best = (float(promise[size]), np.sort(order[: size + 1]), forward)
    return best[1], best[2]


def _surely(successes: int, failures: int, draws: int, error: float) -> tuple[float, float]:
    """Return Clopper and Pearson's lower bound for the first share and upper bound for the second."""
    lower = binomial_quantile(successes, draws, error) if successes else 0.0
    upper = binomial_quantile(failures + 1, draws, 1 - error) if failures < draws else 1.0
    return lower, upper


def _goodness_of_fit(counts: list[Counts], laws: list[FloatArray]) -> float:
    """Return the p-value of the chi-squared test that all counts follow their laws."""
    statistic, freedom = 0.0, 0
    for drawn, law in zip(counts, laws, strict=True):
        if law.shape != drawn.shape:
            raise ValueError("law must return one probability for each candidate")
        if drawn[law <= 0].any():
            return 0.0
        observed, expected = _merged(drawn, law * drawn.sum())
        statistic += float(((observed - expected) ** 2 / expected).sum())
        freedom += observed.size - 1
    return chi_squared_tail(statistic, freedom) if freedom else 1.0


def _merged(observed: Counts, expected: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return cells that each expect enough draws: rare candidates go together, with the likeliest if need be."""
    rare = expected < EXPECTED
    cells = [(observed[rare].sum(), expected[rare].sum()), *zip(observed[~rare], expected[~rare], strict=True)]
    if len(cells) > 1 and cells[0][1] < EXPECTED:
        cells = [(cells[0][0] + cells[1][0], cells[0][1] + cells[1][1]), *cells[2:]]
    return np.array([cell[0] for cell in cells], dtype=np.float64), np.array([cell[1] for cell in cells])
