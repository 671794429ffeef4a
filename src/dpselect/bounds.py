"""Utility bounds: what score a pick has with probability at least 1 − β, by formulas alone.

All bounds follow from one fact about noisy max over k levels: :func:`reach`. docs/theory/utility-bounds.md proves
them, and says which published bounds hold and how loose they are. If you have the scores,
:func:`dpselect.error_quantile` gives the exact number.

**Not private**: every function that takes scores reveals them. :func:`reach` takes none. So noisy max's bound on
the error, $2 · reach · max Δ/ε$, is public: you can compute and publish it beforehand.
"""

import math
from typing import Any

import numpy as np

from dpselect import parameters as check
from dpselect.candidates import MOST_CANDIDATES, Batch, Numbers, read_batch
from dpselect.kernels.arrays import LARGEST, FloatArray
from dpselect.laws.combined import CombinedLaw
from dpselect.laws.composition import Composition
from dpselect.mechanisms import Mechanism
from dpselect.parameters import Noise

__all__ = [
    "gem_floors",
    "gem_worse_than_noisy_max",
    "gem_worse_than_uniform",
    "guaranteed_score",
    "published_gem_worse_than_noisy_max",
    "published_gem_worse_than_uniform",
    "reach",
]


def reach(candidates: int, *, beta: float = 0.05, noise: Noise = "exponential") -> float:
    """Return the distance L within which noisy max picks with probability at least 1 − β, in scales of the noise.

    Noisy max over k levels with independent noise of scale 1 picks a level of at least $max − L$ with probability
    at least 1 − β, for all levels:

    - exponential: $L = log((k − 1)/(2β))$
    - Gumbel: $L = log((k − 1)(1 − β)/β)$
    - Laplace: $L$ solves $(k − 1)(2 + L) e^(−L)/4 = β$

    and 0 if that is negative. The worst case is one best level and k − 1 levels that trail it by L. There the L of
    Gumbel noise is exact, and that of exponential noise is too large by less than β (for β ≤ ½). The textbook's
    log(k/β) is larger than both, and too small for Laplace noise.

    Privacy:
        Public numbers only.

    Cost:
        O(1).

    Args:
        candidates: The number of candidates, k.
        beta: The probability that the bound fails.
        noise: ``"exponential"``, ``"laplace"`` or ``"gumbel"``.

    Example:
        >>> import dpselect as dps
        >>> round(dps.bounds.reach(100), 2)  # noisy max's error: at most 2 · max Δ/ε times this
        6.9

    References:
        docs/theory/utility-bounds.md; R. McKenna, D. Sheldon, Permute-and-Flip, 2020, for the worst case.
    """
    size = check.count("candidates", candidates, most=MOST_CANDIDATES)
    return _reach(size, check.inside_unit_interval("beta", beta), check.noise("noise", noise))


def guaranteed_score(
    mechanism: Mechanism, scores: Numbers, sensitivities: Numbers, *, beta: float = 0.05, **public: Numbers
) -> Any:
    """Return a lower bound of the picked score that holds with probability at least 1 − β, one for each row.

    Let L be :func:`reach`, ρ = 2L/ε, $y = q + o − tΔ$, and t the mechanism's.

    For noisy max (with $ρ = L/ε$ if monotone):

    $$max y − ρ max Δ − max_a {o_a − tΔ_a}$$

    For GEM, and for modified GEM with its own t, which is negative (combined GEM: the smaller of both bounds at the
    budget of the pick):

    $$max_j {y_j − ρΔ_j} − max_a {o_a + (ρ − t)Δ_a}$$

    For standardized noisy max, if all Δ > 0:

    $$min_a {c_a + Δ_a (max_j {(q_j − c_j)/Δ_j + 2b_j/ε} − 2b_a/ε − ρ)}$$

    A bound below the lowest score is vacuous. The bound is never below the published one of GEM
    (:func:`gem_floors`).

    Privacy:
        **Not private**: it reveals scores.

    Cost:
        O(k).

    Args:
        mechanism: One of the above, with any tilt and any noise.
        scores: The scores, in any form that ``mechanism.pmf`` accepts.
        sensitivities: The sensitivities.
        beta: The probability that the bound fails. It may differ from the mechanism's own β, which sets t.
        **public: ``offsets=`` or ``anchors=`` for mechanisms that take them.

    Raises:
        ValueError: For other mechanisms, for which no such bound is known.

    Example:
        >>> import dpselect as dps
        >>> scores, sensitivities = [1.0, 0.9, 0.0], [1.0, 0.01, 0.01]
        >>> float(dps.bounds.guaranteed_score(dps.GEM(epsilon=1.0), scores, sensitivities).round(3))
        0.78
        >>> float(dps.error_quantile(dps.GEM(epsilon=1.0), scores, sensitivities, 0.95).round(3))  # exact: 0.9
        0.1

    References:
        docs/theory/utility-bounds.md. S. Raskhodnikova, A. Smith, Efficient Lipschitz extensions, 2015 (GEM).
    """
    chance = check.inside_unit_interval("beta", beta)
    check.require_attributes("mechanism", mechanism, "read", "law")
    batch = mechanism.read(scores, sensitivities, **public)
    batch.check_scores()
    law = mechanism.law(batch.sizes)
    if not isinstance(law, Composition | CombinedLaw):
        raise ValueError(
            f"mechanism must be a noisy max or a GEM, got {type(mechanism).__name__}, for which no bound is known: "
            "use dpselect.error_quantile, which is exact"
        )
    return batch.restore_rows(_guarantee(law, batch, chance))


