"""The experiments on recommendations."""

from functools import partial
from hashlib import sha256
from pathlib import Path

import pyarrow as pa

from experiments.experiment import Effort, Experiment, Listing, Numbers, Task
from experiments.mechanisms import BETA, COMPARED
from experiments.recommender import captions, claims, figures, list_section, lists, live, protocol, results
from experiments.tables import Tables, unique

__all__ = ["EXPERIMENTS"]

SHOWN = {
    "data": "data",
    "likes in training": "in training",
    "split": "split",
    "test users": "test users",
    "model": "model",
    "recall@20": "recall@20",
    "published recall@20": "published recall@20",
    "items with equal percentiles": "share of items with equal percentiles",
    "users with fewer non-zero scores than candidates": "share of users whose lists contain zeros",
    "training": "training",
    "percentiles and candidates": "percentiles and candidates",
    "whole run": "whole run",
    "processor time": "processor time",
    "peak memory": "peak memory",
    "machine": "machine",
    "date": "date",
    "dpselect": "dpselect",
    "commit": "commit",
}
"""The facts that the report shows, and their labels."""


def _plan_real(names: tuple[str, ...], _effort: Effort) -> list[Task]:
    """Return tasks that read the runs' tables. They are read again if the files change."""
    return [
        Task(
            label=f"{folder.name}, {name}",
            table=name,
            compute=partial(_table, folder, name),
            inputs=_checksum(folder),
        )
        for folder in results.shown()
        for name in ("facts", *names)
        if name == "facts" or (folder / f"{name}.csv").is_file()
    ]


def _plan_lists(effort: Effort) -> list[Task]:
    """Return tasks for the lists of all runs, and of the synthetic interactions."""
    return [*_plan_real(("lists",), effort), *live.plan_lists(effort)]


def _table(folder: Path, name: str) -> pa.Table:
    summary = results.read_summary(folder)
    if name == "facts":
        table = pa.table({"name": list(summary), "value": list(summary.values())})
    else:
        table = results.read_tables(folder)[name]
        if name == "errors" and "draws" not in table.column_names:
            # Runs of earlier versions drew picks for random stopping and RNMH.
            table = table.append_column("draws", pa.array([0] * table.num_rows))
        # A column of whole numbers is written without a decimal point.
        kinds = dict.fromkeys(("epsilon", "tilt", "standard_error", *lists.FLOATS), pa.float64())
        for column in set(kinds) & set(table.column_names):
            table = table.set_column(table.column_names.index(column), column, table[column].cast(kinds[column]))
    return table.add_column(0, "run", pa.array([summary["title"]] * table.num_rows))


