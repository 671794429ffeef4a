"""The pmf of random stopping, Laplace or exponential noise, in a few hundred evaluations of each candidate's noise.

    Pr[a] = (1/k) ∫ f_a(x) h(S(x)) dx,   h(S) = φ'(1 − S) = E[K] · (1 + S(1−γ)/γ)^−(1+η),   S = (1/k) Σ (1 − F_b)

:mod:`dpselect.kernels.pmf.noisy_argmax` has the definitions, and handles candidates without noise. It cuts the line
at every score, which is O(k²) work. Here a panel may hold any number of scores: docs/theory/random-stopping.md.

The width of a panel is chosen so that 16 nodes suffice: the Bernstein ellipse of parameter 3.2 holds no
singularity, and 3.2^−32 is below 1e-16. Near a candidate's score a panel is at most FINE scales wide, since |Im z|
< π/2 keeps the real part of its term in S positive. A panel may be wider where that term is too small to matter:
left of the score as soon as ½ exp(z) stays below 1 on the ellipse (width −0.7 z), and right of it from where (1+η)
S(1−γ)/γ is below 1 (width 2(z − height)). But 16 nodes must still integrate exp(z) itself. For a width w they err
by about 2e-17 (w/14)^33, relative to the largest value on the panel, exp(−|z|): hence 14 + 0.4 z to the right, and
10 − 0.3 z to the left.

Exponential noise is the simpler case: 1 − F_b is exp(−z) right of its score and 1 left of it, where the density is
0. Left of its score a candidate shapes nothing, so a panel may be wide. But a panel must end at a score that is
more than FINE scales away: continued that far to the left, exp(−z) would be too large to be exchanged.

A panel that holds scores is narrower. Its branches are interpolated by polynomials of degree 15. Elsewhere they
are only integrated, and for that 16 nodes are as good as degree 31.
"""

import math

import numpy as np

from dpselect.kernels.arrays import FloatArray
from dpselect.kernels.compilation import compiled, in_numpy
from dpselect.kernels.pmf.stopping_panels import (
    ONE_SIDED,
    REACH,
    TWO_SIDED,
    Panel,
    Row,
    Stopping,
    all_over,
    integrate_panel,
    is_over,
    new_scratch,
    new_stopping,
)

FINE = 2.0
WIDEST = 32.0
"""The largest width of a panel, in scales."""
CANCELLING = 64.0
"""The largest distance, in scales, that is formed as a difference of two larger numbers; costs 6 of 53 bits."""


@compiled
def widest_panel(law: Stopping, row: Row, base: float, delta: float, flat: float) -> tuple[float, float, float]:
    """Return the largest width of a panel from base + delta, the smallest active scale, and the next landing.

    The landing is where further noise starts, relative to ``base``. It is infinite if none starts. Panels end
    at a landing of one-sided noise.
    """
    width, finest, landing = math.inf, math.inf, math.inf
    for a in range(row.scores.size):
        scale, start = row.scales[a], base - row.scores[a]
        z = (start + delta) / scale
        if is_over(law, z, (start + flat) / scale):
            continue
        if z >= 0.0:
            room = min(2.0 * (z - law.height), 14.0 + 0.4 * z, WIDEST)
        elif law.peak == ONE_SIDED:
            if z <= -FINE:
                landing = min(landing, -start)
                continue
            room = FINE
        else:
            room = max(min(-0.7 * z, 10.0 - 0.3 * z, WIDEST), -z - REACH - 1.0)
        width = min(width, max(room, FINE) * scale)
        if z < -REACH - 1.0:
            landing = min(landing, -start - REACH * scale)
        else:
            finest = min(finest, scale)
    return width, finest, landing


@compiled
def widest_polynomial(law: Stopping, row: Row, base: float, delta: float, flat: float) -> float:
    """Return the largest width of a panel from base + delta on which every branch is a polynomial of degree 15.

    Interpolation at 16 Gauss–Legendre nodes on w scales has an error of 2^−15 (w/2)^16/16! times the largest value
    of exp(z) on the panel. That value is exp(−|z|) at the end nearer to the score, so the error is 1e-16 if w ≤
    2.6 exp(|z|/16).
    """
    width = math.inf
    for a in range(row.scores.size):
        scale, start = row.scales[a], base - row.scores[a]
        z = (start + delta) / scale
        if is_over(law, z, (start + flat) / scale) or z < -REACH - WIDEST:
            continue
        if law.peak == ONE_SIDED and z <= -FINE:
            continue
        room = 2.6 * math.exp(abs(z) / 16.0)
        if z < 0.0 and law.peak == ONE_SIDED:
            room = FINE  # continued to the left, the branch is as large as exp(FINE)
        elif z < 0.0:
            room /= 1.0 + room / 16.0  # the nearer end is the right one, closer by w: w ≤ 2.6 exp((|z| − w)/16)
        width = min(width, max(room, FINE) * scale)
    return width