def gem_floors(
    scores: Numbers, sensitivities: Numbers, *, epsilon: float, tilt: float = 1.0, beta: float = 0.05
) -> Any:
    """Return the published lower bound of the picked score for each candidate a, if GEM picks a.

    $$floor_a = max_j {q_j − Δ_a (ρ − t) − Δ_j (ρ + t)}$$

    with $ρ = 2 log(k/β)/ε$ and $t = tilt · ρ$.

    With probability at least 1 − β the picked score is at least its own floor. GEM proper (tilt = 1) has one floor
    for all candidates, $max_j {q_j − 4Δ_j log(k/β)/ε}$. The floor of modified GEM is $q_* − 4Δ_a log(k/β)/ε$, so
    the sensitivity of the picked candidate bounds its error. The bound holds for exponential and Gumbel noise,
    where it is loose, and fails for Laplace noise: see :func:`reach`.

    Privacy:
        **Not private**: it reveals scores.

    Cost:
        O(k).

    Args:
        scores: An array (last axis candidates), ragged rows ``(values, offsets)``, or an Arrow list array.
        sensitivities: The sensitivities, which broadcast against scores.
        epsilon: GEM's budget.
        tilt: GEM's tilt.
        beta: The probability that the bound fails, which is also GEM's β.

    Example:
        >>> import dpselect as dps
        >>> dps.bounds.gem_floors([1.0, 0.9, 0.0], [1.0, 0.01, 0.01], epsilon=1.0).round(3)
        array([0.736, 0.736, 0.736])

    References:
        S. Raskhodnikova, A. Smith, Efficient Lipschitz extensions, 2015.
        D. Antonova et al., Private selection with heterogeneous sensitivities, 2025 (any t).
    """
    slope = check.real("tilt", tilt)
    batch = read_batch(scores, sensitivities)
    rho = _rho(batch, epsilon, beta)
    q, deltas = batch.spread(batch.table.scores), batch.spread(batch.table.sensitivities)
    t = slope * rho
    best = batch.largest(q - deltas * np.repeat(rho + t, batch.sizes))
    return batch.restore_candidates(np.repeat(best, batch.sizes) - deltas * np.repeat(rho - t, batch.sizes))


def gem_worse_than_noisy_max(scores: Numbers, sensitivities: Numbers, *, epsilon: float, beta: float = 0.05) -> Any:
    """Return whether GEM's published bound is below that of noisy max, one for each row.

    $$max_j {q_j − 4Δ_j λ} < q_* − 2λ max Δ$$

    with $λ = log(k/β)/ε$, that is, $Δ_j > max Δ/2 − (q_* − q_j)/(4λ)$ for *every* j. The published condition looks
    at the best candidate only (:func:`published_gem_worse_than_noisy_max`). It is necessary but not sufficient.

    Privacy:
        **Not private**: it reveals information about scores.

    Cost:
        O(k).

    Args:
        scores: An array (last axis candidates), ragged rows ``(values, offsets)``, or an Arrow list array.
        sensitivities: The sensitivities, which broadcast against scores.
        epsilon: The privacy budget of one pick.
        beta: The probability that the bounds fail.

    Example:
        >>> import dpselect as dps
        >>> bool(dps.bounds.gem_worse_than_noisy_max([1.0, 0.9], [1.0, 0.01], epsilon=1.0))  # because of the second
        False
        >>> bool(dps.bounds.published_gem_worse_than_noisy_max([1.0, 0.9], [1.0, 0.01]))
        True

    References:
        D. Antonova et al., Private selection with heterogeneous sensitivities, 2025, appendix; corrected in
        docs/theory/utility-bounds.md.
    """
    batch = read_batch(scores, sensitivities)
    rho = _rho(batch, epsilon, beta)
    q, deltas = batch.spread(batch.table.scores), batch.spread(batch.table.sensitivities)
    shortfalls = np.repeat(batch.largest(q), batch.sizes) - q
    least_loss = -batch.largest(-(shortfalls + 2 * deltas * np.repeat(rho, batch.sizes)))
    return batch.restore_rows(least_loss > rho * batch.largest(deltas))


