"""The private choice of a mechanism for a fleet of users, its law and its guarantee."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpselect import parameters as check
from dpselect.evaluation import mean_errors
from dpselect.guarantees import ONE_USER_CHANGED, SAME_USERS, Guarantee, remainder
from dpselect.inputs import Numbers, read_numbers
from dpselect.kernels.arrays import FloatArray, IndexArray
from dpselect.kernels.compilation import compiled_at_once
from dpselect.mechanisms import Mechanism, NoisyMax
from dpselect.parallel import cut_rows
from dpselect.pools import read_pool
from dpselect.randomness import Randomness
from dpselect.tuning.fleets import BLOCK, read_fleet

UNIT = 2**24
"""Errors are whole numbers in units of cap/UNIT, so their sums and the sensitivity of the sums are exact."""

FACTOR = 4.0
"""The ratio of consecutive caps, if several are tried."""

CAP_SHARE = 0.5
"""The share of the tuning budget that finds the cap, if several are tried. The rest chooses the mechanism."""

TARGET = 0.25
"""The mean error of the best mechanism as a share of the cap to look for, if several caps are tried. A small cap
makes small differences visible above the noise. A quarter keeps errors up to four times the mean."""

ONE_USER_MOVED = f"{SAME_USERS}, by at most Δ_a for every candidate a"


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """The mechanism chosen for a fleet, and the cost of everything. All fields are public.

    Privacy:
        Both guarantees are for one user's scores *replaced*; the number of users is public. If you must also hide
        whether someone is a user, publish ``mechanism`` and ``cap`` alone, not ``users``, ``str(tuned)`` or a list
        of all picks. The choice is also ``tuning.epsilon``-DP for one user added or removed, but these are not.

    Attributes:
        mechanism: The mechanism for every user's pick.
        cap: The cap on errors: the given one, or the one found in the given range.
        users: The number of users behind the choice.
        tuning: The guarantee of the choice alone, which holds whatever you do with it.
        guarantee: The guarantee of the whole: the choice, and one pick for each user.
    """

    mechanism: Mechanism
    cap: float
    users: int
    tuning: Guarantee
    guarantee: Guarantee

    def __str__(self) -> str:
        return (
            f"{self.mechanism.label} at ε = {self.mechanism.guarantee.epsilon:g}, chosen for {self.users} "
            f"users at ε = {self.tuning.epsilon:g}; with one pick each, ε = {self.guarantee.epsilon:g}"
        )


def tune(
    scores: Numbers,
    sensitivities: Numbers,
    epsilon: float,
    tuning_epsilon: float,
    *,
    cap: float | tuple[float, float],
    pool: Sequence[Mechanism] | None = None,
    power: float = 2,
    randomness: Randomness | None = None,
) -> Tuned:
    r"""Choose the mechanism of a pool with the smallest error for a fleet of users, privately.

    Noisy max at ``tuning_epsilon`` maximises $−Σ_u min(1, E_u[m]/cap)$ over the mechanisms m of the pool, where
    $E_u[m]$ is the exact expected error ``|best score − picked score| ** power`` of user u's pick by m.

    The noise in the mean error of the fleet is of the order of 2 cap log(pool size)/(tuning_epsilon · users), so a
    cap that is too large hides differences. If you give a range ``(lowest, highest)``, half of the budget finds the
    cap: noisy max picks that of highest, highest/4, highest/16, … at which the mean error of the best mechanism is
    closest to a quarter of the cap.

    Privacy:
        The choice is ``tuning_epsilon``-DP for *users*: it protects against any change of one user's scores, not
        only against changes within the sensitivities. The whole, that is, the choice and one pick for each user, is
        (tuning_epsilon + epsilon)-DP for fleets that differ in one user's scores, by at most ``sensitivities[a]``
        for each candidate a. Neither hides the number of users (see :class:`Tuned`). Both assume that

        - a row of scores depends only on its own user's data and on public information, one row for each user
          (a user with m rows counts m times: m · tuning_epsilon);
        - the pool, the cap, the budgets, sensitivities and the number of users are public: chosen without
          looking at these scores.

        **Every rerun is another release and costs tuning_epsilon again.** Only a rerun with the same key, scores
        and arguments gives the same choice and is free: draw ``key = secrets.token_bytes(32)`` once, keep it
        secret, and pass ``randomness=Randomness.keyed(key, "tuning")``.

        The law of the choice is exact: sums of errors are whole numbers, and :class:`~dpselect.NoisyMax` picks.

    Cost:
        One ``pmf`` for each user and member of the pool: about a minute for 10,000 users, 100 candidates and the
        default pool on two processors, and once the time to compile. Memory does not grow with the number of users.

    Args:
        scores: A row for each user: an array of two axes, ragged ``(values, offsets)``, or an Arrow list array.
        sensitivities: The sensitivities, shared or a row for each user.
        epsilon: The privacy budget of a pick, which no member of the pool may exceed.
        tuning_epsilon: The privacy budget of the choice.
        cap: A public bound on a user's error, or a range of bounds to search. Larger errors count as the cap.
            ``(highest possible score − lowest possible score) ** power`` cuts off nothing.
        pool: The mechanisms, each private for all scores within the sensitivities;
            :func:`~dpselect.pools.default_pool` if absent.
        power: 2 for the squared error, 1 for the regret.
        randomness: The randomness of the choice; a fresh secret key if absent.

    Example:
        >>> import numpy as np, dpselect as dps
        >>> sensitivities = np.linspace(0.1, 1.0, 20)
        >>> rng = np.random.default_rng(0)
        >>> scores = np.clip(sensitivities + 0.1 * rng.normal(size=(500, 20)), 0, 1)  # positive correlation
        >>> seed = dps.Randomness.seeded(1)
        >>> tuned = dps.tuning.tune(scores, sensitivities, 1.0, 0.5, cap=1.0, randomness=seed)
        >>> tuned.mechanism.tilt < 0, tuned.guarantee.epsilon
        (True, 1.5)
        >>> picks = tuned.mechanism.select(scores, sensitivities)

    References:
        docs/theory/tuning.md; K. Chaudhuri, S. Vinterbo, A stability-based validation procedure for differentially
        private machine learning, 2013 (one private choice among private mechanisms).
    """
    fleet = read_fleet(scores, sensitivities)
    budget, tuning_budget = check.positive("epsilon", epsilon), check.positive("tuning_epsilon", tuning_epsilon)
    caps = _caps(cap)
    exponent = check.positive("power", power)
    members = read_pool(pool, budget)
    source = Randomness.given(randomness).serving("tune")
    source.units(1)
    sums = np.zeros((len(caps), len(members)), dtype=np.int64)
    # In compiled code a user's error depends on that user's row alone, to the last bit: not on other rows, their
    # number or the threads. So rounding does not change the sensitivity of the sums.
    with compiled_at_once():
        for block in cut_rows(fleet.table.bounds, BLOCK):
            part = fleet.rows_between(*block)
            for number, member in enumerate(members):
                sums[:, number] += _whole_errors(mean_errors(member, part, exponent), caps).sum(axis=-1)
    size, chosen = _choose(sums, fleet.rows, tuning_budget, source)
    return Tuned(
        mechanism=members[chosen],
        cap=float(caps[size]),
        users=fleet.rows,
        tuning=choice_guarantee(tuning_budget),
        guarantee=_whole_guarantee(tuning_budget, members),
    )


def choice_pmf(
    errors: FloatArray, tuning_epsilon: float, *, cap: float | tuple[float, float], copies: int = 1
) -> FloatArray:
    """Return the exact probability that :func:`tune` chooses each mechanism, given the errors of all users.

    **Not private**: probabilities reveal errors, which reveal scores. Use it on public or synthetic fleets.

    Args:
        errors: A row for each mechanism, a column for each user, as from :func:`fleet_errors`.
        tuning_epsilon: The privacy budget of the choice.
        cap: As for :func:`tune`.
        copies: The number of users with the same scores that each column stands for.

    Example:
        >>> import numpy as np, dpselect as dps
        >>> errors = np.array([[0.2] * 50, [0.3] * 50])
        >>> dps.tuning.choice_pmf(errors, 1.0, cap=1.0).round(3)  # the second: exp(−50 · 0.1 / 2) / 2
        array([0.959, 0.041])
    """
    budget = check.positive("tuning_epsilon", tuning_epsilon)
    caps = _caps(cap)
    rows = read_numbers("errors", errors)
    if rows.ndim != 2 or not rows.size:
        raise ValueError("errors must have two axes: a row for each mechanism, a column for each user")
    times = check.count("copies", copies)
    sums = times * np.array([_whole_errors(row, caps).sum(axis=-1) for row in rows]).T
    cap_budget, budget = _budgets(len(caps), budget)
    fitness = _fitness(sums, times * rows.shape[-1])
    sizes = np.ones(1) if cap_budget is None else NoisyMax(epsilon=cap_budget).pmf(fitness, UNIT)
    return np.asarray(sizes @ NoisyMax(epsilon=budget).pmf(-sums, UNIT))


def _caps(cap: float | tuple[float, float]) -> FloatArray:
    """Return the caps to try, highest first."""
    if not isinstance(cap, tuple):
        return np.array([check.positive("cap", cap)])
    if len(cap) != 2:
        raise ValueError("cap must be a number or a range (lowest, highest)")
    lowest, highest = check.positive("cap", cap[0]), check.positive("cap", cap[1])
    if not lowest <= highest:
        raise ValueError(f"cap must be a range (lowest, highest), got ({lowest:g}, {highest:g})")
    steps = math.floor(math.log(highest) / math.log(FACTOR) - math.log(lowest) / math.log(FACTOR) + 1e-9)
    return np.asarray(highest * FACTOR ** -np.arange(steps + 1.0))


def _whole_errors(errors: FloatArray, caps: FloatArray) -> IndexArray:
    """Return errors in units of cap/UNIT, cut off at the cap: a row for each cap.

    They are whole numbers from 0 to UNIT, so their sums have no rounding that could depend on other users. This
    holds for all computed errors: NaN, from scores of 2³⁰⁰ to a high power, counts as the cap.
    """
    column = caps[:, np.newaxis]
    return np.asarray(np.rint(np.fmax(np.fmin(errors, column), 0.0) / column * UNIT), dtype=np.int64)


def _budgets(caps: int, total: float) -> tuple[float | None, float]:
    """Split the tuning budget between cap and mechanism, so that their exact sum never exceeds it."""
    if caps == 1:
        return None, total
    return CAP_SHARE * total, remainder(total, CAP_SHARE * total)


def _fitness(sums: IndexArray, users: int) -> FloatArray:
    """Return how well each cap fits: minus the distance of the best mechanism's sum from its target.

    The minimum of several sums changes by no more than each of them, so its sensitivity is that of one sum, UNIT.
    """
    return np.asarray(-np.abs(sums.min(axis=-1) - TARGET * UNIT * users))


def _choose(sums: IndexArray, users: int, tuning_epsilon: float, source: Randomness) -> tuple[int, int]:
    """Draw a cap, if there are several, then a mechanism. The sums are in units of cap/UNIT: a row for each cap."""
    cap_budget, budget = _budgets(len(sums), tuning_epsilon)
    size = 0
    if cap_budget is not None:
        fitness = _fitness(sums, users)
        size = int(NoisyMax(epsilon=cap_budget).select(fitness, UNIT, randomness=source.substream("cap")))
    member = NoisyMax(epsilon=budget).select(-sums[size], UNIT, randomness=source.substream("mechanism"))
    return size, int(member)


def choice_guarantee(tuning_epsilon: float) -> Guarantee:
    """Return the guarantee of the choice alone before it is made: :attr:`Tuned.tuning`.

    Args:
        tuning_epsilon: The privacy budget of the choice.
    """
    epsilon = check.positive("tuning_epsilon", tuning_epsilon)
    return Guarantee(
        epsilon=epsilon,
        laplace_epsilon=epsilon,  # the sums move in a straight line, though the scores behind them may not
        neighbours=ONE_USER_CHANGED,
        theorem="a user's errors, cut off at a public cap, move each sum by at most 1; noisy max over sums is ε-DP",
        reference="docs/theory/tuning.md",
    )


def _whole_guarantee(tuning_epsilon: float, members: Sequence[Mechanism]) -> Guarantee:
    """Return the guarantee of the choice and one pick for each user.

    It must not depend on the chosen mechanism, which depends on scores. So it takes the largest ε of the pool, and
    the largest ρ, which may be that of another member.
    """
    promises = [member.guarantee for member in members]
    rhos = [promise.rho for promise in promises if promise.rho is not None]
    largest = max(promise.epsilon for promise in promises)
    like_laplace = all(promise.laplace_epsilon == promise.epsilon for promise in promises)
    pick = Guarantee(
        epsilon=largest,
        rho=max(rhos) if len(rhos) == len(promises) else None,  # if absent, it follows from ε
        laplace_epsilon=largest if like_laplace else 0.0,
        neighbours=ONE_USER_MOVED,
        theorem="no member of the pool loses more than the one that loses most",
        reference="docs/theory/tuning.md",
    )
    whole = Guarantee.compose(choice_guarantee(tuning_epsilon).with_neighbours(ONE_USER_MOVED), pick)
    return replace(
        whole,
        theorem="the losses of the choice and of the user's own pick add up; other picks depend only on the choice",
        reference="docs/theory/tuning.md",
    )
