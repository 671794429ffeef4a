"""Tuning on a fleet: one private choice of the mechanism that suits all users best.

Whether scores and sensitivities correlate, and how, is the same for many users of one application. So it can be
learnt once, from all of them, instead of being asked of every user's own budget:

1. Each user's *exact* expected error under every mechanism of a pool is computed, divided by a public cap, cut off
   at 1 and rounded to a grid of 2⁻²⁴.
2. The errors are added up over users. A user changes each sum by at most 1, so one noisy max over the pool picks
   the best mechanism at a cost of ``tuning_epsilon``, however large the pool.
3. Every user's own pick is then made by that mechanism, at ``epsilon``.

docs/theory/tuning.md has the proof, and says who is protected against what.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from dpselect import parameters as check
from dpselect.candidates import Batch, Numbers, read_batch, read_numbers
from dpselect.evaluation import expected_error
from dpselect.guarantees import Guarantee
from dpselect.kernels.arrays import Column, FloatArray, IndexArray
from dpselect.mechanisms import Mechanism, NoisyMax
from dpselect.pools import public_numbers, read_members, read_pool
from dpselect.progress import tracked
from dpselect.randomness import Randomness

__all__ = ["Tuned", "choice_guarantee", "choice_pmf", "fleet_errors", "tune"]

UNIT = 2**24
"""Errors are counted in units of cap/UNIT, as whole numbers: their sums are exact, and so is their sensitivity."""

MOST_USERS = 2**28
"""Sums of so many errors stay below 2⁵³, so that float64 holds them exactly."""

FACTOR = 4.0
"""The ratio of neighbouring caps, where several are tried."""

CAP_SHARE = 0.5
"""How much of the tuning's budget finds the cap, where several are tried. The rest chooses the mechanism."""

TARGET = 0.25
"""What part of the cap the best mechanism's mean error should be, where several caps are tried.

Small caps let small differences stand out from the noise, but cut off users with large errors. At a quarter, four
times the mean is let through, and a cap that is far too large is a quarter of the users away from being right.
"""

SAME_USERS = "fleets of the same public number of users that differ in one user's scores"
ONE_USER_CHANGED = f"{SAME_USERS}, in any way"
ONE_USER_MOVED = f"{SAME_USERS}, by at most Δ_a for every candidate a"