def _checksum(folder: Path) -> str:
    digest = sha256()
    for file in sorted(folder.glob("*.csv")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _provenance(data: Tables) -> Listing:
    runs = figures.runs_of(data)
    values = {(row["run"], row["name"]): row["value"] for row in data["facts"].to_pylist()}
    rows = [
        [label, *(_shortened(values.get((run, name), "–")) for run in runs)]
        for name, label in SHOWN.items()
        if any((run, name) in values for run in runs)
    ]
    if "errors" in data and "draws" in data["errors"].column_names:
        drawn = [row["run"] for row in data["errors"].to_pylist() if row["draws"]]
        rows.append(["errors estimated from draws", *(f"{drawn.count(run)} rows" for run in runs)])
    return Listing(caption="The origin of the numbers.", columns=["", *runs], rows=rows)


def _shortened(value: str) -> str:
    """Shorten a commit to its first characters, and leave anything else unchanged."""
    head, _, rest = value.partition(" ")
    is_commit = len(head) == 40 and set(head) <= set("0123456789abcdef")
    return f"{head[:10]} {rest}".strip() if is_commit else value


def _verdicts(data: Tables) -> Listing:
    runs = figures.runs_of(data)
    return Listing(
        caption="What each claim’s verdict would be on each dataset alone, on clipped and on unclipped scores.",
        columns=["claim", *runs],
        rows=[[id_, *(verdicts[run] for run in runs)] for id_, verdicts in claims.per_run(data).items()],
    )


def _unclipped(data: Tables) -> Listing:
    return Listing(
        caption="The best of the paper’s private mechanisms on unclipped scores, and mean squared errors.",
        columns=["dataset", "unclipped"],
        rows=[[run, found] for run, found in claims.unclipped(data).items()],
    )


def _tuned(data: Tables) -> Listing:
    return Listing(
        caption="The tuned mechanism: one private choice for a fleet of users. Its mean squared error is next to "
        "mGEM’s and noisy max’s at the same ε on the same users.",
        columns=["dataset", "ε of a pick", "choice", "tuned", "mGEM", "RNM", "users"],
        rows=[
            [
                row["run"],
                f"{row['epsilon']:g}",
                row["chosen"].partition(" at ε")[0],
                *(f"{row[name]:.3g}" for name in ("mean_squared_error", "mgem", "rnm")),
                f"{row['users']:,}",
            ]
            for row in data["tuned"].to_pylist()
        ],
    )


def _shortfalls(data: Tables) -> Listing:
    found = {
        (row["run"], row["mechanism"], row["protocol"]): row
        for row in data["private"].to_pylist()
        if row["epsilon"] == figures.SHOWN_EPSILON
    }

    def cell(run: str, name: str) -> str:
        paper, private = (found[run, name, protocol] for protocol in ("paper", "private"))
        errors = " → ".join(f"{row['mean_squared_error']:.3g}" for row in (paper, private))
        return f"{errors} (seen {private['seen_share']:.1%})"

    return Listing(
        caption="Squared shortfall from the user’s best unseen item at ε = 1: under the paper’s protocol → under "
        "the private one. In brackets: how often the private one picks an item that the user has seen.",
        columns=["dataset", *(style.label for style in figures.SHOWN_FAST.values())],
        rows=[
            [run, *(cell(run, name) for name in figures.SHOWN_FAST)]
            for run in dict.fromkeys(run for run, _, _ in found)
        ],
    )


def _numbers(data: Tables) -> Numbers:
    runs = unique(data["errors"], "run")
    rows = [row for row in data["errors"].to_pylist() if row["variant"] == "clipped"]
    shown = [e for e in (0.01, 1.0, 8.0, 16.0) if e in {row["epsilon"] for row in rows}]
    found = {(row["run"], row["mechanism"], row["epsilon"]): row["mean_squared_error"] for row in rows}
    # Errors differ between datasets by orders of magnitude; a random pick's error is a common unit.
    return Numbers(
        caption="Mean squared error on clipped scores, as a multiple of a random pick’s. Bold: the lowest of the "
        "private mechanisms.",
        groups=runs,
        columns=[f"ε = {e:g}" for e in shown],
        values={
            mechanism: [found[run, mechanism, e] / found[run, "uniform", e] for run in runs for e in shown]
            for mechanism in COMPARED
            if all((run, mechanism, e) in found for run in runs for e in shown)
        },
    )


NOTES = {
    "preprocessing": (
        "ratings of 4 and 5 are likes; users with fewer than 5 likes are left out, as published for SANSA; the "
        "paper says that it leaves out items with few interactions, and here no item is left out for that"
    ),
    "scores": "q̂ = uᵀB for test users, without seen items, the best 500 for each user",
    "short lists": (
        "after fewer than 500 positive scores, a list continues with items of score 0, the most popular first, and "
        "then with negative scores"
    ),
    "sensitivities": (
        "99th − 1st percentile of each item’s predicted scores over test users who have not seen it; 10⁻⁶ where "
        "the two are equal (the paper says: where the score is constant across all users)"
    ),
    "clipping": "scores are clipped to their item’s range; without clipping nothing is private",
    "mechanisms": f"γ = 0.008 (Netflix: 0.0008), β = {BETA}; combined GEM (60 % of ε on the sign)",
    "error": (
        "computed from exact probabilities: RNM, GEM, mGEM, kRR and random for all test users; combined GEM for "
        f"{protocol.SOME_USERS['combined-gem']:,} of them, RNMH, RSᵧ and its variants for {protocol.SLOW_USERS:,}, "
        "or all if there are fewer, as a multiple of a random pick’s; bands are ±2 standard errors from the choice "
        "of users; where the table’s column “draws” is not 0, an earlier version estimated the error from draws "
        "(the table of origins counts these rows)"
    ),
    "ratio": (
        f"log ratio of the exact mean scores picked at ε = {protocol.RATIO_EPSILON:g} (the paper does not print "
        "its ε), for 10,000 users drawn at random, counted in cells of 0.02 × 0.02; the table also has the ratio "
        "from 50 draws; a point of the line is the mean over the users of a tenth, if there are at least "
        f"{figures.FEW}"
    ),
}

REAL = Experiment(
    name="recommender",
    title="Recommendations from real interactions",
    caption="A row for each dataset. Left: the users’ correlations of scores and sensitivities. Middle: mGEM’s "
    "advantage over GEM against the correlation, with the mean of each tenth as a line; it grows with the "
    "correlation in {growing} datasets. Right: the errors of all mechanisms over a random pick’s (1 on the axis). "
    "At ε = {epsilon} mGEM’s error is {mgem} of a random pick’s, noisy max’s {rnm} and GEM’s {gem}.{constant}",
    description="A row for each dataset. Left: histogram of the users’ Spearman correlations. Middle: log ratio "
    "of the mean scores picked by mGEM and by GEM against the correlation, coloured by the number of users, with a "
    "line of means. Right: mean squared error over a random pick’s against the privacy budget, a curve for each "
    "mechanism, on the same axes for all datasets.",
    notes=NOTES,
    plan=partial(_plan_real, ("errors", "correlations", "ratios")),
    draw=figures.draw_real,
    listings=lambda data: [_verdicts(data), _provenance(data), _numbers(data)],
    numbers=captions.error_numbers,
    discussion=(
        (
            "This project contains no data. The numbers come from tables kept with the code; their provenance is "
            "below. make recommender DATA=… computes the tables again, and the report then shows the new ones. "
            "There are also loaders for MovieLens-20M, Netflix and all of Amazon Books, but these datasets were "
            "not available."
        ),
        (
            "These errors compare mechanisms; they come without a privacy guarantee. Percentiles of private scores "
            "are not private sensitivities, and no budget pays for the choice of a user’s 500 candidates, here as "
            "in the paper. “Recommendations: privacy from end to end” has a private protocol."
        ),
        (
            "At the published density of 5e-5, Amazon’s scores are degenerate: most items have equal percentiles, "
            "and more than half of the lists contain zeros. At 5e-4 they are not. The figure shows both."
        ),
    ),
    claims=claims.checkable([results.read_summary(folder)["title"] for folder in results.shown()]),
)

UNCLIPPED = Experiment(
    name="recommender-unclipped",
    title="Recommendations without clipping, which are not private",
    caption="The errors of “Recommendations from real interactions”, but on scores that are not clipped to their "
    "item’s range. The stated sensitivities are then false, so no curve has a privacy guarantee. The order "
    "changes where clipping cuts off a lot: GEM’s error at ε = 1 is {lowest} of a random pick’s on {where}, and "
    "{clipped} with clipping.",
    description="A panel for each dataset, on the same axes: mean squared error on unclipped scores over a random "
    "pick’s against the privacy budget, a curve for each mechanism.",
    notes={
        "users": "3,000 drawn at random, or all if there are fewer",
        **{name: NOTES[name] for name in ("sensitivities", "mechanisms", "error")},
    },
    plan=partial(_plan_real, ("errors",)),
    draw=figures.draw_unclipped,
    listings=lambda data: [_unclipped(data)],
    numbers=captions.unclipped_numbers,
)

TILTS = Experiment(
    name="recommender-tilts",
    title="Recommendations: tilts and tuning",
    caption="The errors of tilted GEM and of tilted noisy max at ε = 1, over that of noisy max without a tilt. "
    "GEM has tilt 1, and mGEM tilt −1. Strong negative tilts beat mGEM on {ahead} datasets: noisy max at tilt −8 "
    "has {tilted} of the untilted error, mGEM {mgem}. The dotted line is the mechanism that tuning chose "
    "privately: {tuned}.",
    description="A panel for each dataset, on the same axes: mean squared error against the tilt at ε = 1 for GEM "
    "and for tilted noisy max, over that of noisy max without a tilt, with a line at the error of the tuned "
    "mechanism.",
    notes={
        "tilts": "1,000 users at ε = 0.1, 1 and 8 (in the table), exact; the figure shows ε = 1",
        "tuning": (
            "ε = 0.1 for the choice among GEM and noisy max at eight tilts each, and kRR; on the same 1,000 users; "
            "for the kept results the pool also had standardized noisy max, which the library no longer has"
        ),
    },
    plan=partial(_plan_real, ("tilts", "tuned")),
    draw=figures.draw_tilts,
    listings=lambda data: [_tuned(data)],
    numbers=captions.tilt_numbers,
)

END_TO_END = Experiment(
    name="recommender-private",
    title="Recommendations: privacy from end to end",
    caption="The same users under the paper’s protocol (top) and under one that is private from end to end "
    "(bottom). The vertical axis is the squared shortfall from the user’s best unseen item, over that of a random "
    "pick under the paper’s protocol. At ε = 1 mGEM has {paper} of it under the paper’s protocol, and {private} "
    "under the private one, where noisy max at tilt −8 has {tilted}.",
    description="Two rows of panels with the same axes, a column for each dataset. Squared shortfall against the "
    "privacy budget for six mechanisms, under the paper’s protocol above and under the private one below.",
    notes={
        "private protocol": (
            "10 % of the users (at most 3,000) are private, 10 % are for calibration, and the model is trained on "
            "the others; ranges and the 500 candidates come from calibration users; a seen item scores the lower "
            "end of its range"
        ),
        "shortfall": "the difference between the unclipped predicted scores of the best unseen item and of the "
        "pick",
        "datasets": "MovieLens-1M with SANSA, Gowalla and Yelp2018; the others were not run under the private "
        "protocol",
    },
    plan=partial(_plan_real, ("private",)),
    draw=figures.draw_private,
    listings=lambda data: [_shortfalls(data)],
    numbers=captions.private_numbers,
    discussion=(
        (
            "The private protocol uses no private user’s data before the mechanism: not for the model, the ranges "
            "or the candidates. One pick is ε-DP for the user’s whole history. Most of the cost comes from the "
            "candidates: the same 500 items for all users are seldom a user’s best 500."
        ),
        (
            "Private percentiles are an alternative that costs budget: 1,000 of them at a total of ε have a rank "
            "error of about 1,000 · log(resolution) / ε users each, which is thousands for ε = 1. Public ones cost "
            "nothing."
        ),
    ),
)

GENERATED = Experiment(
    name="recommender-generated",
    title="Recommendations from synthetic interactions",
    caption="All of this on synthetic interactions, computed again with every report. Not real data. At ε = "
    "{epsilon} mGEM’s error is {mgem} of a random pick’s, noisy max’s {rnm} and GEM’s {gem}; on unclipped scores "
    "mGEM’s is {unclipped}.",
    description="Synthetic data. Top: histogram of correlations; log ratio of mGEM to GEM against correlation; "
    "error against tilt. Bottom: errors against ε on clipped scores, on unclipped ones, and under the private "
    "protocol.",
    notes={
        "data": (
            "synthetic users and items: popularity falls as rank^−0.8, tastes are mixtures of 12, likes are drawn "
            "without replacement"
        ),
        "model": f"EASE, λ = {live.L2:g}",
        **{name: NOTES[name] for name in ("scores", "sensitivities", "clipping")},
        "mechanisms": f"γ = {live.GAMMA}, β = {BETA}",
        "error": "computed from exact probabilities; RNMH, RSᵧ and its variants for some of the users",
    },
    plan=live.plan,
    draw=figures.draw_generated,
    listings=lambda data: [_provenance(data), _tuned(data), _numbers(data)],
    numbers=captions.error_numbers,
)

LISTS = list_section.section(_plan_lists)

EXPERIMENTS = (REAL, UNCLIPPED, TILTS, END_TO_END, LISTS, GENERATED) if results.shown() else (GENERATED, LISTS)
"""In the order of the report. Without results on real data, only the synthetic interactions are shown."""
