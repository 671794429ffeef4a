"""Weights for :class:`~dpselect.TopShare`, from public rows or from picks that are already released."""

import math
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

import dpselect.parameters as check
from dpselect import kernels
from dpselect.extras import from_extra
from dpselect.inputs import read_numbers
from dpselect.kernels.arrays import FloatArray, IndexArray
from dpselect.laws.top_share import share_by_rule
from dpselect.mechanisms import Mechanism, RandomizedResponse, TopShare

LARGE = 30.0
"""A larger ε has the weights of this one: the best candidate is then picked anyway."""

WIDTHS = (0.1, 0.03, 0.01, 0.003, 0.001)
"""How far the error is smoothed, relative to itself: less from stage to stage."""
STEPS, MEMORY, CLOSE = 100, 15, 0.005
"""Steps of the search in each stage, how many of them it remembers, and the relative gap at which to stop."""


@dataclass(frozen=True, kw_only=True)
class FittedShare:
    """Top share with the weights that are best for public rows.

    Attributes:
        mechanism: The mechanism, with the fitted share; without weights, and by rule, if nothing is better.
        weights: The weight of each candidate; they sum to 1. Pass them as ``weights=``.
        expected_error: The mean loss over the public rows.
        gap: No weights and no share have an expected error below ``expected_error − gap`` on these rows.
        randomized_response_error: The mean loss of randomised response at the same ε.
        rule_error: The mean loss of top share without weights, with the share by rule.
    """

    mechanism: TopShare
    weights: FloatArray = field(repr=False)
    expected_error: float
    gap: float
    randomized_response_error: float
    rule_error: float


def fit_top_share(public_scores: ArrayLike, *, epsilon: float, losses: ArrayLike | None = None) -> FittedShare:
    """Return top share with the weights and the share that are best for public rows.

    The expected error is convex in the smallest probabilities $c_a = s π_a$, so the fit comes with a proof of how
    far it is from the best possible. That is for these rows: for others like them, expect more, half as much again
    with a few hundred rows. It needs the extra ``fit`` (SciPy).

    Args:
        public_scores: Rows of scores that you may look at, with the same candidates as the private rows.
        epsilon: The privacy budget of one pick.
        losses: The loss of each pick, in the shape of the scores. It must not grow with the score in a row. By
            default the squared distance from the row's best score.

    Example:
        >>> import numpy as np, dpselect as dps
        >>> public = np.random.default_rng(1).normal(size=(200, 20)) + np.linspace(0, 2, 20)
        >>> fit = dps.advice.fit_top_share(public, epsilon=2.0)
        >>> fit.expected_error < fit.rule_error < fit.randomized_response_error, fit.gap < 0.02 * fit.expected_error
        (True, True)
        >>> pick = fit.mechanism.select(np.linspace(1, 0, 20), weights=fit.weights)
    """
    epsilon = check.positive("epsilon", epsilon)
    scores = read_rows("public_scores", public_scores)
    lost = (scores.max(axis=1, keepdims=True) - scores) ** 2 if losses is None else read_rows("losses", losses)
    if lost.shape != scores.shape:
        raise ValueError(f"losses must have the shape of public_scores, {scores.shape}, got {lost.shape}")
    order = np.argsort(-scores, axis=1, kind="stable")
    rising = np.take_along_axis(lost, order, axis=1)
    ties = np.diff(np.take_along_axis(scores, order, axis=1)) == 0
    if (np.diff(rising) < 0).any() or np.diff(rising)[ties].any():
        raise ValueError("losses must not grow with the score in a row, and must be equal for equal scores")

    size = scores.shape[1]
    floor = float(rising[:, 0].mean())
    least, bound = _minimise(order, rising - rising[:, :1], min(epsilon, LARGE))
    total = least.sum()
    share = (1 / total - 1) / math.expm1(min(epsilon, LARGE))
    mechanism = TopShare(epsilon, share=share if 0 < share < 1 else 1.0)

    def error(candidate: Mechanism, **weights: FloatArray) -> float:
        return float((candidate.pmf(scores, **weights) * lost).sum(axis=1).mean())

    weights = least / total
    errors = {
        "rule_error": error(TopShare(epsilon)),
        "randomized_response_error": error(RandomizedResponse(epsilon)),
    }
    fitted = error(mechanism, weights=weights)
    if fitted > errors["rule_error"]:
        mechanism, weights, fitted = TopShare(epsilon), np.full(size, 1 / size), errors["rule_error"]
    weights.setflags(write=False)
    gap = float(max(0.0, fitted - floor - bound))
    return FittedShare(mechanism=mechanism, weights=weights, expected_error=fitted, gap=gap, **errors)


