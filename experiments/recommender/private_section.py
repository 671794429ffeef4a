"""The sections that are private from end to end: single picks and lists, all read from their tables."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments import drawing
from experiments.arrays import FloatArray
from experiments.experiment import Listing
from experiments.ledger import Claim, Finding, Verdict
from experiments.mechanisms import PAPER, STYLES, Style
from experiments.recommender.private import COUNT
from experiments.tables import Tables, unique, where

__all__ = [
    "BEST",
    "CLAIMS",
    "LIST_CLAIMS",
    "LIST_STYLES",
    "PICK_STYLES",
    "best_of_paper",
    "draw_lists",
    "draw_picks",
    "list_listings",
    "list_numbers",
    "over_random",
    "pick_handles",
    "pick_listings",
    "pick_numbers",
    "picks",
]

BEST = "best of the paper’s"
STATED = 4.0
"""The ε whose numbers the captions state."""

TOP_SHARE = STYLES["top-share"]
PICK_STYLES: Mapping[str, Style] = MappingProxyType(
    {
        BEST: Style(label=BEST, description="the least error at each ε", color="#332288", marker="s"),
        "heterogeneous-rnm": STYLES["heterogeneous-rnm"],
        "top-share": replace(TOP_SHARE, label="top share by rule", marker="o"),
        "top-share-taught": replace(
            TOP_SHARE, label="top share, taught by released picks", color="#26806f", marker="^", dashes=(2, 1)
        ),
        "top-share-fitted": replace(
            TOP_SHARE, label="top share, fitted on public users", color="#0b5345", marker="D", dashes=()
        ),
    }
)
"""The curves of single picks: top share in three shades. A random pick is a line at 1."""

LIST_STYLES: Mapping[str, Style] = MappingProxyType(
    {
        "public-lists": replace(PICK_STYLES["top-share-fitted"], label="top share among public lists"),
        "top-set": Style(
            label="random sets (TopSet)", description="one set", color="#b5525c", marker="^", dashes=(2, 1)
        ),
        "peeling": Style(
            label="ten picks from a shortlist", description="peeling", color="#332288", marker="s", dashes=(6, 1.5)
        ),
        "opendp": Style(
            label="OpenDP, 500 items", description="make_noisy_top_k", color="#7a6ff0", marker="x", dashes=(4, 3)
        ),
        "popular": Style(
            label="best public list (ε = 0)",
            description="no scores",
            color="#999933",
            marker="",
            dashes=(1, 1.5),
        ),
    }
)
"""The curves of lists."""

MOST_SHOWN = 12.0
"""Below ε = 1 all errors are near a random pick's, and beyond this they are near 0."""
IN_TABLE = (1.0, 2.0, 4.0, 6.0, 8.0, 12.0)
LISTS_IN_TABLE = (1.0, 4.0, 8.0, 10.0, 20.0, 30.0)


def best_of_paper(table: pa.Table) -> pa.Table:
    """Return the least error of the paper's mechanisms at each ε, given one run's rows of one protocol."""
    rows = [row for row in table.to_pylist() if row["mechanism"] in PAPER and row["mechanism"] != "uniform"]
    epsilons = sorted({row["epsilon"] for row in rows})
    least = (min((r for r in rows if r["epsilon"] == e), key=lambda r: r["mean_squared_error"]) for e in epsilons)
    return pa.Table.from_pylist(list(least))


def over_random(table: pa.Table, mechanism: str) -> tuple[FloatArray, FloatArray]:
    """Return the values of ε, and the error of a mechanism over a random pick's, under the private protocol."""
    private = where(table, protocol="private")
    unit = where(private, mechanism="uniform")["mean_squared_error"].to_numpy().mean()
    curve = best_of_paper(private) if mechanism == BEST else where(private, mechanism=mechanism)
    return curve["epsilon"].to_numpy(), curve["mean_squared_error"].to_numpy() / unit