def gem_worse_than_uniform(scores: Numbers, sensitivities: Numbers, *, epsilon: float, beta: float = 0.05) -> Any:
    """Return whether GEM's published bound is vacuous, that is, below the lowest score, one for each row.

    $$max_j {q_j − 4Δ_j λ} < q_−$$

    with $λ = log(k/β)/ε$, that is, $Δ_j > (q_j − q_−)/(4λ)$ for *every* j. The published condition looks at the
    best candidate only (:func:`published_gem_worse_than_uniform`). It is necessary but not sufficient.

    Privacy:
        **Not private**: it reveals information about scores.

    Cost:
        O(k).

    Args:
        scores: An array (last axis candidates), ragged rows ``(values, offsets)``, or an Arrow list array.
        sensitivities: The sensitivities, which broadcast against scores.
        epsilon: The privacy budget of one pick.
        beta: The probability that the bound fails.

    Example:
        >>> import dpselect as dps
        >>> bool(dps.bounds.gem_worse_than_uniform([1.0, 0.9, 0.0], [1.0, 0.01, 1.0], epsilon=1.0))
        False
        >>> bool(dps.bounds.published_gem_worse_than_uniform([1.0, 0.9, 0.0], [1.0, 0.01, 1.0], epsilon=1.0))
        True

    References:
        D. Antonova et al., Private selection with heterogeneous sensitivities, 2025, appendix; corrected in
        docs/theory/utility-bounds.md.
    """
    batch = read_batch(scores, sensitivities)
    rho = _rho(batch, epsilon, beta)
    q, deltas = batch.spread(batch.table.scores), batch.spread(batch.table.sensitivities)
    lowest = -batch.largest(-q)
    rises = q - np.repeat(lowest, batch.sizes)
    return batch.restore_rows(batch.largest(rises - 2 * deltas * np.repeat(rho, batch.sizes)) < 0)


def published_gem_worse_than_noisy_max(scores: Numbers, sensitivities: Numbers) -> Any:
    """Return for each row whether the best candidate's sensitivity exceeds half of the largest, $Δ_* > max Δ/2$.

    The paper states this as the condition for GEM's bound to be worse than that of noisy max. It is necessary but
    not sufficient: see :func:`gem_worse_than_noisy_max`. If several candidates are best, $Δ_*$ is their smallest
    sensitivity.

    Privacy:
        **Not private**: it reveals information about which candidate is best.

    Cost:
        O(k).

    Args:
        scores: An array (last axis candidates), ragged rows ``(values, offsets)``, or an Arrow list array.
        sensitivities: The sensitivities, which broadcast against scores.

    Example:
        >>> import dpselect as dps
        >>> dps.bounds.published_gem_worse_than_noisy_max([[1.0, 0.0], [0.0, 1.0]], [0.2, 1.0])
        array([False,  True])

    References:
        D. Antonova et al., Private selection with heterogeneous sensitivities, 2025, appendix.
    """
    batch = read_batch(scores, sensitivities)
    largest = batch.largest(batch.spread(batch.table.sensitivities))
    return batch.restore_rows(2 * _sensitivity_of_best(batch) > largest)


def published_gem_worse_than_uniform(
    scores: Numbers, sensitivities: Numbers, *, epsilon: float, beta: float = 0.05
) -> Any:
    """Return whether $Δ_* > (q_* − q_−) ε/(4 log(k/β))$, where $q_−$ is the lowest score, one for each row.

    The paper states this as the condition for GEM's bound to be worse than the worst random pick. It is necessary
    but not sufficient: see :func:`gem_worse_than_uniform`. If several candidates are best, $Δ_*$ is their smallest
    sensitivity.

    Privacy:
        **Not private**: it reveals information about scores.

    Cost:
        O(k).

    Args:
        scores: An array (last axis candidates), ragged rows ``(values, offsets)``, or an Arrow list array.
        sensitivities: The sensitivities, which broadcast against scores.
        epsilon: The privacy budget of one pick.
        beta: The probability that the bound fails.

    Example:
        >>> import dpselect as dps
        >>> bool(dps.bounds.published_gem_worse_than_uniform([1.0, 0.0], [0.01, 1.0], epsilon=1.0))
        False

    References:
        D. Antonova et al., Private selection with heterogeneous sensitivities, 2025, appendix.
    """
    batch = read_batch(scores, sensitivities)
    rho = _rho(batch, epsilon, beta)
    q = batch.spread(batch.table.scores)
    return batch.restore_rows(2 * rho * _sensitivity_of_best(batch) > batch.largest(q) + batch.largest(-q))