def weights_from_picks(
    picks: ArrayLike, mechanism: TopShare, *, candidates: int, weights: ArrayLike | None = None
) -> FloatArray:
    """Return weights that sum to 1, from picks that :class:`~dpselect.TopShare` has released.

    Released picks are public, so this costs no budget: people who pick first teach the weights of later ones. Each
    candidate gets the number of its picks, less those that the coin alone explains, plus a half. All are then mixed
    with a tenth of equal weights. Who picks when must not depend on anyone's data, and a person who picks twice
    pays twice.

    Args:
        picks: Positions of the picked candidates.
        mechanism: What picked them.
        candidates: The number of candidates.
        weights: The weights they were picked with; equal ones by default.

    Example:
        >>> import dpselect as dps
        >>> dps.advice.weights_from_picks([1, 1, 1, 1, 2], dps.TopShare(8.0), candidates=3).round(2)
        array([0.1 , 0.66, 0.24])
    """
    if not isinstance(mechanism, TopShare):
        raise ValueError(f"mechanism must be a TopShare, got {type(mechanism).__name__}")
    size = check.count("candidates", candidates)
    positions = np.asarray(picks)
    if positions.size and not (positions.dtype.kind in "iu" and positions.min() >= 0 and positions.max() < size):
        raise ValueError(f"picks must be positions: whole numbers from 0 to {size - 1}")
    least = mechanism.pmf(np.zeros(size), **({} if weights is None else {"weights": weights}))
    share = mechanism.share or max(share_by_rule(mechanism.epsilon), 1 / np.count_nonzero(least))
    least /= 1 + share * math.expm1(min(mechanism.epsilon, 700.0))  # with equal scores the pick is by weight
    counts = np.bincount(positions.reshape(-1).astype(np.int64), minlength=size)
    learned = np.maximum(counts - positions.size * least, 0.0) + 0.5
    mixed: FloatArray = 0.9 * learned / learned.sum() + 0.1 / size
    return mixed


def read_rows(name: str, numbers: ArrayLike) -> FloatArray:
    """Return public rows of numbers, which must be finite."""
    rows = read_numbers(name, numbers)
    if rows.ndim != 2 or not rows.size:
        raise ValueError(f"{name} must have rows and candidates, in two axes")
    if not np.isfinite(rows).all():
        raise ValueError(f"{name} must be finite")
    return rows


def _minimise(order: IndexArray, losses: FloatArray, epsilon: float) -> tuple[FloatArray, float]:
    """Return the c of the least mean error, and a lower bound of any.

    c = x² needs no constraints: scaling c into the range of probabilities only lowers the error. For any weights
    of the terms of :func:`~dpselect.kernels.fitting.smooth_error`, constant + Σ c_a slope_a is below the error.
    Where slopes are negative, mix in as much of each row's first term, Σ c_a L_a, as lifts all of them to zero.
    """
    size = losses.shape[1]
    means = np.zeros(size)
    np.add.at(means, order, losses / len(losses))
    share = max(share_by_rule(epsilon), 1 / size)
    start = np.full(size, 1 / (1 + share * math.expm1(epsilon)) / size)
    best, reached, bound = start, math.inf, 0.0

    def evaluate(x: FloatArray, width: float) -> tuple[float, FloatArray]:
        nonlocal best, reached, bound
        slopes = np.zeros(size)
        smooth, error, constant = kernels.fitting.smooth_error(order, losses, x * x, epsilon, width, slopes)
        slopes /= len(losses)
        if error < reached:
            best, reached = x * x, error
        low = slopes < 0
        lifted = (slopes[low] / (slopes[low] - means[low])).max(initial=0.0)
        bound = max(bound, (1 - lifted) * constant)
        return smooth, 2 * x * slopes

    with from_extra("fit"):
        from scipy.optimize import minimize  # noqa: PLC0415 - optional

    evaluate(np.sqrt(start), 1.0)
    for width in WIDTHS:
        if reached - bound <= CLOSE * reached:
            break
        smoothed = partial(evaluate, width=width * reached)
        minimize(smoothed, np.sqrt(best), jac=True, method="L-BFGS-B", options={"maxiter": STEPS, "maxcor": MEMORY})
    return best, bound
