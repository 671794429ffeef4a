"""The one shape of an experiment: it computes tables, and everything shown or claimed is made from them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from matplotlib.figure import Figure

from experiments.ledger import Claim
from experiments.mechanisms import STYLES
from experiments.tables import Tables

__all__ = ["FAST", "FULL", "Effort", "Experiment", "Listing", "Numbers", "Task"]


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How finely to compute: exactly the settings that the fast mode makes coarser."""

    description: str
    full: bool
    """Whether there are enough trials and steps for the verdicts that rest on them."""
    formats: tuple[str, ...]
    """The file formats of figures. The report shows SVG; PDF takes as long as the others together."""
    epsilon_points: int
    """The number of values of ε from 0.01 to 100. One more than a multiple of 4 hits each power of ten."""
    trials: int
    """The number of score sets to average over, where scores vary between trials."""
    slow_trials: int
    """The same for random stopping and naive noisy max, whose exact pmf takes about a millisecond a row."""
    resolution: int
    """The number of cells along a side of a heat map, and of points on a curve over a parameter."""
    audit_restarts: int
    """The number of ascents in a search for the largest privacy loss."""


FULL = Effort(
    description="full: 25 values of ε, 5000 trials (200 for random stopping and naive noisy max), 50,000 bandit "
    "steps",
    full=True,
    formats=("svg", "png", "pdf"),
    epsilon_points=25,
    trials=5000,
    slow_trials=200,
    resolution=33,
    audit_restarts=16,
)
FAST = Effort(
    description="fast: 9 values of ε, 60 trials (4 for random stopping and naive noisy max), SVG only; the "
    "bandits’ numbers are those of an earlier full run",
    full=False,
    formats=("svg",),
    epsilon_points=9,
    trials=60,
    slow_trials=4,
    resolution=17,
    audit_restarts=2,
)


@dataclass(frozen=True, kw_only=True)
class Task:
    """One step of an experiment: it computes some rows of one table.

    Later runs reuse its result until any code that it can reach changes.
    """

    label: str
    """Says what is computed. Unique within the experiment and table, since it names the kept result."""
    table: str
    compute: Callable[[], pa.Table]
    inputs: str = ""
    """What the result depends on besides label, effort and code: a data file's checksum, for example."""


@dataclass(frozen=True, kw_only=True)
class Listing:
    """A small table of words for readers."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    """The first entry of each names the row."""


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """A small table of numbers for readers: columns in groups, a row for each mechanism."""

    caption: str
    groups: Sequence[str]
    columns: Sequence[str]
    """The columns, the same ones under each group."""
    values: Mapping[str, Sequence[float]]
    """The numbers of each mechanism, for all columns of all groups."""

    def is_best(self, mechanism: str, position: int) -> bool:
        """Return whether a number is the lowest of all private mechanisms' in its column."""
        rivals = (row[position] for name, row in self.values.items() if STYLES[name].private)
        return STYLES[mechanism].private and self.values[mechanism][position] == min(rivals)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One section of the report: the tables it computes, and the figure, listings and verdicts made from them."""

    name: str
    """Names the files and the place in the report."""
    title: str
    caption: str
    """What to see. ``numbers`` fills its braces."""
    description: str
    """What the figure shows, for readers who cannot see it."""
    notes: Mapping[str, str]
    """The parameters, and the choices made where the paper leaves room."""
    plan: Callable[[Effort], Sequence[Task]]
    draw: Callable[[Tables], Figure]
    listings: Callable[[Tables], Sequence[Listing | Numbers]] = lambda _: ()
    numbers: Callable[[Tables], Mapping[str, str]] = lambda _: {}
    """The numbers of the caption, read from the tables."""
    discussion: Sequence[str] = ()
    """Paragraphs below the figure, where a caption is not enough."""
    claims: Sequence[Claim] = ()
    """The claims of the paper that its tables decide."""
