"""A check of anyone's selector: a mechanism, another library's, or a function."""

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dpselect import parameters
from dpselect.auditing.losses import claimed_epsilon
from dpselect.auditing.samplers import BrokenError, are_alike, are_independent, draw, epsilon_shown, fits
from dpselect.auditing.search import Audit, Search, shown
from dpselect.candidates import read_sensitivities
from dpselect.guarantees import NESTED, WITHIN_SENSITIVITIES
from dpselect.kernels.arrays import LARGEST, FloatArray
from dpselect.mechanisms.base import Mechanism, require_mechanism
from dpselect.mechanisms.given import Given

Pair: TypeAlias = tuple[str, FloatArray, FloatArray]
"""The kind of sensitivities, the sensitivities, and two neighbours."""

GIVEN = "as given"

PAIRS = (128, 24)
"""The number of pairs that draws explore: of the given sensitivities, and of each other kind."""

ROUNDS = ((0.004, 24), (0.04, 3))
"""Which share of the draws each pair gets in a round of exploring, and how many pairs go on."""

TESTS = 64
"""More than the number of statistical tests of one check; each may err with this part of the stated rate."""

UNDERFLOW = 1e-15
"""A violation by a smaller probability comes from rounding."""

SAME = 1e-6
"""How far probabilities may differ, relative to the largest, and count as the same."""


@dataclass(kw_only=True, eq=False)
class Check:
    """What a check has tried and found. Print it to read it."""

    name: str
    """The selector."""
    claimed: float
    """The ε that losses are compared with."""
    is_exact: bool
    """Whether losses come from probabilities. If not, they come from draws."""
    error: float
    """The probability that draws of a correct selector are taken for those of a wrong one."""
    found: list[tuple[str, Audit]] = field(default_factory=list)
    """The worst pairs, each with the kind of its sensitivities."""
    broken: dict[str, str] = field(default_factory=dict)
    """What is no law of a pick: exceptions, answers that are no candidate, probabilities that are none. Each comes
    with the first scores that showed it."""
    notes: list[str] = field(default_factory=list)
    """What is no loss of privacy, but you should know."""
    tried: list[str] = field(default_factory=list)
    """The kinds of sensitivities that were tried."""
    pairs: int = 0
    """The number of pairs of neighbours."""
    draws: int = 0
    """The number of draws."""

    @property
    def worst(self) -> Audit | None:
        """The worst pair: a violation, with your sensitivities if there is one, or else the largest loss."""
        return max(self.found, key=_weight, default=("", None))[1]

    @property
    def verdict(self) -> Literal["violated", "broken", "no violation found"]:
        """``"violated"``, ``"broken"`` or ``"no violation found"``, which does not prove the claim."""
        if self.worst is not None and self.worst.verdict == "violated":
            return "violated"
        return "broken" if self.broken else "no violation found"

    def __str__(self) -> str:
        how = "exact probabilities" if self.is_exact else "draws alone, which do not show rare or small violations"
        lines = [f"{self.name}: {self.verdict}"]
        worst = self.worst
        if worst is not None:
            bound = "" if self.is_exact else f" (at least {worst.certain:.6g})"
            kind = next(kind for kind, audit in self.found if audit is worst)
            lines += [f"  largest loss {worst.loss:.6g}{bound}, claimed {self.claimed:g}; sensitivities {kind}:"]
            lines += [f"  {line}" for line in worst.witness.splitlines()]
            if self.verdict == "violated" and max(worst.probabilities) < UNDERFLOW:
                lines += ["    floats round or underflow there: keep every probability above 1e-300"]
        lines += [f"  broken: {text}{where}" for text, where in self.broken.items()]
        lines += [f"  note: {text}" for text in self.notes]
        lines += [f"  tried: {self.pairs:,} pairs of neighbours, by {how}"]
        lines += [f"         sensitivities {', '.join(self.tried)}"]
        if self.pairs:
            lines += ["         ties, corners, candidates far behind, another order, a common shift, NaN"]
        if self.draws:
            lines += [f"         {self.draws:,} draws; a correct selector fails one check in {1 / self.error:,.0f}"]
        return "\n".join(lines)