BLOCK = 2**20
"""Candidates that are looked at together; bounds the memory."""


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """The mechanism that a fleet was tuned to, and what the whole costs. All its fields are public.

    Privacy:
        Both guarantees are for one user's scores *replaced*: they take the number of users as public, and ``users``
        is that number, exactly. If you must also hide whether somebody is a user at all, publish ``mechanism`` and
        ``cap`` alone, and not ``users``, ``str(tuned)`` or a list of all picks: the choice is also
        ``tuning.epsilon``-DP for one user added or removed, but these are not.

    Attributes:
        mechanism: The mechanism for every user's pick.
        cap: The cap that errors were divided by: the given one, or the one found in the given range.
        users: How many users the choice rests on; a public number, published as it is.
        tuning: The guarantee of the choice alone, which holds whatever happens to it afterwards.
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

    def select(
        self,
        scores: Numbers,
        sensitivities: Numbers,
        *,
        anchors: Numbers | None = None,
        randomness: Randomness | None = None,
    ) -> Any:  # noqa: ANN401 - an index, or an array of indices
        """Return a pick for each row by the tuned mechanism; ``anchors`` are left out if it has no use for them.

        Each pick costs ``mechanism.guarantee``, in addition to the tuning's.
        """
        public = public_numbers(self.mechanism, anchors)
        return self.mechanism.select(scores, sensitivities, randomness=randomness, **public)


def tune(
    scores: Numbers,
    sensitivities: Numbers,
    epsilon: float,
    tuning_epsilon: float,
    *,
    cap: float | tuple[float, float],
    pool: Sequence[Mechanism] | None = None,
    anchors: Numbers | None = None,
    power: float = 2,
    randomness: Randomness | None = None,
    progress: bool | None = None,
) -> Tuned:
    r"""Choose the mechanism of a pool that errs least for a fleet of users, privately.

    Maximises −Σ_u min(1, E_u[m]/cap) over the mechanisms m of the pool by noisy max at ``tuning_epsilon``, with
    E_u[m] the exact expected error |best score − picked score|^power of user u's pick by m.

    Where errors are small compared with the cap, the noise hides what distinguishes them: it is of the order of
    2 cap log(pool size)/(tuning_epsilon · users) in the fleet's mean error. A cap given as a range
    ``(lowest, highest)`` finds its own size: half of the budget picks, by noisy max, the one among highest,
    highest/4, highest/16, … at which the best mechanism's mean error is nearest to a quarter of the cap.

    Privacy:
        The choice is ``tuning_epsilon``-DP for *users*: it protects against any change of one user's scores,
        whatever its size, and not only against changes within the sensitivities. The whole, the choice and one
        pick for each user, is (tuning_epsilon + epsilon)-DP for fleets that differ in one user's scores, by at most
        ``sensitivities[a]`` for each candidate a. Neither hides how many users there are (see :class:`Tuned`). Both
        assume that

        - a row of scores depends on its own user's data and on public things alone, one row for each user
          (a user with m rows counts m times: m · tuning_epsilon);
        - the pool, the cap, the budgets, sensitivities, anchors and the number of users are public: chosen without
          looking at these scores.

        **Every rerun is another release, and costs tuning_epsilon again**: who tunes until the result pleases has
        released all the results. Only a rerun with the same key on the same scores and arguments gives the same
        choice, and so costs nothing: ``randomness=Randomness.keyed(key, "tuning")``, with ``key =
        secrets.token_bytes(32)`` drawn once and kept secret. If scores have changed since, or an argument, it is a
        new release, to be paid for again and with a new key.

        The choice's law is exact: sums of errors are whole numbers, and the pick is :class:`~dpselect.NoisyMax`'s.

    Cost:
        One ``pmf`` for each user and member of the pool: a minute or so for 10,000 users, 100 candidates and the
        default pool on two processors. Memory does not grow with the number of users.

    Args:
        scores: A row for each user: an array of two axes, ragged ``(values, offsets)``, or an Arrow list array.
        sensitivities: The sensitivities, shared or a row for each user.
        epsilon: The privacy budget of a pick, which no member of the pool may exceed.
        tuning_epsilon: The privacy budget of the choice.
        cap: A public bound on a user's error, or the range of such bounds to look for a good one. Larger errors
            count as the cap. (highest possible score − lowest possible score)^power never cuts off anything.
        pool: The mechanisms, each private for all scores within the sensitivities (``NoisyMax(monotone=True)`` is
            not); :func:`~dpselect.pools.default_pool` if absent.
        anchors: Public guesses of the scores, for members of the pool that take them.
        power: What to minimise: 2 is the squared error, 1 the regret.
        randomness: Where the choice's randomness comes from; a fresh secret key if absent. A key of your own makes
            the choice repeatable.
        progress: Whether to show a progress bar; ``None`` means on a terminal only.

    Example:
        >>> import numpy as np, dpselect as dps
        >>> sensitivities = np.linspace(0.1, 1.0, 20)
        >>> rng = np.random.default_rng(0)
        >>> scores = np.clip(sensitivities + 0.1 * rng.normal(size=(500, 20)), 0, 1)  # the best ones are sensitive
        >>> seed = dps.Randomness.seeded(1)
        >>> tuned = dps.tuning.tune(scores, sensitivities, 1.0, 0.5, cap=1.0, randomness=seed, progress=False)
        >>> tuned.mechanism.tilt < 0, tuned.guarantee.epsilon
        (True, 1.5)
        >>> picks = tuned.select(scores, sensitivities)

    References:
        docs/theory/tuning.md. The idea of one private choice among private mechanisms: K. Chaudhuri, S. Vinterbo, A
        stability-based validation procedure for differentially private machine learning, 2013.
    """
    fleet = _Fleet.read(scores, sensitivities, anchors)
    budget, tuning_budget = check.positive("epsilon", epsilon), check.positive("tuning_epsilon", tuning_epsilon)
    caps = _caps(cap)
    exponent = check.positive("power", power)
    members = read_pool(pool, budget, anchors)
    source = Randomness.given(randomness).serving("tune")
    source.units(1)
    tally = Tally(np.zeros((len(caps), len(members)), dtype=np.int64), fleet.users)
    parts = [(number, part) for part in fleet.parts() for number in range(len(members))]
    for number, part in tracked(parts, total=len(parts), label="tuning", shown=progress):
        errors = fleet.errors(members[number], part, exponent)
        tally.sums[:, number] += _whole_errors(errors, caps).sum(axis=-1)
    size, member = _choose(tally, tuning_budget, source)
    return Tuned(
        mechanism=members[member],
        cap=float(caps[size]),
        users=fleet.users,
        tuning=choice_guarantee(tuning_budget),
        guarantee=_whole_guarantee(tuning_budget, members),
    )


def fleet_errors(
    pool: Sequence[Mechanism],
    scores: Numbers,
    sensitivities: Numbers,
    *,
    anchors: Numbers | None = None,
    power: float = 2,
    progress: bool | None = False,
) -> FloatArray:
    """Return the exact expected error of each user under each mechanism: a row for each mechanism.

    **Not private**: it is what :func:`tune` adds up, before anything is cut off or hidden by noise. For public or
    synthetic fleets, to see what tuning would find.

    Example:
        >>> import dpselect as dps
        >>> pool = [dps.Uniform(), dps.RandomizedResponse(epsilon=50.0)]
        >>> dps.tuning.fleet_errors(pool, [[0.0, 2.0], [1.0, 1.0]], 1.0).round(3)
        array([[2., 0.],
               [0., 0.]])
    """
    fleet = _Fleet.read(scores, sensitivities, anchors)
    exponent = check.positive("power", power)
    members = read_members(pool)
    parts = [(number, part) for number in range(len(members)) for part in fleet.parts()]
    found = np.empty((len(members), fleet.users))
    for number, part in tracked(parts, total=len(parts), label="errors", shown=progress):
        found[number, part] = fleet.errors(members[number], part, exponent)
    return found


def choice_pmf(
    errors: FloatArray, tuning_epsilon: float, *, cap: float | tuple[float, float], copies: int = 1
) -> FloatArray:
    """Return the exact probability of each mechanism to be chosen by :func:`tune`, given each user's errors.

    **Not private**: probabilities reveal errors, and these reveal scores. For public or synthetic fleets.

    Args:
        errors: A row for each mechanism, a column for each user, as from :func:`fleet_errors`.
        tuning_epsilon: The privacy budget of the choice.
        cap: As for :func:`tune`.
        copies: How many users each column stands for, all with the same scores.

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
    sums = np.array([_whole_errors(row, caps).sum(axis=-1) for row in rows]).T
    times = check.count("copies", copies, least=1)
    tally = Tally(times * sums, times * rows.shape[-1])
    cap_budget, budget = _budgets(len(caps), budget)
    sizes = np.ones(1) if cap_budget is None else NoisyMax(epsilon=cap_budget).pmf(_fitness(tally), UNIT)
    return np.asarray(sizes @ NoisyMax(epsilon=budget).pmf(-tally.sums, UNIT))


