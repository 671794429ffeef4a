"""The experiments of this section, as the report takes them."""

from functools import partial
from hashlib import sha256
from pathlib import Path

import pyarrow as pa

from experiments.experiment import Effort, Experiment, Listing, Numbers, Task
from experiments.mechanisms import STYLES
from experiments.recommender import claims, figures, live, protocol, results
from experiments.tables import Tables

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
    "users with fewer non-zero scores than candidates": "share of users whose list is filled up with zeros",
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
"""The facts that the report shows, and what it calls them."""


def _plan_real(names: tuple[str, ...], _effort: Effort) -> list[Task]:
    """Return tasks that read a run's tables; the files' content decides whether they are read again."""
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


def _table(folder: Path, name: str) -> pa.Table:
    summary = results.read_summary(folder)
    if name == "facts":
        table = pa.table({"name": list(summary), "value": list(summary.values())})
    else:
        table = results.read_tables(folder)[name]
        # A column of whole numbers was written without a point.
        kinds = {"epsilon": pa.float64(), "tilt": pa.float64(), "standard_error": pa.float64()}
        for column in set(kinds) & set(table.column_names):
            table = table.set_column(table.column_names.index(column), column, table[column].cast(kinds[column]))
    return table.add_column(0, "run", pa.array([summary["title"]] * table.num_rows))