def check(
    selector: Any,
    sensitivities: ArrayLike,
    *,
    epsilon: float | None = None,
    neighbours: str | None = None,
    restarts: int = 8,
    draws: int = 50_000,
    error: float = 1e-6,
    seed: int = 0,
) -> Check:
    """Look for violations of ε-DP in a mechanism, in another library's selector, or in your own.

    The check tries your sensitivities and others made from them: all equal, some or all 0, very small, very large,
    far apart, two candidates, one candidate. For each it searches for the neighbours with the largest loss: from
    ties, corners of the box of neighbours and candidates far behind. It also tries another order, a common shift
    and NaN.

    *With probabilities* (``pmf``), losses are exact, and draws are compared with them. *Without*, losses are lower
    bounds from draws: each round gives more draws to fewer pairs, and fresh draws test the last three. All
    statistical tests together refuse a correct selector with probability ``error`` at most. Draws show neither rare
    events nor small violations; more draws show more. No check proves privacy.

    Args:
        selector: A mechanism; an object with ``select(scores, sensitivities)``, and perhaps ``pmf``, for a batch of
            rows; or a function of the scores and sensitivities of one row that returns the position of its pick.
        sensitivities: One for each of at least two candidates.
        epsilon: The claim; by default that of the mechanism.
        neighbours: Which scores are neighbours, in the words of :mod:`dpselect.guarantees`; by default those of the
            mechanism's guarantee, or scores within the sensitivities.
        restarts: The number of ascents of each exact search.
        draws: The number of draws from each side of a pair in the last round.
        error: The error rate of all statistical tests together.
        seed: The seed of the search, and of the draws of mechanisms; others draw their own randomness.

    Cost:
        Seconds: about 30,000 probabilities, or 12 · draws picks.

    Example:
        >>> import numpy as np, dpselect as dps
        >>> dps.auditing.check(dps.GEM(1.0), [1.0, 2.0], restarts=2).verdict
        'no violation found'
        >>> rng = np.random.default_rng(0)
        >>> def own_noise(scores, sensitivities):  # noisy max, with noise for each candidate's own sensitivity
        ...     return np.argmax(scores + rng.exponential(2 * sensitivities))
        >>> found = dps.auditing.check(own_noise, [0.1, 1.0], epsilon=1.0, draws=1000)
        >>> found.verdict, found.worst.certain > 1
        ('violated', True)

    References:
        Z. Ding et al., Detecting violations of differential privacy, 2018.
    """
    widths = read_sensitivities(sensitivities)
    if widths.ndim == 0 or widths.size < 2:
        raise ValueError("sensitivities must be one number for each of at least two candidates")
    kind = f"the class {selector.__name__}" if isinstance(selector, type) else type(selector).__name__
    if isinstance(selector, type) or not (callable(selector) or hasattr(selector, "select")):
        raise ValueError(
            "selector must be a mechanism such as dps.GEM(1.0), an object with select, or a function of scores and "
            f"sensitivities; got {kind}"
        )
    if isinstance(selector, Mechanism):
        require_mechanism(selector, "selector", single=True)
    claimed = claimed_epsilon(selector) if epsilon is None else parameters.not_negative("epsilon", epsilon)
    if claimed is None:
        raise ValueError("epsilon must be given: the selector claims none")
    relation = getattr(getattr(selector, "guarantee", None), "neighbours", WITHIN_SENSITIVITIES)
    known = relation if relation in NESTED else WITHIN_SENSITIVITIES
    name = str(getattr(selector, "__name__", selector))
    trial = _Trial(
        selector=selector,
        neighbours=known if neighbours is None else parameters.one_of("neighbours", neighbours, NESTED),
        restarts=parameters.count("restarts", restarts),
        draws=parameters.count("draws", draws, least=200),
        seed=parameters.count("seed", seed, least=0),
        result=Check(
            name=kind if " object at 0x" in name else name,
            claimed=claimed,
            is_exact=hasattr(selector, "pmf"),
            error=parameters.inside_unit_interval("error", error),
        ),
    )
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for kind_of_widths, those in _kinds(widths):
            if not trial.examine(kind_of_widths, those):
                return trial.result  # it does not work at all
        trial.compare_pairs()
        trial.take_notes(widths)
    return trial.result


def _weight(found: tuple[str, Audit]) -> tuple[bool, bool, bool, float]:
    """Order findings: violations first, those that are not mere rounding, those of given sensitivities; by loss."""
    kind, audit = found
    violated = audit.verdict == "violated"
    return violated, max(audit.probabilities) > UNDERFLOW, violated and kind == GIVEN, audit.certain


