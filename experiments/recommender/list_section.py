"""The section on private lists: its figure, its tables and what to take from them, all read from the table."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from matplotlib.figure import Figure

import dpselect as dps
from experiments import drawing
from experiments.experiment import Effort, Experiment, Listing, Task
from experiments.mechanisms import BETA, STYLES, Style
from experiments.recommender.lists import COUNT, DELTA, MOST_TUNING, TUNING_SHARE
from experiments.recommender.live import TITLE
from experiments.recommender.private import STRONGLY_TILTED
from experiments.tables import Tables, unique, where

__all__ = ["draw", "listings", "numbers", "section", "take_away"]

REFERENCES = ("random", "public")
"""They cost no budget."""
GOOD, LITTLE = 0.9, 0.1
"""The relative score of a good list, and a difference that is little."""
IN_TABLE = (10.0, 100.0)
"""The total ε of the table."""


def _tilted(name: str, marker: str, dashes: tuple[float, ...]) -> Style:
    record = dps.MECHANISMS[STRONGLY_TILTED[name]]
    label = f"{record.symbol.removeprefix('tilted ')}, tilt −8"
    return Style(label=label, description=record.description, color=record.color, marker=marker, dashes=dashes)


SHOWN: Mapping[str, Style] = MappingProxyType(
    {
        **{name: STYLES[name] for name in ("rnm", "heterogeneous-rnm", "gem", "mgem", "krr")},
        "gem-tilt-8": _tilted("gem-tilt-8", "<", (6, 1.5)),
        "rnm-tilt-8": _tilted("rnm-tilt-8", ">", (2, 1)),
        "tuned": Style(label="tuned", description="tuned for all users", color="#b5525c", marker="D"),
        "opendp": Style(label="OpenDP", description="make_noisy_top_k", color="#7a6ff0", marker="x", dashes=(4, 3)),
        "public": Style(
            label="public midpoints (ε = 0)", description="no scores", color="#3aa655", marker="", dashes=(1, 1.5)
        ),
        "random": replace(STYLES["uniform"], label="random (ε = 0)", dashes=(1, 3)),
    }
)
"""How each way to make a list is named and drawn."""


DRAWN = ("heterogeneous-rnm", "rnm", "mgem", "krr", "public")
"""The curves of the figure. The table has the others."""
PANELS, COLUMNS = 6, 3
"""The most data sets that are drawn, real ones first, and how many in a row."""


def draw(data: Tables) -> Figure:
    """Draw the score of lists, a panel for each data set."""
    table = where(data["lists"], delta=0.0)
    runs = sorted(unique(table, "run"), key=lambda run: run == TITLE)[:PANELS]
    columns = min(COLUMNS, len(runs))
    rows = -(-len(runs) // columns)
    figure, panels = drawing.grid(rows=rows, columns=columns, heights=[2.3] * rows, width=3.7)
    for run, panel in zip(runs, panels.flat, strict=False):
        own = where(table, run=run)
        for name in DRAWN:
            curve = where(own, mechanism=name)
            panel.plot(curve["epsilon"].to_numpy(), curve["score"].to_numpy(), **drawing.line(SHOWN[name]))
        panel.set(title=run, xscale="log", ylim=(-0.04, 1.04), xlabel="total ε of the list")
        drawing.plain_numbers(panel.xaxis)
        panel.set_xticks(unique(own, "epsilon"))
    for panel in panels.flat[len(runs) :]:
        panel.set_axis_off()
    for panel in panels[:, 0]:
        panel.set_ylabel(f"score over the best {COUNT}’s")
    drawing.bottom_legend(figure, [drawing.handle(SHOWN[name]) for name in DRAWN], columns=3)
    return figure


def numbers(data: Tables) -> Mapping[str, str]:
    """Return the scores of the caption: those of the larger ε of the table."""
    found = _Found([row for row in _real(data["lists"]) if row["delta"] == 0])
    at = max(set(IN_TABLE) & set(found.epsilons), default=found.epsilons[-1])
    scores = {name: _span(found.values(name, "score", at)) for name in DRAWN}
    return {
        "epsilon": f"{at:g}",
        "pick": f"{at / COUNT:g}",
        "default": scores["heterogeneous-rnm"],
        **{name: scores[name] for name in DRAWN[1:]},
    }


def listings(data: Tables) -> list[Listing]:
    """Return the numbers with what to take from them, what δ buys, and where the numbers come from."""
    table = data["lists"]
    return [_qualities(table), *_deltas(table), _origins(data)]


def take_away(table: pa.Table) -> str:
    """Return two sentences for users: from which ε on a list is good, and what decides it below."""
    found = _Found([row for row in _real(table) if row["delta"] == 0])
    good = next((e for e in found.epsilons if min(found.best("score", e)) >= GOOD), None)
    if good is None:
        most = found.epsilons[-1]
        first = (
            f"Even at a total ε of {most:g}, no list has {GOOD:.0%} of the best {COUNT}’s score on every data set."
        )
        return f"{first} There, {_scores(found, most)}"
    others = ", ".join(
        f"{_span(found.values(name, 'score', good))} by {SHOWN[name].label}"
        for name in ("heterogeneous-rnm", "rnm", "opendp")
    )
    names, score, recall = (
        _names(found.winners("score", good)),
        found.best("score", good),
        found.best("recall", good),
    )
    first = (
        f"From a total ε of {good:g} on, a private list is nearly as good as the best {COUNT} on every data set, "
        f"if {names} makes it: it has {_span(score)} of their score (recall@{COUNT} {_span(recall)}), but {others}."
    )
    below = [e for e in found.epsilons if e < good]
    if not below:
        return first
    gains = zip(found.best("score", below[-1]), found.values("public", "score", below[-1]), strict=True)
    little = max(best - public for best, public in gains) < LITTLE
    lead = "private scores add little to public ranges" if little else "lists are worse"
    return f"{first} With less, {lead}: at ε = {below[-1]:g} {_scores(found, below[-1])}"


def _scores(found: "_Found", epsilon: float) -> str:
    public, rnm, random = (_span(found.values(name, "score", epsilon)) for name in ("public", "rnm", "random"))
    best, names = _span(found.best("score", epsilon)), _names(found.winners("score", epsilon))
    return (
        f"the best list, by {names}, has {best} of the score of the best {COUNT}; public midpoints have {public} "
        f"without any budget, {SHOWN['rnm'].label} {rnm} and a random list {random}."
    )


class _Found:
    """The rows of some data sets at δ = 0."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._rows = {(row["run"], row["mechanism"], row["epsilon"]): row for row in rows}
        self._runs = list(dict.fromkeys(row["run"] for row in rows))
        self._private = [name for name in dict.fromkeys(r["mechanism"] for r in rows) if name not in REFERENCES]
        self.epsilons: list[float] = sorted({row["epsilon"] for row in rows})

    def values(self, name: str, measure: str, epsilon: float) -> list[float]:
        """Return a measure on each data set."""
        return [self._rows[run, name, epsilon][measure] for run in self._runs]

    def best(self, measure: str, epsilon: float) -> list[float]:
        """Return the highest measure of a private mechanism on each data set."""
        return [max(column) for column in zip(*self._by_name(measure, epsilon).values(), strict=True)]

    def winners(self, measure: str, epsilon: float) -> list[str]:
        """Return which private mechanisms have the highest measure on some data set."""
        columns = self._by_name(measure, epsilon)
        places = range(len(self._runs))
        return list(dict.fromkeys(max(columns, key=lambda name: columns[name][place]) for place in places))

    def _by_name(self, measure: str, epsilon: float) -> dict[str, list[float]]:
        return {name: self.values(name, measure, epsilon) for name in self._private}