@in_numpy(widest_panel)
def _widest_panel(law: Stopping, row: Row, base: float, delta: float, flat: float) -> tuple[float, float, float]:
    starts = base - row.scores
    z = (starts + delta) / row.scales
    here = ~all_over(law, z, (starts + flat) / row.scales)
    scales, starts, z = row.scales[here], starts[here], z[here]
    right = np.minimum(np.minimum(2.0 * (z - law.height), 14.0 + 0.4 * z), WIDEST)
    if law.peak == ONE_SIDED:
        waiting, landings, left = z <= -FINE, -starts, np.where(z <= -FINE, math.inf, FINE)
    else:
        waiting, landings = z < -REACH - 1.0, -starts - REACH * scales
        left = np.maximum(np.minimum(np.minimum(-0.7 * z, 10.0 - 0.3 * z), WIDEST), -z - REACH - 1.0)
    width = (np.maximum(np.where(z >= 0.0, right, left), FINE) * scales).min(initial=math.inf)
    return width, scales[~waiting].min(initial=math.inf), landings[waiting].min(initial=math.inf)


@in_numpy(widest_polynomial)
def _widest_polynomial(law: Stopping, row: Row, base: float, delta: float, flat: float) -> float:
    z = ((base - row.scores) + delta) / row.scales
    farthest = -FINE if law.peak == ONE_SIDED else -REACH - WIDEST
    here = ~all_over(law, z, ((base - row.scores) + flat) / row.scales)
    here &= z > farthest if law.peak == ONE_SIDED else z >= farthest
    z, scales = z[here], row.scales[here]
    room = 2.6 * np.exp(np.abs(z) / 16.0)
    room = np.where(z < 0.0, FINE if law.peak == ONE_SIDED else room / (1.0 + room / 16.0), room)
    width: float = (np.maximum(room, FINE) * scales).min(initial=math.inf)
    return width


@compiled
def crowding(row: Row, upcoming: int, gap: float) -> float:
    """Return the smallest scale of the next score and of those that follow it within the distance ``gap``."""
    smallest = math.inf
    first = row.scores[row.rising[upcoming]]
    for a in row.rising[upcoming:]:
        if row.scores[a] - first > gap:
            break
        smallest = min(smallest, row.scales[a])
    return smallest


@compiled
def starting_place(law: Stopping, row: Row) -> tuple[float, float]:
    """Return where the first panel starts and where h becomes flat, relative to the lowest score."""
    base, delta, flat = row.scores[row.rising[0]], 0.0, 0.0
    for a in range(row.scores.size):
        if law.peak == TWO_SIDED:
            delta = min(delta, (row.scores[a] - base) - REACH * row.scales[a])
        flat = max(flat, (row.scores[a] - base) + law.height * row.scales[a])
    return delta, flat


@compiled
def fill_stopping_pmf(
    peak: float, scores: FloatArray, scales: FloatArray, gamma: float, eta: float, mean: float, pmf: FloatArray
) -> None:
    """Fill in the probabilities of random stopping; all scales are positive, and the peak is TWO_ or ONE_SIDED.

    The panels go from left to right. The position is kept as ``base + delta`` with ``base`` the nearest score, so
    distances are accurate whatever the scores' magnitude.
    """
    k, law, rising = scores.size, new_stopping(peak, gamma, eta, mean), np.argsort(scores)
    row, scratch = Row(scores, scales, rising), new_scratch(k)
    delta, flat = starting_place(law, row)
    base, passed = scores[rising[0]], 0
    pmf[:] = 0.0
    while True:
        end = math.inf
        if 0 < passed < k and base == scores[rising[passed - 1]]:
            gap = scores[rising[passed]] - base
            if delta >= 0.5 * gap:
                base, delta, flat = scores[rising[passed]], delta - gap, flat - gap
            elif gap > CANCELLING * crowding(row, passed, gap):
                end = 0.5 * gap
        width, finest, landing = widest_panel(law, row, base, delta, flat)
        if finest == math.inf:
            if landing == math.inf:
                break
            delta = min(landing, end)
            continue
        end = min(end, delta + width)
        if peak == ONE_SIDED:
            end = min(end, landing)
        if passed < k:
            # Polynomials of degree 15 must suffice here. If they do not reach the next score, the panel ends there.
            near = scores[rising[passed]] - base
            end = min(end, max(near, delta + widest_polynomial(law, row, base, delta, flat)))
        after = passed
        while after < k and scores[rising[after]] - base < end:
            after += 1
        panel = Panel(base, 0.5 * (end + delta), 0.5 * (end - delta), finest, flat, passed, after)
        integrate_panel(law, row, panel, scratch, pmf)
        delta = end
        if peak == ONE_SIDED and end == landing:
            # The next score is here. Its own position is the exact one: a gap of one rounding would lose a part of
            # its density, which starts at its full height.
            shift = scores[rising[after]] - base
            passed, base, delta, flat = after, scores[rising[after]], 0.0, flat - shift
        elif after > passed:
            passed = after
            shift = scores[rising[passed - 1]] - base
            base, delta, flat = scores[rising[passed - 1]], delta - shift, flat - shift
    for a in range(k):
        pmf[a] = max(pmf[a], 0.0)  # a difference of branches may round to below zero