def _kinds(widths: FloatArray) -> Iterator[tuple[str, FloatArray]]:
    """Yield sensitivities to try, each once, and what to call them."""
    order, k, top = np.argsort(widths, kind="stable"), widths.size, float(widths.max()) or 1.0
    kinds = {
        GIVEN: widths,
        "all equal": np.full(k, top),
        "with a 0": np.where(np.arange(k) == order[0], 0.0, np.maximum(widths, top / 4)),
        "all 0 but one": np.where(np.arange(k) == order[-1], top, 0.0),
        "all 0": np.zeros(k),
        "far apart": top * 2.0 ** (-20.0 * np.arange(k)[::-1] / (k - 1)),
        "very small": widths * 2.0**-100,
        "very large": widths * 2.0**100,
        "of two candidates": np.array([widths[order[0]], top]),
        "of one candidate": np.array([top]),
    }
    seen = set()
    for kind, those in kinds.items():
        in_range = ((those == 0) | (those >= 1 / LARGEST)).all() and those.max() <= LARGEST / 2**60
        if in_range and tuple(those.tolist()) not in seen:
            seen.add(tuple(those.tolist()))
            yield kind, those


@dataclass(kw_only=True)
class _Trial:
    """Runs a selector, and writes down what it does."""

    selector: Any
    neighbours: str
    restarts: int
    draws: int
    seed: int
    result: Check
    to_draw: list[Pair] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.can_draw = not isinstance(self.selector, Given)  # whose picks follow its floats, whatever they are
        self.share = self.result.error / TESTS

    # --- What the selector does: every surprise is a BrokenError with the scores ------------------------------

    def _call(self, function: Callable[[FloatArray], Any], scores: FloatArray) -> Any:
        try:
            return function(scores.copy())
        except Exception as problem:
            for row in scores if scores.ndim == 2 and len(scores) > 1 else ():
                self._call(function, row[None])  # to show the scores that it is about
            what = "" if isinstance(problem, BrokenError) else f"raised {type(problem).__name__}: "
            raise BrokenError(f"{what}{problem}", scores) from problem

    def _law(self, scores: FloatArray, widths: FloatArray) -> Any:
        law = np.asarray(self._call(lambda rows: self.selector.pmf(rows, widths.copy()), scores))
        if law.shape != scores.shape or law.dtype.kind != "f":
            raise BrokenError("pmf does not return one probability for each candidate", scores)
        wrong = ~((law >= 0).all(axis=-1) & (np.abs(law.sum(axis=-1) - 1) <= 1e-9))
        if wrong.any():
            raise BrokenError("pmf does not return probabilities: numbers ≥ 0 that add up to 1", scores[wrong])
        return law

    def _draw(self, scores: FloatArray, widths: FloatArray, draws: int) -> Any:
        self.result.draws += draws
        self.seed += 1
        return self._call(lambda row: draw(self.selector, row, widths, draws, self.seed), scores)

    def _counts(self, scores: FloatArray, widths: FloatArray, draws: int) -> Any:
        return np.bincount(self._draw(scores, widths, draws), minlength=widths.size)

    def _record(self, problem: BrokenError, kind: str) -> None:
        text, scores = problem.args
        where = f", with sensitivities {kind} and scores {shown(np.atleast_2d(scores)[0])}"
        self.result.broken.setdefault(text, where)

    # --- What is tried ----------------------------------------------------------------------------------------

    def examine(self, kind: str, widths: FloatArray) -> bool:
        """Try one kind of sensitivities, and return whether to go on."""
        try:
            self._observe(np.zeros(widths.size), widths, 2)
        except BrokenError as problem:
            refused = kind != GIVEN and isinstance(problem.__cause__, ValueError)
            self.result.tried.append(f"{kind} (refused)" if refused else kind)
            if not refused:
                self._record(problem, kind)
            return kind != GIVEN
        self.result.tried.append(kind)
        search = Search(
            mechanism=self.result.name,
            law=lambda scores: self._law(scores, widths),
            claimed=self.result.claimed,
            widths=widths,
            random=self.random,
            neighbours=self.neighbours,
        )
        try:
            if widths.size > 1 and self.result.is_exact:
                self._search(kind, search)
            elif widths.size > 1:
                scores, moves = search.structured()
                pairs = np.stack([scores, search.neighbour(scores, moves)], axis=1)
                chosen = self.random.permutation(pairs)[: PAIRS[kind != GIVEN]]
                self.to_draw += [(kind, widths, pair) for pair in chosen]
                search.pairs = len(chosen)
            else:
                self._compare_draws(search.unit * np.array([[0.0], [-1.0], [2.0**40]]), widths, 50)
        except BrokenError as problem:
            self._record(problem, kind)
        self.result.pairs += search.pairs
        return True

    def _search(self, kind: str, search: Search) -> None:
        """Search exactly. If floats are sampled as they are and all is well, do so again down to the last bit."""
        found = search.run(self.restarts, max(2, self.restarts // 2))
        self.result.found.append((kind, found))
        self._compare_draws(np.array([found.scores, found.neighbour]), search.widths, self.draws // 4)
        if not self.can_draw and found.verdict != "violated":
            search.floor = search.accuracy = 0.0
            self.result.found.append((kind, search.run(self.restarts, 2)))

    def _compare_draws(self, rows: FloatArray, widths: FloatArray, draws: int) -> None:
        """Compare draws with probabilities, and probabilities with themselves."""
        for row in rows:
            law = self._law(row[None], widths)[0] if self.result.is_exact else np.ones(1)
            if self.result.is_exact and not np.array_equal(law, self._law(row[None], widths)[0]):
                raise BrokenError("pmf returns other numbers when it is called again", row)
            if self.can_draw and not fits(self._counts(row, widths, draws), law, self.share):
                raise BrokenError("draws do not follow pmf", row)

    def compare_pairs(self) -> None:
        """Find the worst pairs by draws: more draws for fewer pairs in each round, then a test with fresh draws."""
        pairs = [(0.0, 0, 0, pair) for pair in self.to_draw]
        for share, kept in ROUNDS:
            told = [(*self._explore(pair, max(50, int(share * self.draws))), pair) for *_, pair in pairs]
            pairs = sorted((one for one in told if one[0] > -math.inf), key=lambda one: -one[0])[:kept]
        for _, candidate, side, (kind, widths, (here, there)) in pairs:
            counts = self._both((kind, widths, np.array([here, there])), self.draws)[:, candidate].tolist()
            more, less = counts[side], counts[1 - side]
            test = Audit(
                mechanism=self.result.name,
                claimed=self.result.claimed,
                loss=math.log(more / less) if less and more else math.inf if more else 0.0,
                certain=epsilon_shown(more, less, self.draws, self.share),
                candidate=candidate,
                scores=here,
                neighbour=there,
                sensitivities=widths,
                probabilities=(counts[0] / self.draws, counts[1] / self.draws),
                pairs=len(self.to_draw),
            )
            self.result.found.append((kind, test))

    def _explore(self, pair: Pair, draws: int) -> tuple[float, int, int]:
        """Return the largest log-ratio of counts, less its standard error; its candidate; the likelier side."""
        counts = self._both(pair, draws)
        errors = 1 / (counts + 0.5)
        promise = np.log(errors[::-1] / errors) - np.sqrt(errors.sum(axis=0))
        side, candidate = divmod(int(promise.argmax()), counts.shape[1])
        return float(promise.max()) if counts.any() else -math.inf, candidate, side

    def _both(self, pair: Pair, draws: int) -> Any:
        """Return the counts of both sides; none, if the selector breaks down there."""
        kind, widths, sides = pair
        try:
            return np.array([self._counts(side, widths, draws) for side in sides])
        except BrokenError as problem:
            self._record(problem, kind)
            return np.zeros((2, widths.size), dtype=np.int64)

    def take_notes(self, widths: FloatArray) -> None:
        """Try what breaks no promise, and is worth knowing."""
        unit, claimed = float(widths.max()) or 1.0, self.result.claimed
        row = unit / 2 * (np.arange(widths.size) % 3).astype(np.float64)
        far = 2.0**12 * unit * max(1.0, 1 / claimed if claimed else 1.0)
        try:
            usual, shifted = self._observe(row, widths), self._observe(row + far, widths)
            if not self._alike(usual, self._observe(row[::-1], widths[::-1])[::-1]):
                self.result.notes.append("the order of candidates matters")
            if not self._alike(usual, shifted):
                self.result.notes.append("a common shift of all scores matters")
            picks = self._draw(row, widths, self.draws // 4) if self.can_draw else np.zeros(4, dtype=np.int64)
            if not are_independent(picks, self.random, self.share):
                self._record(BrokenError("a pick depends on those before it: it keeps a state", row), GIVEN)
        except BrokenError as problem:
            self._record(problem, GIVEN)
        try:
            self._observe(np.where(np.arange(widths.size) == 0, np.nan, row), widths)
            self.result.notes.append("it accepts a score that is NaN: refuse it with a ValueError")
        except BrokenError:
            pass

    def _observe(self, scores: FloatArray, widths: FloatArray, draws: int = 0) -> Any:
        """Return the law, or counts of draws."""
        if self.result.is_exact:
            return self._law(scores[None], widths)[0]
        return self._counts(scores, widths, draws or self.draws // 8)

    def _alike(self, first: Any, second: Any) -> bool:
        if not self.result.is_exact:
            return are_alike(first, second, self.share)
        return bool((np.abs(first - second) <= SAME * first.max()).all())
