"""The experiments on recommendations."""

from functools import partial
from hashlib import sha256
from pathlib import Path

import pyarrow as pa

from experiments.experiment import Effort, Experiment, Listing, Numbers, Task
from experiments.mechanisms import BETA
from experiments.recommender import (
    captions,
    claims,
    figures,
    list_section,
    lists,
    live,
    overview,
    private_section,
    protocol,
    results,
)
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
    "private_commit": "commit of the tables that are private from end to end",
    "lists_commit": "commit of the lists",
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
            for mechanism in protocol.MEASURED
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
        "after fewer than 500 positive scores, a list continues with items of score 0, the most popular first, "
        "and then with negative scores"
    ),
    "sensitivities": (
        "99th − 1st percentile of each item’s predicted scores over test users who have not seen it; 10⁻⁶ where "
        "the two are equal (the paper says: where the score is constant across all users)"
    ),
    "clipping": "scores are clipped to their item’s range; without clipping nothing is private",
    "mechanisms": f"γ = 0.008 (Netflix: 0.0008), β = {BETA}; combined GEM (60 % of ε on the sign)",
    "error": (
        "computed from exact probabilities: RNM, GEM, mGEM, kRR and random for all test users; combined GEM for "
        f"{protocol.SOME_USERS['combined-gem']:,} of them, naive noisy max, RSᵧ and its variants for "
        f"{protocol.SLOW_USERS:,}, "
        "or all if there are fewer, as a multiple of a random pick’s; bands are ±2 standard errors from the "
        "choice of users"
    ),
    "ratio": (
        f"of the exact mean scores picked at ε = {protocol.RATIO_EPSILON:g} (the paper does not print "
        "its ε), for 10,000 users drawn at random, counted in cells of 0.02 × 0.02; the table also has the ratio "
        "from 50 draws; a point of the line is the mean over the users of a tenth, if there are at least "
        f"{figures.FEW}"
    ),
}

REAL = Experiment(
    name="recommender",
    title="Recommendations from real interactions",
    caption="A row for each dataset. Left: the users’ correlations of scores and sensitivities. Middle: the mean "
    "score of mGEM’s picks divided by that of GEM’s, against the correlation, with the geometric mean of each "
    "tenth as a line; it grows with the correlation in {growing} datasets. Right: errors over a random pick’s (1 "
    "on the axis). At ε = {epsilon} mGEM’s error is {mgem} of a random pick’s, RNM’s {rnm}, GEM’s {gem}"
    "{default}.{constant}",
    description="A row for each dataset. Left: histogram of the users’ Spearman correlations. Middle: mean score "
    "picked by mGEM over that by GEM against the correlation, coloured by the number of users, with a line of "
    "means. Right: mean squared error over a random pick’s against the privacy budget, seven curves, on the same "
    "axes for all datasets.",
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
            "These errors compare mechanisms; they come without a privacy guarantee. Percentiles of private "
            "scores are not private sensitivities, and no budget pays for the choice of a user’s 500 candidates, "
            "here as in the paper. “Recommendations: privacy from end to end” has a private protocol."
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
            "ε = 0.1 for the choice among GEM and noisy max at eight tilts each, and kRR; on the same 1,000 "
            "users; where the choice is standardized noisy max, an earlier version with a larger pool computed "
            "the table"
        ),
    },
    plan=partial(_plan_real, ("tilts", "tuned")),
    draw=figures.draw_tilts,
    listings=lambda data: [_tuned(data)],
    numbers=captions.tilt_numbers,
)

PROTOCOL = (
    "10 % of the users (of them at most 1,000 are measured) are private, 10 % are for calibration, and the model "
    "is trained on the others; ranges and the 500 candidates come from calibration users; a seen item scores the "
    "lower end of its range"
)

