"""Audits of samplers by their draws: whether they follow the claimed law, and a lower bound on their ε."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

import dpselect.parameters as check
from dpselect.auditing.losses import FloatArray
from dpselect.candidates import read_neighbours
from dpselect.extras import from_extra
from dpselect.progress import tracked

Counts: TypeAlias = NDArray[np.int64]

DRAWS_AT_ONCE = 1 << 22
"""The largest number of scores in one call of ``select``."""

EXPECTED = 5.0
"""Each cell of the chi-squared test expects at least this number of draws; smaller cells are merged."""


class Sampler(Protocol):
    """Anything that picks: a mechanism of this library, or a few lines around another library."""

    def select(self, scores: Any, sensitivities: Any, /) -> Any:
        """Return the index of a pick for each row of a batch."""
        ...


@dataclass(frozen=True, kw_only=True)
class SamplerAudit:
    """The result of an audit of a sampler on one pair of neighbours."""

    draws: int
    """The number of draws from each of the two sets of scores."""
    confidence: float
    """The confidence of the lower bound."""
    epsilon: float
    """A lower bound on the sampler's ε at that confidence. Above a claimed ε, the draws refute the claim."""
    event: tuple[int, ...]
    """The set of candidates behind the bound."""
    p_value: float | None
    """The p-value of the claimed law; ``None`` if no law is claimed."""


def audit_sampler(
    sampler: Sampler,
    scores: ArrayLike,
    neighbour: ArrayLike,
    sensitivities: ArrayLike,
    *,
    draws: int = 100_000,
    confidence: float = 0.99,
    law: Callable[[FloatArray, FloatArray], ArrayLike] | None = None,
    progress: bool | None = None,
) -> SamplerAudit:
    """Test the draws of a sampler on one pair of neighbours.

    *A lower bound on ε.* Half of the draws choose an event E and a direction. The other half bound its probability
    from below on one side and from above on the other (Clopper and Pearson, each at half of the allowed error).
    Then log(lower/upper) is below the true privacy loss with the stated confidence. This needs no law.

    *Goodness of fit*, if a law is claimed: the chi-squared test on the draws of both sides.

    A good pair is the witness that :func:`audit` finds for the mechanism that the sampler claims to be.

    Args:
        sampler: Any object with ``select(scores, sensitivities)`` that takes a batch of rows.
        scores: One set of scores.
        neighbour: Another set of scores, within the sensitivities.
        sensitivities: The sensitivities.
        draws: The number of draws from each side.
        confidence: The confidence of the lower bound, between 0 and 1.
        law: The claimed law, ``law(scores, sensitivities)``; the sampler's own ``pmf``, if it has one, by default.
        progress: Whether to show a progress bar; ``None`` shows it on a terminal only.

    Cost:
        2 · draws picks. It needs the extra ``audit`` (SciPy).

    Example:
        >>> import dpselect as dps
        >>> private, naive = dps.NoisyMax(epsilon=1.0), dps.unsafe.NaiveHeterogeneousNoisyMax(epsilon=1.0)
        >>> scores, neighbour, sensitivities = [0.0, 0.5], [0.0, -0.5], [0.0, 1.0]
        >>> dps.auditing.audit_sampler(private, scores, neighbour, sensitivities, confidence=1 - 1e-9).epsilon > 1
        False
        >>> dps.auditing.audit_sampler(naive, scores, neighbour, sensitivities, confidence=1 - 1e-9).epsilon > 1
        True

    References:
        Z. Ding et al., Detecting violations of differential privacy, 2018.
        C. J. Clopper, E. S. Pearson, The use of confidence or fiducial limits illustrated in the case of the
        binomial, 1934.
    """
    if not hasattr(sampler, "select"):
        raise ValueError(f"sampler must have a method select, got {type(sampler).__name__}")
    here, there, bounds = read_neighbours(scores, neighbour, sensitivities)
    if here.ndim != 1:
        raise ValueError("scores must be one set of candidates, not a batch: pass one row")
    level = check.inside_unit_interval("confidence", confidence)
    half = check.count("draws", draws, least=2) // 2
    claimed = getattr(sampler, "pmf", None) if law is None else law
    rest = draws - half
    parts = [(here, half), (there, half), (here, rest), (there, rest)]
    exploring_here, exploring_there, here_counts, there_counts = (
        _draw(sampler, side, bounds, number)
        for side, number in tracked(parts, total=len(parts), label="draws", shown=progress)
    )
    event, forward = _most_telling(exploring_here, exploring_there)
    more, less = (here_counts, there_counts) if forward else (there_counts, here_counts)
    p_value = None
    if claimed is not None:
        laws = [np.asarray(claimed(side, bounds), dtype=np.float64) for side in (here, there)]
        p_value = _goodness_of_fit([exploring_here + here_counts, exploring_there + there_counts], laws)
    return SamplerAudit(
        draws=draws,
        confidence=level,
        epsilon=_epsilon_shown(int(more[event].sum()), int(less[event].sum()), rest, (1 - level) / 2),
        event=tuple(event.tolist()),
        p_value=p_value,
    )


def _draw(sampler: Sampler, scores: FloatArray, sensitivities: FloatArray, draws: int) -> Counts:
    """Return how often each candidate was picked."""
    counts = np.zeros(scores.size, dtype=np.int64)
    block = max(1, DRAWS_AT_ONCE // scores.size)
    for first in range(0, draws, block):
        rows = min(block, draws - first)
        picks = np.asarray(sampler.select(np.broadcast_to(scores, (rows, scores.size)), sensitivities))
        indices = picks.shape == (rows,) and picks.dtype.kind in "iu"
        if not (indices and picks.min() >= 0 and picks.max() < scores.size):
            raise ValueError("sampler must return the index of a candidate for each row of a batch")
        counts += np.bincount(picks, minlength=scores.size)
    return counts


def _most_telling(here: Counts, there: Counts) -> tuple[NDArray[np.intp], bool]:
    """Return the event with the largest expected lower bound, and whether it is likelier here.

    The best event for any loss is the set of all candidates whose ratio of probabilities is above a threshold. So
    the sets to try are the first few candidates in the order of that ratio. A margin of three standard deviations
    keeps rare candidates from looking better than the draws can show.
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


def _epsilon_shown(more: int, less: int, draws: int, error: float) -> float:
    """Return log(lower/upper) of Clopper and Pearson's bounds of two shares; 0 if that is negative."""
    with from_extra("audit"):
        from scipy.special import betaincinv  # noqa: PLC0415 - optional

    lower = float(betaincinv(more, draws - more + 1, error)) if more else 0.0
    upper = 1 - float(betaincinv(draws - less, less + 1, error)) if less < draws else 1.0
    return max(0.0, math.log(lower / upper)) if lower > 0 else 0.0


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
    with from_extra("audit"):
        from scipy.special import chdtrc  # noqa: PLC0415 - optional

    return float(chdtrc(freedom, statistic)) if freedom else 1.0


def _merged(observed: Counts, expected: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return cells that each expect enough draws: rare candidates share one, if needed with another candidate."""
    rare = expected < EXPECTED
    cells = [(observed[rare].sum(), expected[rare].sum()), *zip(observed[~rare], expected[~rare], strict=True)]
    if len(cells) > 1 and cells[0][1] < EXPECTED:
        cells = [(cells[0][0] + cells[1][0], cells[0][1] + cells[1][1]), *cells[2:]]
    return np.array([cell[0] for cell in cells], dtype=np.float64), np.array([cell[1] for cell in cells])