# --- The choice -------------------------------------------------------------------------------------------


class Tally(NamedTuple):
    """What is added up over users: all that the choice depends on."""

    sums: IndexArray
    """A row for each cap, a column for each mechanism; in units of cap/UNIT."""
    users: int

    def __repr__(self) -> str:
        caps, mechanisms = self.sums.shape  # the sums themselves are private
        return f"Tally({caps} caps, {mechanisms} mechanisms, {self.users} users)"


def _caps(cap: float | tuple[float, float]) -> FloatArray:
    """Return the caps to try, from the highest down."""
    if not isinstance(cap, tuple):
        return np.array([check.positive("cap", cap)])
    if len(cap) != 2:
        raise ValueError("cap must be a number, or a range (lowest, highest)")
    lowest, highest = check.positive("cap", cap[0]), check.positive("cap", cap[1])
    if not lowest <= highest:
        raise ValueError(f"cap must be a range (lowest, highest), not ({lowest:g}, {highest:g})")
    steps = math.floor(math.log(highest) / math.log(FACTOR) - math.log(lowest) / math.log(FACTOR) + 1e-9)
    return np.asarray(highest * FACTOR ** -np.arange(steps + 1.0))


def _whole_errors(errors: FloatArray, caps: FloatArray) -> IndexArray:
    """Return errors in units of cap/UNIT, cut off at the cap: a row for each cap.

    Whole numbers from 0 to UNIT, so their sums have no rounding that could depend on who else is in the fleet. That
    holds for whatever was computed: scores of 2³⁰⁰ to a high power give no number at all, and count as the cap.
    """
    column = caps[:, np.newaxis]
    return np.asarray(np.rint(np.fmax(np.fmin(errors, column), 0.0) / column * UNIT), dtype=np.int64)


def _budgets(caps: int, total: float) -> tuple[float | None, float]:
    """Split the tuning's budget between cap and mechanism, so that the two never exceed it."""
    if caps == 1:
        return None, total
    first = CAP_SHARE * total
    rest = total - first
    exceeds = Fraction(first) + Fraction(rest) > Fraction(total)
    return first, math.nextafter(rest, 0.0) if exceeds else rest


def _fitness(tally: Tally) -> FloatArray:
    """Return how well each cap fits: minus the distance of the best mechanism's sum from where it should be.

    The smallest of several sums changes by no more than each of them, so the sensitivity is that of a sum: UNIT.
    """
    return np.asarray(-np.abs(tally.sums.min(axis=-1) - TARGET * UNIT * tally.users))