END_TO_END = Experiment(
    name="recommender-private",
    title="Recommendations: privacy from end to end",
    caption="The error of one private pick over a random pick’s (1 on the axis), on users who were held out; "
    "nothing that they did is used before the mechanism. At ε = {epsilon} on {run} a random pick’s error is "
    "{random}, that of the best of the paper’s mechanisms {paper}, of the default {default}, and of top share "
    "{rule} by its rule, {taught} taught by other users’ released picks, and {fitted} fitted on public users. "
    "Fitted top share is better than the best of the paper’s by {gains}.",
    description="A panel for each dataset: the error of one pick over a random pick’s "
    "against the privacy budget from 1 to 12. Five curves: the best of the paper’s mechanisms, the default, and "
    "top share by rule, taught and fitted.",
    notes={
        "private protocol": PROTOCOL,
        "error": (
            "the squared difference between the unclipped predicted scores of the best unseen item, of all items, "
            "and of the pick; computed from exact probabilities; random stopping for 200 users, relative to a "
            "random pick’s error for them"
        ),
        "top share": (
            "needs no ranges and no clipping; by rule: equal weights; fitted: dps.advice.fit_top_share on the "
            "calibration users; taught: each half of the private users picks by rule, and "
            "dps.advice.weights_from_picks teaches the other half"
        ),
        "all items": (
            "weights (training likes + ½)^power over all items; 300 calibration users choose the power, 1 to 3, "
            "and the share, from 0.001 % to 50 %"
        ),
        "dominating top share": (
            "weights and share from the mechanism’s least probabilities over the box of public ranges, for 200 "
            "users; exact at one corner for each candidate where a higher score never helps another candidate "
            "(all but GEM, mGEM and combined GEM); for these the least one of 20 corners and all calibration "
            "users’ rows"
        ),
        "datasets": "MovieLens-1M with SANSA and with EASE, Gowalla and Yelp2018; the others were not run under "
        "the private protocol",
    },
    plan=partial(_plan_real, ("private", "dominated")),
    draw=private_section.draw_picks,
    listings=private_section.pick_listings,
    numbers=private_section.pick_numbers,
    discussion=(
        (
            "A row is about one person here, so any two rows are neighbours, and no mechanism is better for every "
            "user than top share with the right weights (docs/theory/top-share.md). What is left to choose is "
            "public: the weights."
        ),
        (
            "On Gowalla and Yelp2018 the gain is small. The 500 shared candidates lack most users’ best items, "
            "and no budget can make up for that. Top share lets all items compete at no cost but work: the "
            "table’s line “all items” has weights by popularity among training users. At ε = "
            "12 its error there is less than a fifth of the others’."
        ),
        (
            "Fitted weights are for the ε that they were fitted at, and for users like the public ones. From ε = "
            "12 on the fit has almost nothing left to gain, and randomised response is at least as good on every "
            "dataset. By its rule, top share is behind randomised response on Gowalla and Yelp2018 at ε = 8."
        ),
    ),
    claims=private_section.CLAIMS,
)

END_TO_END_LISTS = Experiment(
    name="recommender-private-lists",
    title="Private lists for the price of one pick",
    caption="The score of a private list of ten over that of the user’s best ten, by the ε of the whole list. At "
    "ε = {epsilon} on {run}, one pick among public users’ lists has {public_lists} of it, and a random set with "
    "many of a shortlist’s best {top_set}. Ten picks by peeling a public shortlist have {peeling}, and OpenDP’s "
    "ten picks from 500 items {opendp}. The best public list has {popular} at no cost.",
    description="A panel for each dataset: the score of a list over the best possible, from 0 to 1, against the "
    "total ε from 1 to 30. Four curves and a level: public lists, random sets, peeling, OpenDP, and the best "
    "public list.",
    notes={
        "private protocol": PROTOCOL,
        "score": "the sum of the predicted scores of the list’s items, over the sum of the user’s ten best unseen "
        "items, of all items; an item that the user has seen adds nothing",
        "public lists": "the ten best of up to 5,000 training users; weights and share by "
        "dps.advice.fit_top_share on calibration users; exact means",
        "shortlists": "the items with the highest mean score of calibration users; 200 of these users choose its "
        "length (12 to 100) and the mechanism that is peeled (kRR, RNM or the default); one drawn list for each "
        "private user",
        "OpenDP": "make_noisy_top_k with the largest sensitivity, for the first 100 users, who differ "
        "from all (on Yelp2018 the best public list has 0.25 for them); also with the shortlist of peeling, in "
        "the table",
    },
    plan=partial(_plan_real, ("private_lists",)),
    draw=private_section.draw_lists,
    listings=private_section.list_listings,
    numbers=private_section.list_numbers,
    discussion=(
        (
            "A candidate may be a list: one pick among public lists costs ε once, where peeling pays ten times. "
            "Its ceiling is the best matching public list. Random sets need no public lists. On "
            "MovieLens-1M they are better at ε = 30; on Gowalla and Yelp2018 no shortlist holds most users’ best "
            "items."
        ),
    ),
    claims=private_section.LIST_CLAIMS,
)

GENERATED = Experiment(
    name="recommender-generated",
    title="Recommendations from synthetic interactions",
    caption="The same on synthetic interactions, not real data. Every report computes them again. At ε = "
    "{epsilon} mGEM’s error is {mgem} of a random pick’s, RNM’s {rnm} and GEM’s {gem}; on unclipped scores "
    "mGEM’s is {unclipped}.",
    description="Synthetic data. Top: histogram of correlations; mGEM’s mean score over GEM’s against correlation; "
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
        "error": "computed from exact probabilities; naive noisy max, RSᵧ and its variants for some of the users",
    },
    plan=live.plan,
    draw=figures.draw_generated,
    listings=lambda data: [
        _provenance(data),
        _tuned(data),
        _numbers(data),
        *private_section.pick_listings(data),
        *private_section.list_listings(data),
    ],
    numbers=captions.error_numbers,
)

LISTS = list_section.section(_plan_lists)
OVERVIEW = overview.section(partial(_plan_real, ("private", "private_lists")))

_PRIVATE = all(
    any((folder / f"{name}.csv").is_file() for folder in results.shown()) for name in results.PRIVATE[:2]
)

EXPERIMENTS = (
    (*((OVERVIEW,) if _PRIVATE else ()), REAL, UNCLIPPED, TILTS, END_TO_END, END_TO_END_LISTS, LISTS, GENERATED)
    if results.shown()
    else (GENERATED, LISTS)
)
"""In the order of the report. Without results on real data, only the synthetic interactions are shown."""