def _real(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows on real data, or those on synthetic data if there are no others."""
    rows: list[dict[str, Any]] = table.to_pylist()
    return [row for row in rows if row["run"] != TITLE] or rows


def _names(mechanisms: Iterable[str]) -> str:
    return " or ".join(SHOWN[name].label for name in mechanisms)


def _span(values: Iterable[float]) -> str:
    """Return the smallest and the largest of some shares: "0.47 to 0.83"."""
    low, *_, high = sorted([*values] * 2)
    return f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f}"


def _qualities(table: pa.Table) -> Listing:
    rows = where(table, delta=0.0).to_pylist()
    runs = list(dict.fromkeys(row["run"] for row in rows))
    shown = [e for e in IN_TABLE if e in {row["epsilon"] for row in rows}]
    found = {(row["run"], row["mechanism"], row["epsilon"]): row for row in rows}

    def cell(run: str, name: str) -> str:
        parts = (found[run, name, epsilon] for epsilon in shown)
        return " → ".join(f"{row['score']:.2f}, {row['recall']:.2f}, {row['ndcg']:.2f}" for row in parts)

    return Listing(
        caption=f"{take_away(table)} The table: the mean score of a list over that of the best {COUNT}, "
        f"recall@{COUNT} and NDCG@{COUNT}, at a total of ε = {' → '.join(f'{e:g}' for e in shown)}.",
        columns=["", *runs],
        rows=[
            [style.label, *(cell(run, name) for run in runs)]
            for name, style in SHOWN.items()
            if all((run, name, epsilon) in found for run in runs for epsilon in shown)
        ],
    )


def _deltas(table: pa.Table) -> list[Listing]:
    """Return what each pick may cost at a δ, and by how much that changes the score of a list."""
    rows = _real(table)
    found = {(row["run"], row["mechanism"], row["epsilon"], row["delta"]): row for row in rows}
    pairs = [
        (found[run, name, epsilon, 0.0], row) for (run, name, epsilon, delta), row in found.items() if delta > 0
    ]
    if not pairs:
        return []
    error = max(row["score_error"] for row in rows if row["mechanism"] != "opendp")
    listed = []
    for epsilon in sorted({row["epsilon"] for row in rows}):
        some = [pair for pair in pairs if pair[1]["epsilon"] == epsilon]
        if some:
            gains = [loose["score"] - pure["score"] for pure, loose in some if pure["mechanism"] != "opendp"]
            own = [loose["pick_epsilon"] for _, loose in some if loose["mechanism"] != "opendp"]
            other = [loose["pick_epsilon"] for _, loose in some if loose["mechanism"] == "opendp"]
            listed.append(
                [
                    f"{epsilon:g}",
                    f"{epsilon / COUNT:g}",
                    f"{max(own):.3g}" if own else "–",
                    f"{max(other):.3g}" if other else "–",
                    f"{min(gains):+.3f} to {max(gains):+.3f}" if gains else "–",
                ]
            )
    return [
        Listing(
            caption=f"What δ = {DELTA:g} buys: the ε of a pick with Gumbel noise, where it exceeds that of pure DP "
            "by 1 %, and how the relative score changes if it replaces exponential noise at δ = 0: the least and "
            "the most over all data sets and mechanisms of dpselect. A score has a standard error of up to "
            f"{error:.2f}.",
            columns=["total ε", "a pick, δ = 0", "a pick", "a pick, OpenDP", "change of the score"],
            rows=listed,
        )
    ]


def _origins(data: Tables) -> Listing:
    facts = data["facts"].to_pylist() if "facts" in data else []
    known = {(row["run"], row["name"]): row["value"] for row in facts}
    rows = where(data["lists"], delta=0.0).to_pylist()
    runs = list(dict.fromkeys(row["run"] for row in rows))
    chosen = {(row["run"], row["epsilon"]): row["chosen"] for row in rows if row["mechanism"] == "tuned"}
    users = {(row["run"], row["mechanism"]): row["users"] for row in rows}
    shown = [e for e in IN_TABLE if e in {row["epsilon"] for row in rows}]
    return Listing(
        caption="What tuning chooses most often, for how many users the lists were drawn, and when.",
        columns=["dataset", *(f"tuned, ε = {e:g}" for e in shown), "users", "OpenDP’s users", "commit", "date"],
        rows=[
            [
                run,
                *(chosen[run, e] for e in shown),
                f"{users[run, 'rnm']:,}",
                f"{users[run, 'opendp']:,}",
                known.get((run, "lists_commit"), "–")[:10],
                known.get((run, "lists_date"), "with this report"),
            ]
            for run in runs
        ],
    )


def section(plan: Callable[[Effort], Sequence[Task]]) -> Experiment:
    """Return the section, whose tables the plan computes."""
    return Experiment(
        name="recommender-lists",
        title=f"Private lists of {COUNT} recommendations",
        caption=f"The score of a private list of {COUNT} over that of the best {COUNT}, by the ε of the whole "
        f"list. Each of the {COUNT} picks costs a {COUNT}th of it. At a total ε of {{epsilon}}, so {{pick}} for a "
        "pick, kRR’s lists have {krr} of the best list’s score, mGEM’s {mgem}, those of heterogeneous noisy max "
        "{default}, and RNM’s {rnm}. The dotted list looks at no scores and has {public}.",
        description="A panel for each dataset, on the same axes: the score of the list over that of the best "
        "list, from 0 to 1, against the total ε. Four mechanisms, and a list of public midpoints.",
        notes={
            "lists": (
                f"peeling: a pick is taken out and the next is drawn from the rest ({COUNT} of 500 candidates, "
                "clipped scores); one list for each of 1,000 users drawn at random, or of all if there are fewer"
            ),
            "recall": (
                f"the share of the list that is among the {COUNT} highest scores; ties with the last of them count"
            ),
            "NDCG": "the gain of a candidate is its score above the lowest of the user’s 500",
            "tilted, mGEM, GEM": f"β = {BETA}; GEM has tilt 1 and mGEM tilt −1",
            "tuned": (
                f"{TUNING_SHARE:.0%} of ε, at most {MOST_TUNING:g}, chooses one mechanism for all users by "
                "the mean regret of drawn lists, among GEM and noisy max at eight tilts each, kRR and "
                "heterogeneous noisy max; the rest is for the list; expected quality over the choice; where the "
                "choice is standardized noisy max, an earlier version with a larger pool computed the table"
            ),
            "OpenDP": (
                "make_noisy_top_k with each user’s largest sensitivity, for 100 of the users; it peels as well, "
                "with exponential noise, so it has nearly the law of RNM"
            ),
            "public midpoints": f"the {COUNT} candidates with the highest midpoints of their ranges",
        },
        plan=plan,
        draw=draw,
        listings=listings,
        numbers=numbers,
        discussion=(
            (
                "These numbers compare mechanisms. No budget pays for the ranges or for the choice of a user’s 500 "
                "candidates, as in the paper."
            ),
            (
                "Recall says little where scores tie. On Amazon Books at density 5e-5 many users have fewer than "
                f"{COUNT} positive scores after clipping, so even a random list finds many of their best {COUNT}. "
                "The score tells lists apart."
            ),
        ),
    )
