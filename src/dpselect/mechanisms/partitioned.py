"""One selection over candidates that no single table holds: two passes, each with a state that merges."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import dpselect.parameters as check
from dpselect import kernels
from dpselect.candidates import MOST_CANDIDATES, Numbers, read_batch
from dpselect.exact import ExactStream
from dpselect.exact.gaps import pairwise_gap, upper_hull
from dpselect.exact.partial_uniform import bernoulli_exp, largest_priority
from dpselect.kernels.arrays import FloatArray, Units, WordArray
from dpselect.laws.base import FILTER_ERROR
from dpselect.laws.noisy_max import NoisyMaxLaw
from dpselect.mechanisms.base import Mechanism, law_name
from dpselect.parallel import over_rows
from dpselect.randomness import Randomness

__all__ = ["Contender", "PartitionedSelection", "Summary"]


@dataclass(frozen=True, slots=True)
class Summary:
    """The first pass's state for a part: enough to compute every candidate's gap. As private as the scores."""

    count: int
    widest: float
    scores: FloatArray = field(repr=False)
    """Scores of the candidates that may be vertices of the upper hull over sensitivities, from left to right."""
    sensitivities: FloatArray = field(repr=False)


class Contender(NamedTuple):
    """The second pass's state for a part: the largest priority among candidates that pass, with any ties."""

    priority: int
    address: tuple[int, int, int]
    candidate: Any


class Standard(NamedTuple):
    """The reference for all gaps, computed from the summary of all parts in exact arithmetic."""

    composition: NoisyMaxLaw
    hull: list[tuple[Fraction, Fraction]]
    """Vertices (Δ, q − tΔ)."""
    vertex_scores: FloatArray
    vertex_sensitivities: FloatArray
    leader: int
    widest: float

    def __repr__(self) -> str:
        return f"Standard({len(self.hull)} vertices, widest={self.widest})"  # heights are private


