"""What an experiment is: tables first, then what is drawn, said and claimed from them alone."""

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
    """How finely to compute: everything that the fast mode makes coarser, and nothing else."""

    description: str
    full: bool
    """Whether there are trials and steps enough for the verdicts that rest on them."""
    formats: tuple[str, ...]
    """How figures are written; the report shows SVG, and PDF takes as long as the others together."""
    epsilon_points: int
    """How many values of ε from 0.01 to 100; one more than a multiple of 4 hits each power of ten."""
    trials: int
    """How many score sets are averaged over, where scores vary between trials."""
    slow_trials: int
    """The same for mechanisms whose exact law takes about a millisecond a row: random stopping, RNMH."""
    resolution: int
    """How many cells a heat map has to a side, and how many points a curve over a parameter."""
    audit_restarts: int
    """How many ascents a search for the largest privacy loss runs."""
    bandit_steps: int
    """How long a bandit plays: a multiple of 125."""
    bandit_worlds: int
    """How often it plays."""


FULL = Effort(
    description="full: 25 values of ε, 5000 trials (200 for random stopping and RNMH), 50,000 bandit steps",
    full=True,
    formats=("svg", "png", "pdf"),
    epsilon_points=25,
    trials=5000,
    slow_trials=200,
    resolution=33,
    audit_restarts=16,
    bandit_steps=50_000,
    bandit_worlds=20,
)
FAST = Effort(
    description="fast: 9 values of ε, 60 trials (4 for random stopping and RNMH), 1,250 bandit steps, SVG alone",
    full=False,
    formats=("svg",),
    epsilon_points=9,
    trials=60,
    slow_trials=4,
    resolution=17,
    audit_restarts=2,
    bandit_steps=1_250,
    bandit_worlds=6,
)


@dataclass(frozen=True, kw_only=True)
class Task:
    """One step of an experiment: it computes some rows of one table.

    Its result is kept and used again by later runs, until the code that it can reach changes.
    """

    label: str
    """Says what is computed; unique within the experiment and table, as results are kept under it."""
    table: str
    compute: Callable[[], pa.Table]
    inputs: str = ""
    """What else the result depends on, besides label, effort and code: a data file's checksum, for example."""


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """A small table for readers: columns in groups, a row for each mechanism."""

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
class Listing:
    """A small table of words for readers."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    """The first entry of each names the row."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One figure of the report: how its tables are computed, drawn, put into numbers, and held against claims."""

    name: str
    """Names the files and the place in the report."""
    title: str
    caption: str
    description: str
    """What the figure shows, for readers who cannot see it."""
    choices: Mapping[str, str]
    """The parameters, and the choices made where the paper leaves room."""
    plan: Callable[[Effort], Sequence[Task]]
    draw: Callable[[Tables], Figure]
    count: Callable[[Tables], Numbers] | None = None
    list: Callable[[Tables], Listing | Sequence[Listing]] | None = None
    discussion: Sequence[str] = ()
    """Paragraphs below the figure, where a caption is not enough."""
    claims: Sequence[Claim] = ()
    """The claims of the paper that its tables decide."""