# --- Formulas ---------------------------------------------------------------------------------------------


def _reach(size: int, beta: float, noise: Noise) -> float:
    rivals = size - 1
    if noise == "exponential":
        return math.log(max(1.0, rivals / (2 * beta)))
    if noise == "gumbel":
        return math.log(max(1.0, rivals * (1 - beta) / beta))
    if noise != "laplace":
        raise ValueError(f"noise must be 'exponential', 'laplace' or 'gumbel': no bound is known for {noise!r}")
    distance = 0.0
    for _ in range(STEPS):  # L = log((k − 1)(2 + L)/(4β)): each step at least halves the error
        distance = math.log(max(1.0, rivals * (2 + distance) / (4 * beta)))
    return distance


STEPS = 64


def _reaches(batch: Batch, beta: float, noise: Noise) -> FloatArray:
    sizes, places = np.unique(batch.sizes, return_inverse=True)
    return np.array([_reach(size, beta, noise) for size in sizes.tolist()], dtype=np.float64)[places]


def _rho(batch: Batch, epsilon: float, beta: float) -> FloatArray:
    """Return the published ρ = 2 log(k/β)/ε of each row."""
    budget = check.positive("epsilon", epsilon)
    return 2 * np.log(batch.sizes / check.inside_unit_interval("beta", beta)) / budget


def _sensitivity_of_best(batch: Batch) -> FloatArray:
    """Return Δ_* of each row: the smallest sensitivity of the best candidates."""
    q, deltas = batch.spread(batch.table.scores), batch.spread(batch.table.sensitivities)
    best = q == np.repeat(batch.largest(q), batch.sizes)
    return -batch.largest(np.where(best, -deltas, -np.inf))


def _guarantee(law: Composition | CombinedLaw, batch: Batch, beta: float) -> FloatArray:
    """Return the bound of each row, by the law's normalisation."""
    if isinstance(law, CombinedLaw):
        return np.minimum(*(_guarantee(law.gem(tilt), batch, beta) for tilt in (-1.0, 1.0)))
    return BOUNDS[law.kind](law, batch, _reaches(batch, beta, law.noise) / law.budget)


def _global_bound(law: Composition, batch: Batch, reach: FloatArray) -> FloatArray:
    q, deltas, offsets = _columns(batch)
    free = offsets - np.repeat(law.tilts, batch.sizes) * deltas
    return batch.largest(q + free) - reach * batch.largest(deltas) - batch.largest(free)


def _pairwise_bound(law: Composition, batch: Batch, reach: FloatArray) -> FloatArray:
    q, deltas, offsets = _columns(batch)
    t, rho = np.repeat(law.tilts, batch.sizes), np.repeat(reach, batch.sizes)
    return batch.largest(q + offsets - (rho + t) * deltas) - batch.largest(offsets + (rho - t) * deltas)


def _individual_bound(law: Composition, batch: Batch, reach: FloatArray) -> FloatArray:
    q, deltas, anchors = _columns(batch)
    if not (deltas > 0).all():
        raise ValueError("sensitivities must be positive for the bound of standardized noisy max")
    sizes = batch.sizes
    widest = np.repeat(batch.largest(deltas), sizes)
    farthest = np.maximum(np.repeat(batch.largest(np.abs(anchors)), sizes), 1 / LARGEST)
    tilt, weight = np.repeat(law.tilts, sizes), np.repeat(law.anchor_weights, sizes)
    free = (weight * anchors / farthest - tilt * deltas / widest) / law.budget
    level = batch.largest((q - anchors) / deltas + free) - reach
    return -batch.largest(-(anchors + deltas * (np.repeat(level, sizes) - free)))


BOUNDS = {"global": _global_bound, "pairwise": _pairwise_bound, "individual": _individual_bound}


def _columns(batch: Batch) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return scores, sensitivities and public numbers, flat."""
    scores, sensitivities, public, _ = batch.table
    return batch.spread(scores), batch.spread(sensitivities), batch.spread(public)