def _checksum(folder: Path) -> str:
    digest = sha256()
    for file in sorted(folder.glob("*.csv")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _provenance(data: Tables) -> Listing:
    runs = list(data["facts"]["run"].unique().to_pylist())
    values = {(row["run"], row["name"]): row["value"] for row in data["facts"].to_pylist()}
    return Listing(
        caption="Where the numbers come from.",
        columns=["", *runs],
        rows=[
            [label, *(_shortened(values.get((run, name), "–")) for run in runs)]
            for name, label in SHOWN.items()
            if any((run, name) in values for run in runs)
        ],
    )


def _shortened(value: str) -> str:
    """Return a commit by its first letters, and anything else as it is."""
    head, _, rest = value.partition(" ")
    is_commit = len(head) == 40 and set(head) <= set("0123456789abcdef")
    return f"{head[:10]} {rest}".strip() if is_commit else value


def _verdicts(data: Tables) -> Listing:
    found = claims.per_run(data)
    runs = list(data["facts"]["run"].unique().to_pylist())
    return Listing(
        caption="Each claim on each set, on clipped scores; and what the same scores show unclipped.",
        columns=["claim", *runs],
        rows=[
            *([id_, *(verdicts[run] for run in runs)] for id_, verdicts in found.items()),
            ["unclipped", *claims.unclipped(data).values()],
        ],
    )


def _tuned(data: Tables) -> Listing:
    return Listing(
        caption="The tuned mechanism: one private choice for a fleet of users, and its mean squared error next to "
        "mGEM’s and noisy max’s at the same ε on the same users.",
        columns=["set", "ε of a pick", "chosen", "tuned", "mGEM", "RNM", "users"],
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
    runs = list(dict.fromkeys(run for run, _, _ in found))
    return Listing(
        caption="Squared shortfall from the user’s best unseen item at ε = 1, under the paper’s protocol → under "
        "the private one, and how often the private one picks an item that the user has seen.",
        columns=["set", *(label for label, _ in figures.PRIVATE.values())],
        rows=[
            [
                run,
                *(
                    f"{found[run, name, 'paper']['mean_squared_error']:.3g} → "
                    f"{found[run, name, 'private']['mean_squared_error']:.3g} "
                    f"(seen {found[run, name, 'private']['seen_share']:.1%})"
                    for name in figures.PRIVATE
                ),
            ]
            for run in runs
        ],
    )


def _count(data: Tables) -> Numbers:
    runs = list(data["errors"]["run"].unique().to_pylist())
    rows = [row for row in data["errors"].to_pylist() if row["variant"] == "clipped"]
    shown = [e for e in (0.01, 1.0, 8.0, 16.0) if e in {row["epsilon"] for row in rows}]
    found = {(row["run"], row["mechanism"], row["epsilon"]): row["mean_squared_error"] for row in rows}
    # Sets differ in scale by orders of magnitude; a random pick's error is a unit for all of them.
    return Numbers(
        caption="Mean squared error on clipped scores, as a multiple of a random pick’s. Bold: the lowest of the "
        "private mechanisms.",
        groups=runs,
        columns=[f"ε = {e:g}" for e in shown],
        values={
            mechanism: [found[run, mechanism, e] / found[run, "uniform", e] for run in runs for e in shown]
            for mechanism in STYLES
        },
    )


CHOICES = {
    "scores": "q̂ = uᵀB on test users, seen items removed, the best 500 per user",
    "filling up": (
        "a list with fewer than 500 positive scores goes on with items of score 0, the most popular first, and "
        "then with negative scores"
    ),
    "sensitivities": (
        "99th − 1st percentile of each item’s predicted scores over test users who have not seen it; 10⁻⁶ where "
        "the two are equal"
    ),
    "clipping": "scores are clipped to their item’s range; without that nothing is private (bottom row)",
    "mechanisms": f"γ = 0.008 (Netflix: 0.0008), β = {protocol.BETA}; combined GEM spends 0.6 ε on its question",
    "exact or drawn": (
        "RNM, GEM, mGEM, kRR, random: exact, all test users; combined GEM: exact, 10,000 users; RNMH, RSᵧ and "
        f"its variants: all users, at least {protocol.LEAST_DRAWS} draws each and {protocol.TOTAL_DRAWS:,} in "
        "all. Bands: ±2 standard errors"
    ),
    "unclipped": "the same on 3,000 users drawn at random (all, where there are fewer)",
    "ratio": (
        f"log of mean scores picked at ε = {protocol.RATIO_EPSILON:g} (the paper does not say), exact; 10,000 "
        "users drawn at random, counted in cells of 0.02 × 0.02; the table has the version from 50 draws beside "
        "it"
    ),
}

REAL = Experiment(
    name="recommender",
    title="Recommendations from real interactions",
    caption="The paper’s three rows for each set: how many users have which correlation of scores and "
    "sensitivities; mGEM’s advantage over GEM against it; errors of all mechanisms. At the bottom the errors "
    "without clipping.",
    description="A column for each set. Top: histogram of the users’ Spearman correlations. Second: log ratio of "
    "the mean scores picked by mGEM and by GEM against the correlation, shaded by the number of users. Third and "
    "fourth: mean squared error against the privacy budget, a curve per mechanism, on clipped and on unclipped "
    "scores.",
    choices=CHOICES,
    plan=partial(_plan_real, ("errors", "correlations", "ratios")),
    draw=figures.draw_real,
    count=_count,
    list=lambda data: [_verdicts(data), _provenance(data)],
    discussion=(
        (
            "Data are not part of this project. The numbers are from tables kept with the code, with their "
            "provenance below; make recommender DATA=… makes them again, and the report then shows the new ones. "
            "There are loaders for MovieLens-20M, Netflix and all of Amazon Books as well, but these sets were "
            "not at hand."
        ),
        (
            "These errors compare mechanisms and promise nothing: percentiles of private scores are not private "
            "sensitivities, and the choice of a user’s 500 candidates is not paid for, here as in the paper. The "
            "next figure has a protocol that is private from end to end."
        ),
        (
            "At the published density of 5e-5, Amazon’s scores are degenerate: most items have equal percentiles "
            "and more than half of the lists are filled up with zeros. At 5e-4 that disappears: the run at that "
            "density is shown where it was made."
        ),
    ),
    claims=claims.checkable([results.read_summary(folder)["title"] for folder in results.shown()]),
)

BEYOND = Experiment(
    name="recommender-beyond",
    title="Recommendations: tilts, tuning, and privacy from end to end",
    caption="Top: error of GEM and of noisy max over the tilt; GEM is tilt 1 and mGEM tilt −1 of the first. "
    "Bottom: the private protocol (solid) next to the paper’s (dotted) on the same users, both measured against "
    "the best unseen item.",
    description="A column for each set. Top: mean squared error against the tilt at ε = 1 for GEM and for tilted "
    "noisy max, with a line at the error of the tuned mechanism. Bottom: squared shortfall against the privacy "
    "budget for six mechanisms under two protocols.",
    choices={
        "tilts": "1,000 users at ε = 0.1, 1 and 8 (in the table), exact; the figure shows ε = 1",
        "tuning": (
            "ε = 0.1 for the choice, out of GEM, noisy max and standardized noisy max at eight tilts each, and "
            "kRR; on the same 1,000 users; anchors are the middles of the ranges"
        ),
        "private protocol": (
            "10 % of users (at most 3,000) are private and 10 % calibrate; the model is trained on the others. "
            "Ranges and the 500 candidates come from calibration users; a seen item scores the lower end of its "
            "range"
        ),
        "shortfall": "the predicted score of the pick, unclipped, against the best item that the user has not seen",
    },
    plan=partial(_plan_real, ("tilts", "tuned", "private")),
    draw=figures.draw_beyond,
    list=lambda data: [_tuned(data), _shortfalls(data)],
    discussion=(
        (
            "The private protocol uses nothing of a private user before the mechanism: not for the model, the "
            "ranges or the list of candidates. One pick is ε-DP for the user’s whole history. What that costs is "
            "mostly the list: 500 items for everybody are seldom a user’s best 500."
        ),
        (
            "Private percentiles would be another way, with their ε added; but 1,000 of them at a total of ε "
            "have a rank error of about 1,000 · log(resolution) / ε users each: thousands for ε = 1. Public ones "
            "cost nothing."
        ),
    ),
)

GENERATED = Experiment(
    name="recommender-generated",
    title="Recommendations from generated interactions",
    caption="The same on interactions made from nothing, computed anew with every report. Not real data.",
    description="Generated data. Top: histogram of correlations; log ratio of mGEM to GEM against correlation; "
    "error against tilt. Bottom: errors against ε on clipped scores, on unclipped ones, and under the private "
    "protocol.",
    choices={
        "data": (
            "made-up users and items: popularity falls as rank^−0.8, tastes are mixtures of 12, likes are drawn "
            "without replacement"
        ),
        "model": f"EASE, λ = {live.L2:g}",
        **{name: CHOICES[name] for name in ("scores", "sensitivities", "clipping")},
        "mechanisms": f"γ = {live.GAMMA}, β = {protocol.BETA}",
        "exact or drawn": "as for real data, with 20 draws per user where draws are used",
    },
    plan=live.plan,
    draw=figures.draw_generated,
    count=_count,
    list=lambda data: [_provenance(data), _tuned(data)],
)

EXPERIMENTS = (REAL, BEYOND, GENERATED) if results.shown() else (GENERATED,)
"""In the order of the report; without any results on real data there is only the generated set."""