def picks(panel: Axes, table: pa.Table) -> None:
    """Draw the errors of one run."""
    for mechanism, style in PICK_STYLES.items():
        epsilons, values = over_random(table, mechanism)
        shown = (epsilons >= 1) & (epsilons <= MOST_SHOWN)
        panel.plot(epsilons[shown], values[shown], **drawing.line(style))
    panel.axhline(1, color=STYLES["uniform"].color, linestyle=":")
    panel.set_ylim(0, 1.08)


def pick_handles() -> list[Line2D]:
    """Return the entries of the legend."""
    random = drawing.handle(STYLES["uniform"], marker="", linestyle=":")
    return [*map(drawing.handle, PICK_STYLES.values()), random]


def draw_picks(data: Tables) -> Figure:
    """Draw a panel for each run: the error of one pick over a random pick's."""
    return _panels(data["private"], picks, "error over a random pick’s", "privacy budget ε", pick_handles())


def draw_lists(data: Tables) -> Figure:
    """Draw a panel for each run: the score of a list over the best possible."""

    def curves(panel: Axes, table: pa.Table) -> None:
        for name, style in LIST_STYLES.items():
            curve = where(table, mechanism=name)
            panel.plot(curve["epsilon"].to_numpy(), curve["score"].to_numpy(), **drawing.line(style))
        panel.set_ylim(0, 1)

    handles = [drawing.handle(style) for style in LIST_STYLES.values()]
    return _panels(data["private_lists"], curves, f"score over the best {COUNT}’s", "total ε of the list", handles)