def _choose(tally: Tally, tuning_epsilon: float, source: Randomness) -> tuple[int, int]:
    """Draw a cap, if there are several, and then a mechanism."""
    cap_budget, budget = _budgets(len(tally.sums), tuning_epsilon)
    size = 0
    if cap_budget is not None:
        fitness = _fitness(tally)
        size = int(NoisyMax(epsilon=cap_budget).select(fitness, UNIT, randomness=source.substream("cap")))
    member = NoisyMax(epsilon=budget).select(-tally.sums[size], UNIT, randomness=source.substream("mechanism"))
    return size, int(member)


def choice_guarantee(tuning_epsilon: float) -> Guarantee:
    """Return what the choice alone promises, before it is made: :attr:`Tuned.tuning`.

    Example:
        >>> import dpselect as dps
        >>> dps.tuning.choice_guarantee(0.5).neighbours
        "fleets of the same public number of users that differ in one user's scores, in any way"
    """
    return Guarantee(
        epsilon=check.positive("tuning_epsilon", tuning_epsilon),
        neighbours=ONE_USER_CHANGED,
        theorem="a user's errors, cut off at a public cap, move each sum by at most 1; noisy max over sums is ε-DP",
        reference="docs/theory/tuning.md",
    )


def _whole_guarantee(tuning_epsilon: float, members: Sequence[Mechanism]) -> Guarantee:
    """Return the guarantee of the choice and one pick for each user.

    It must not depend on which mechanism was chosen, since that depends on scores: the pool's largest ε counts, and
    its largest ρ, which may be another member's.
    """
    promises = [member.guarantee for member in members]
    rhos = [promise.rho for promise in promises if promise.rho is not None]
    pick = Guarantee(
        epsilon=max(promise.epsilon for promise in promises),
        rho=max(rhos) if len(rhos) == len(promises) else None,  # absent, it is what follows from ε
        neighbours=ONE_USER_MOVED,
        theorem="whichever member of the pool is chosen, it loses no more than the one that loses most",
        reference="docs/theory/tuning.md",
    )
    whole = Guarantee.compose(choice_guarantee(tuning_epsilon).restated(neighbours=ONE_USER_MOVED), pick)
    return replace(
        whole,
        theorem="the losses of the choice and of the user's own pick add up; others' picks see only the choice",
        reference="docs/theory/tuning.md",
    )


# --- The fleet --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Fleet:
    """Users' scores and what is public about them, readable in parts."""

    batch: Batch
    has_anchors: bool

    @classmethod
    def read(cls, scores: Numbers, sensitivities: Numbers, anchors: Numbers | None) -> "_Fleet":
        batch = read_batch(scores, sensitivities, anchors=anchors)
        if batch.shape is not None and len(batch.shape) != 1:
            raise ValueError("scores must have two axes: a row for each user, a column for each candidate")
        if batch.rows == 0:
            raise ValueError("scores must hold at least one user")
        if batch.rows > MOST_USERS:
            raise ValueError(f"scores must hold at most 2^{MOST_USERS.bit_length() - 1} users")
        return cls(batch, anchors is not None)

    @property
    def users(self) -> int:
        return self.batch.rows

    def parts(self) -> Iterator[slice]:
        """Yield slices of users, none with more candidates than a block (but for single users)."""
        bounds = self.batch.table.bounds
        first = 0
        while first < self.users:
            last = int(np.searchsorted(bounds, bounds[first] + BLOCK, side="right")) - 1
            last = min(max(last, first + 1), self.users)
            yield slice(first, last)
            first = last

    def errors(self, mechanism: Mechanism, part: slice, power: float) -> FloatArray:
        """Return the exact expected error of some users.

        What is computed for a user depends on that user's row alone, to the last bit: not on the other rows, their
        number or the threads. So the sums' sensitivity is not blurred by rounding.
        """
        table = self.batch.table
        rows = self._ragged_rows if self.batch.shape is None else self._dense_rows
        anchors = rows(table.public, part) if self.has_anchors else None
        scores: Numbers = rows(table.scores, part)
        if self.batch.shape is None:
            scores = (scores, table.bounds[part.start : part.stop + 1] - table.bounds[part.start])
        public = public_numbers(mechanism, anchors)
        return np.asarray(expected_error(mechanism, scores, rows(table.sensitivities, part), power, **public))

    def _dense_rows(self, column: Column, part: slice) -> FloatArray:
        """Return some rows of a dense column: a single one if they are shared."""
        rows = column.values.reshape(-1, self.batch.width)
        if len(rows) == 1 < self.users:
            return np.asarray(rows[0])
        return np.asarray(rows[column.starts[part] // self.batch.width])

    def _ragged_rows(self, column: Column, part: slice) -> FloatArray:
        """Return some rows of a ragged column, flat: a single number if all candidates share it."""
        bounds = self.batch.table.bounds
        if not np.array_equal(column.starts, bounds[:-1]):
            return np.asarray(column.values[0])
        return np.asarray(column.values[bounds[part.start] : bounds[part.stop]])