@dataclass(frozen=True)
class PartitionedSelection:
    r"""One pick out of candidates in many parts, by noisy max or GEM with exponential noise.

    Candidate a passes with probability $exp(−x_a)$, where $x_a$ is its gap in units of the noise, and one of those
    that pass is picked uniformly. This is the law of the mechanism in memory, in two passes. The first pass keeps,
    for each part, the points $(Δ_b, q_b)$ that may be on the upper hull of all candidates. Hulls merge, and the
    hull of all gives every $x_a$. In the second pass each candidate draws a coin and a priority, both from its own
    stream, addressed by (key, identifier). Each part keeps the candidate of the largest priority that passes, and
    the largest priority of all parts wins.

    Privacy:
        Exactly the guarantee of the mechanism: floats decide only what is certain, fractions the rest. Publish
        only the result of :meth:`decide`: summaries hold scores, and contenders reveal who passed.

    Cost:
        Two passes over the data. The first sorts each part; the second takes some 100 ns a candidate. The state is
        a hull, usually some dozens of points, and one candidate.

    Args:
        mechanism: ``NoisyMax`` or ``GEM``, of any tilt, with exponential noise.
        key: 32 secret bytes. The same key, candidates and scores give the same pick, however the candidates are
            divided into parts. The mechanism's own ``select`` may give a different pick for that key.

    Example:
        >>> import dpselect as dps
        >>> from dpselect.mechanisms.partitioned import PartitionedSelection
        >>> selection = PartitionedSelection(dps.GEM(epsilon=5.0), bytes(32))
        >>> parts = [(["a", "b"], [0.0, 9.0], [1.0, 0.5]), (["c"], [1.0], [2.0])]
        >>> summary = selection.merge(selection.summarize(q, d) for _, q, d in parts)
        >>> kept = [selection.contend(summary, names, q, d) for names, q, d in parts]
        >>> selection.decide(contender for part in kept for contender in part)
        'b'

    References:
        docs/theory/partitioned-selection.md
    """

    mechanism: Mechanism
    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        check.require_attributes("mechanism", self.mechanism, "law")
        self._composition(1)  # raises for other laws
        Randomness.keyed(self.key, [0])  # raises for a bad key

    def summarize(self, scores: Numbers, sensitivities: Numbers) -> Summary:
        """Return the summary of one part: flat scores, and one sensitivity for each candidate or one for all.

        Args:
            scores: The scores of the part, flat.
            sensitivities: One for each candidate, or one for all.
        """
        values, widths = self._read(scores, sensitivities)
        return _summary(values, widths, values.size)

    def merge(self, summaries: Iterable[Summary]) -> Summary:
        """Return the summary of several parts together.

        Args:
            summaries: The summaries of the parts.
        """
        parts = list(summaries)
        if not parts:
            raise ValueError("summaries must not be empty: pass the summary of every part")
        values = np.concatenate([part.scores for part in parts])
        widths = np.concatenate([part.sensitivities for part in parts])
        return _summary(values, widths, sum(part.count for part in parts))

    def contend(
        self, summary: Summary, candidates: Sequence[Any] | NDArray[Any], scores: Numbers, sensitivities: Numbers
    ) -> list[Contender]:
        """Return the contenders of one part, given the summary of all parts: none, one, or several that tie.

        Identifiers must be distinct over *all* parts: two candidates with the same identifier would share their
        noise. This method checks it within the part. Check it over all parts yourself, as ``dpselect.engines``
        does.

        Args:
            summary: The summary of all parts together.
            candidates: The identifiers of the part's candidates.
            scores: The scores of the part, flat.
            sensitivities: One for each candidate, or one for all.
        """
        values, widths = self._read(scores, sensitivities)
        if not values.size:
            return []
        if not hasattr(candidates, "__len__") or len(candidates) != values.size:
            raise ValueError(f"candidates must have one identifier for each of the {values.size} scores")
        units = self._stream(candidates).units(values.size)
        standard = self._standard(summary)
        verdicts, priorities = np.empty(values.size, np.int8), np.empty(values.size, np.uint64)
        size = standard.vertex_scores.size
        all_values = np.concatenate([standard.vertex_scores, values])
        all_widths = np.concatenate([standard.vertex_sensitivities, widths])
        rule = standard.composition
        over_rows(
            np.arange(values.size + 1),
            lambda first, last: kernels.partitioned.toss_coins(
                *(first, last, rule.kind == "pairwise", all_values, all_widths, size, standard.leader),
                *(standard.widest, float(rule.tilts[0]), rule.rate, units, self._width, verdicts, priorities),
            ),
            seconds=1e-7,
        )
        for i in np.flatnonzero(verdicts == kernels.coins.UNSURE).tolist():
            passes = self._passes(standard, float(values[i]), float(widths[i]), ExactStream(units, i))
            verdicts[i] = kernels.coins.PASS if passes else kernels.coins.FAIL
        passers = np.flatnonzero(verdicts == kernels.coins.PASS)
        if not passers.size:
            return []
        best = priorities[passers].max()
        kept = passers[priorities[passers] == best].tolist()
        return [Contender(int(best), _address(units.nonces, i), _plain(candidates[i])) for i in kept]

    def decide(self, contenders: Iterable[Contender]) -> Any:
        """Return the pick, from the contenders of all parts.

        Args:
            contenders: The contenders of all parts.
        """
        kept = list(contenders)
        if not kept:
            raise ValueError("contenders must not be empty: pass those of every part; the leader always passes")
        best = max(contender.priority for contender in kept)
        tied = [contender for contender in kept if contender.priority == best]
        if len({contender.address for contender in tied}) < len(tied):
            raise ValueError(
                "contenders must be distinct: two parts hold the same candidate, or a part was passed twice"
            )
        key = self._stream([0]).units(1).key
        units = Units(key, np.array([contender.address for contender in tied], dtype=np.uint32))
        streams = [ExactStream(units, i) for i in range(len(tied))]
        for stream in streams:
            stream.word()  # its coin
        return tied[largest_priority([(i, stream.uniform()) for i, stream in enumerate(streams)])].candidate

    def _stream(self, candidates: Sequence[Any] | NDArray[Any]) -> Randomness:
        return Randomness.keyed(self.key, candidates).serving(f"PartitionedSelection({law_name(self.mechanism)})")

    def _composition(self, count: int) -> NoisyMaxLaw:
        law = self.mechanism.law(np.array([count]))
        if not isinstance(law, NoisyMaxLaw) or law.noise != "exponential":
            raise ValueError(
                "mechanism must be NoisyMax or GEM, of any tilt, with exponential noise; for others, put all"
                " candidates into one table and use select"
            )
        return law

    @property
    def _width(self) -> float:
        """The relative error that the float comparisons allow for; tests widen it."""
        return FILTER_ERROR

    def _read(self, scores: Numbers, sensitivities: Numbers) -> tuple[FloatArray, FloatArray]:
        values = np.asarray(scores)
        if values.ndim != 1:
            raise ValueError("scores must be flat: a part has one number for each candidate")
        if not values.size:
            return np.empty(0), np.empty(0)
        batch = read_batch(scores, sensitivities)
        flat, widths, _ = batch.row(0)
        if batch.rows != 1:
            raise ValueError("sensitivities must be one number for each candidate, or one number for all")
        return flat, widths

    def _standard(self, summary: Summary) -> Standard:
        if not summary.count:
            raise ValueError("summary must be that of all parts (see merge): this one holds no candidates")
        if summary.count > MOST_CANDIDATES:
            raise ValueError("scores must hold at most 2^32 candidates in all parts together")
        rule = self._composition(summary.count)
        t = Fraction(float(rule.tilts[0]))
        widths = [Fraction(float(width)) for width in summary.sensitivities]
        heights = [Fraction(float(q)) - t * width for q, width in zip(summary.scores, widths, strict=True)]
        hull = upper_hull(widths, heights)
        heights_on_hull = [height for _, height in hull]
        return Standard(
            composition=rule,
            hull=hull,
            vertex_scores=np.array(
                [float(height + t * width) for width, height in hull]
            ),  # exactly the scores again
            vertex_sensitivities=np.array([float(width) for width, _ in hull]),
            leader=heights_on_hull.index(max(heights_on_hull)),
            widest=summary.widest,
        )

    def _passes(self, standard: Standard, score: float, width: float, stream: ExactStream) -> bool:
        """Toss a candidate's coin in exact arithmetic."""
        rule = standard.composition
        height = Fraction(score) - Fraction(float(rule.tilts[0])) * Fraction(width)
        gap: Fraction | None
        if rule.kind == "pairwise":
            lost = width == 0 and height < standard.hull[0][1]
            gap = None if lost else pairwise_gap(height, Fraction(width), standard.hull)
        else:
            distance = standard.hull[standard.leader][1] - height
            gap = (
                distance / Fraction(standard.widest) if standard.widest else Fraction(0) if distance == 0 else None
            )
        return gap is not None and bernoulli_exp(stream.uniform(), gap * Fraction(rule.rate))


def _summary(values: FloatArray, widths: FloatArray, count: int) -> Summary:
    if not values.size:
        return Summary(0, 0.0, values, widths)
    points = np.empty(values.size, dtype=np.int64)
    columns = (values.view(), widths.view())
    for column in columns:
        column.flags.writeable = False  # the same type for all parts, so the kernel is compiled once
    size = kernels.partitioned.hull_points(*columns, np.argsort(widths), points)
    kept = points[:size]
    return Summary(count, float(widths.max()), values[kept], widths[kept])


def _address(nonces: WordArray, row: int) -> tuple[int, int, int]:
    first, second, third = nonces[row].tolist()
    return first, second, third


def _plain(identifier: Any) -> Any:
    return identifier.item() if isinstance(identifier, np.generic) else identifier