def _panels(
    table: pa.Table, draw: Callable[[Axes, pa.Table], None], label: str, below: str, handles: Sequence[Line2D]
) -> Figure:
    runs = unique(table, "run")
    columns = min(2, len(runs))
    rows = -(-len(runs) // columns)
    figure, panels = drawing.grid(rows=rows, columns=columns, heights=[2.3] * rows, width=4.6)
    for run, panel in zip(runs, panels.flat, strict=False):
        draw(panel, where(table, run=run))
        panel.set_title(run)
    for panel in panels.flat[len(runs) :]:
        panel.set_axis_off()
    for panel in panels[:, 0]:
        panel.set_ylabel(label)
    for panel in panels[-1]:
        panel.set_xlabel(below)
    drawing.bottom_legend(figure, handles, columns=3)
    return figure


def _found(table: pa.Table, value: str) -> dict[tuple[str, str, float], float]:
    return {(row["run"], row["mechanism"], row["epsilon"]): row[value] for row in table.to_pylist()}


def _errors(data: Tables) -> dict[tuple[str, str, float], float]:
    """Return errors under the private protocol, also of the best of the paper's mechanisms."""
    private = where(data["private"], protocol="private")
    found = _found(private, "mean_squared_error")
    for run in unique(private, "run"):
        for row in best_of_paper(where(private, run=run)).to_pylist():
            found[run, BEST, row["epsilon"]] = row["mean_squared_error"]
    return found


def _stated(epsilons: Iterable[float]) -> float:
    """Return the stated ε, or the next one of a coarser table."""
    known = sorted(set(epsilons))
    return next((each for each in known if each >= STATED), known[-1])


def pick_numbers(data: Tables) -> Mapping[str, str]:
    """Return the errors of the first run at the stated ε, and the gain of each run."""
    found = _errors(data)
    runs = unique(data["private"], "run")
    at = _stated(epsilon for _, _, epsilon in found)
    first = runs[0]
    errors = {name: found[first, name, at] for name in (BEST, *PICK_STYLES, "uniform")}
    gains = [f"{found[run, BEST, at] / found[run, 'top-share-fitted', at]:.1f} times on {run}" for run in runs]
    return {
        "run": first,
        "epsilon": f"{at:g}",
        "random": f"{errors['uniform']:.2g}",
        "paper": f"{errors[BEST]:.2g}",
        "default": f"{errors['heterogeneous-rnm']:.2g}",
        "rule": f"{errors['top-share']:.2g}",
        "taught": f"{errors['top-share-taught']:.2g}",
        "fitted": f"{errors['top-share-fitted']:.2g}",
        "gains": ", ".join(gains),
    }


def list_numbers(data: Tables) -> Mapping[str, str]:
    """Return the scores of the first run's lists."""
    found = _found(data["private_lists"], "score")
    first = unique(data["private_lists"], "run")[0]
    at = _stated(epsilon for _, _, epsilon in found)
    scores = {name.replace("-", "_"): f"{found[first, name, at]:.2f}" for name in LIST_STYLES}
    return {"run": first, "epsilon": f"{at:g}", **scores}


def pick_listings(data: Tables) -> list[Listing]:
    """Return all errors, both protocols, and each mechanism beside the top share that dominates it."""
    found, runs = _errors(data), unique(data["private"], "run")
    epsilons = [e for e in IN_TABLE if (runs[0], "uniform", e) in found]
    labels = {name: style.label for name, style in PICK_STYLES.items()} | {
        "top-share-popular": "all items, weights by popularity",
        "best-public": "always the best public item (ε = 0)",
        "uniform": "random (ε = 0)",
    }
    errors = {(row["run"], row["mechanism"], row["epsilon"]): row for row in data["private"].to_pylist()}
    users = {run: errors[run, "uniform", epsilons[0]]["users"] for run in runs}
    return [
        Listing(
            caption="Mean squared shortfall from the best unseen item, private from end to end, at ε = "
            f"{' / '.join(f'{e:g}' for e in epsilons)}. Users: "
            + ", ".join(f"{count:,} of {run}" for run, count in users.items())
            + ".",
            columns=["", *runs],
            rows=[
                [label, *(" / ".join(f"{found[run, name, e]:.2g}" for e in epsilons) for run in runs)]
                for name, label in labels.items()
            ],
        ),
        _protocols(data),
        _dominated(data),
    ]


def _protocols(data: Tables) -> Listing:
    table = data["private"]
    at = _stated(table["epsilon"].to_pylist())
    found = {(r["run"], r["mechanism"], r["protocol"]): r for r in table.to_pylist() if r["epsilon"] == at}
    runs = unique(table, "run")
    names = [name for name in STYLES if (runs[0], name, "paper") in found]

    def cell(run: str, name: str) -> str:
        paper, private = (found[run, name, protocol] for protocol in ("paper", "private"))
        errors = " → ".join(f"{row['mean_squared_error']:.2g}" for row in (paper, private))
        return f"{errors} (±{2 * private['standard_error']:.1g}; seen {private['seen_share']:.1%})"

    return Listing(
        caption=f"Mean squared shortfall at ε = {at:g}: under the paper’s protocol → under the private one. In "
        "brackets: two standard errors over users, and how often the private one picks an item that the user has "
        "seen.",
        columns=["", *runs],
        rows=[[STYLES[name].label, *(cell(run, name) for run in runs)] for name in names],
    )


def _dominated(data: Tables) -> Listing:
    table = data["dominated"]
    at = _stated(table["epsilon"].to_pylist())
    rows = [row for row in table.to_pylist() if row["epsilon"] == at]
    runs = unique(table, "run")
    found = {(row["run"], row["mechanism"]): row for row in rows}
    names = [name for name in STYLES if (runs[0], name) in found]

    def cell(run: str, name: str) -> str:
        row = found[run, name]
        return f"{row['mean_squared_error']:.2g} → {row['dominating']:.2g} (at most {row['largest_ratio']:.2f})"

    return Listing(
        caption=f"Each mechanism → the top share that dominates it, at ε = {at:g}: its weights are the mechanism’s "
        "least probabilities over the public ranges. In brackets: the largest ratio of the two errors of any "
        "user. GEM, mGEM and combined GEM: the least probabilities found by a search.",
        columns=["", *runs],
        rows=[[STYLES[name].label, *(cell(run, name) for run in runs)] for name in names],
    )


def list_listings(data: Tables) -> list[Listing]:
    """Return all scores, and what public users chose."""
    table = data["private_lists"]
    found = {(row["run"], row["mechanism"], row["epsilon"]): row for row in table.to_pylist()}
    runs = unique(table, "run")
    epsilons = [e for e in LISTS_IN_TABLE if (runs[0], "random", e) in found]
    labels = {name: style.label for name, style in LIST_STYLES.items()} | {
        "opendp-shortlist": "OpenDP, the shortlist of peeling",
        "random": f"random {COUNT} of 500 (ε = 0)",
    }

    def cell(run: str, name: str) -> str:
        return " / ".join(f"{found[run, name, e]['score']:.2f}" for e in epsilons)

    largest = max(row["score_error"] for row in table.to_pylist() if not row["mechanism"].startswith("opendp"))
    return [
        Listing(
            caption=f"The score of a list over that of the user’s best {COUNT}, at a total ε of "
            f"{' / '.join(f'{e:g}' for e in epsilons)}. Standard errors are at most {largest:.3f}, and more for "
            "OpenDP, whose lists were drawn for fewer users.",
            columns=["", *runs],
            rows=[[label, *(cell(run, name) for run in runs)] for name, label in labels.items()],
        ),
        Listing(
            caption="What public users chose for each total ε.",
            columns=["", *runs],
            rows=[
                [f"{LIST_STYLES[name].label}, ε = {e:g}", *(found[run, name, e]["setting"] for run in runs)]
                for name in ("public-lists", "top-set", "peeling")
                for e in epsilons
            ],
        ),
    ]


def _new(measured: str, comment: str) -> Finding:
    return Finding(verdict=Verdict.NEW, measured=measured, comment=comment)


def _n1(data: Tables) -> Finding:
    found, runs = _errors(data), unique(data["private"], "run")
    epsilons = [e for e in IN_TABLE if (runs[0], "uniform", e) in found]
    said = [
        f"{run} at ε = {', '.join(f'{e:g}' for e in epsilons)}: "
        + "; ".join(
            f"{label} {', '.join(f'{found[run, name, e]:.2g}' for e in epsilons)}"
            for name, label in ((BEST, BEST), ("top-share", "by rule"), ("top-share-fitted", "fitted"))
        )
        for run in runs
    ]
    ahead = {run: [e for e in epsilons if found[run, BEST, e] < found[run, "top-share-fitted", e]] for run in runs}
    behind = "; ".join(f"{run} at ε = {', '.join(f'{e:g}' for e in each)}" for run, each in ahead.items() if each)
    return _new(
        ". ".join(said) + ".",
        "Mean squared shortfall, private from end to end, on held-out users."
        + (f" The best of the paper’s is better than fitted weights on {behind}." if behind else ""),
    )


def _n2(data: Tables) -> Finding:
    rows = data["dominated"].to_pylist()
    worst, inside = max(rows, key=lambda row: row["largest_ratio"]), min(row["within"] for row in rows)
    return _new(
        f"Over {len(rows)} rows of a dataset, a mechanism and an ε, no user’s error is more than "
        f"{worst['largest_ratio']:.3f} times the mechanism’s. The theorem’s condition holds at {inside:.1%} to "
        "100% of the users’ rows.",
        "For GEM, mGEM and combined GEM the least probabilities come from a search; for the others they are exact.",
    )


def _n3(data: Tables) -> Finding:
    found = _found(data["private_lists"], "score")
    runs = unique(data["private_lists"], "run")
    epsilons = [e for e in LISTS_IN_TABLE if (runs[0], "random", e) in found]
    said = [
        f"{run} at ε = {', '.join(f'{e:g}' for e in epsilons)}: "
        + "; ".join(
            f"{LIST_STYLES[name].label} {', '.join(f'{found[run, name, e]:.2f}' for e in epsilons)}"
            for name in ("public-lists", "top-set", "peeling")
        )
        for run in runs
    ]
    return _new(". ".join(said) + ".", f"The score over that of the user’s best {COUNT}, on held-out users.")


CLAIMS = (
    Claim(
        id="N1",
        text="Not in the paper: where a row is about one person, top share needs no sensitivities, and with "
        "weights fitted on public users it is more accurate than the paper’s mechanisms up to ε = 8.",
        check=_n1,
    ),
    Claim(
        id="N2",
        text="Not in the paper: each of its mechanisms has a top share that is at least as good for every user.",
        check=_n2,
    ),
)
LIST_CLAIMS = (
    Claim(
        id="N3",
        text=f"Not in the paper: a list of {COUNT} for the price of one pick.",
        check=_n3,
    ),
)
