"""The section on the heuristic: its tables and its scorecard."""

from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

import dpselect as dps
from experiments import drawing
from experiments.bandit import kept
from experiments.bandit.outcomes import Outcomes
from experiments.bandit.policies import PRINTED
from experiments.curves import number
from experiments.experiment import Effort, Experiment, Listing, Task
from experiments.heuristic.claims import CLAIMS, by_trial
from experiments.heuristic.settings import PAIR, SMALL, runs, scenarios, scorecard, short
from experiments.mechanisms import PAPER, STYLES, build
from experiments.recommender import results
from experiments.recommender.evidence import kept_errors
from experiments.scenarios import SCENARIOS, Scenario, titled
from experiments.synthetic.increasing import MECHANISMS, SLOPED
from experiments.tables import Tables, from_rows, read, where
from experiments.trials import error_table, error_tasks, paired_error_table, scenario_tasks

__all__ = ["HEURISTIC"]

TITLED = titled(*SCENARIOS)
TRIALS = 200
"""The number of trials whose own signs are scored."""
LARGE = 10.0
"""An ε at which kRR is mostly ahead, shown beside the small ones."""


def _plan(effort: Effort) -> list[Task]:
    return [
        *error_tasks(TITLED, PAPER, effort, paired_error_table),
        *(
            Task(label=f"{title}, {name}", table="slopes", compute=partial(error_table, make, name, effort))
            for title, make in SLOPED.items()
            for name in MECHANISMS
            if name in PAPER
        ),
        *scenario_tasks("signs", {**TITLED, **SLOPED}, _signs),
        *kept_errors("data"),
        *(
            Task(label=f"{folder.name}, users", table="users", compute=partial(_users, folder), inputs=_sum(file))
            for folder in results.shown()
            if (file := folder / "ratios.csv").is_file()
        ),
        Task(label="kept runs", table="bandit", compute=_bandit, inputs=_sum(kept.HERE / "worlds.csv")),
    ]


def _sum(file: Path) -> str:
    return sha256(file.read_bytes()).hexdigest()


def _signs(scenario: Scenario) -> pa.Table:
    """Return a setting's mean correlation, and how many trials' own signs name the one with the lower error."""
    part = scenario.first(TRIALS)
    correlations = np.asarray(dps.correlation.spearman(part.scores, part.sensitivities))
    signed = np.nan_to_num(correlations) != 0
    rows = []
    for epsilon in SMALL:
        gem, mgem = (dps.expected_error(build(name, epsilon), part.scores, part.sensitivities) for name in PAIR)
        right = ((mgem < gem) == (correlations > 0)) & signed
        rows.append((part.title, float(correlations.mean()), epsilon, int(right.sum()), int(signed.sum())))
    return from_rows(("setting", "correlation", "epsilon", "right", "signed"), rows)


def _users(folder: Path) -> pa.Table:
    """Return for how many users of a run the sign names the one with the higher mean score."""
    table = where(results.read_tables(folder)["ratios"], version="exact")
    correlations, ratios, users = (table[name].to_numpy() for name in ("correlation", "log_ratio", "users"))
    right = int(users[(correlations > 0) == (ratios > 0)].sum())
    return from_rows(("run", "right", "users"), [(results.read_summary(folder)["title"], right, int(users.sum()))])


def _bandit() -> pa.Table:
    """Return the total reward of each of the paper's policies in each kept run."""
    worlds = Outcomes(read(kept.HERE / "worlds.csv"))
    rows = [(name, float(reward)) for name in PRINTED for reward in worlds.total(name)]
    return from_rows(("policy", "reward"), rows)


def _draw(data: Tables) -> Figure:
    settings, card = [*scenarios(data["errors"]), *runs(data)], scorecard(data)
    cases = {(case.title, case.epsilon): case for case in card}
    titles = {case.title: f"{short(case.title)} ({_signed(case.correlation)})" for case in card}
    heights = [0.26 * max(len(settings), len(titles)) + 0.6]
    figure, panels = drawing.grid(rows=1, columns=2, heights=heights, width=7.0, aligned=False)
    columns = (*SMALL, LARGE)
    drawing.ratio_map(
        panels[0, 0],
        np.array([[each.distances[each.at(e)] for e in columns] for each in settings]),
        [
            [f"{number(each.distances[each.at(e)])}\n{STYLES[each.best(each.at(e))].label}" for e in columns]
            for each in settings
        ],
    )
    shown = [[cases[title, epsilon] for epsilon in SMALL] for title in titles]
    drawing.ratio_map(
        panels[0, 1],
        np.array([[1.0 if not c.predicted else 0.45 if c.is_right else 2.2 for c in row] for row in shown]),
        [
            [f"{STYLES[c.predicted].label if c.predicted else '–'} → {STYLES[c.actual].label}" for c in row]
            for row in shown
        ],
    )
    names = ([short(each.title) for each in settings], list(titles.values()))
    words = (
        "The better of GEM and mGEM,\nover the lowest error, and whose it is",
        "Predicted by the sign → the better one",
    )
    for panel, places, rows, title in zip(panels[0], (columns, SMALL), names, words, strict=True):
        panel.set_xticks(range(len(places)), [f"ε = {epsilon:g}" for epsilon in places])
        panel.set_yticks(range(len(rows)), rows)
        panel.set_title(title)
    return figure


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _listing(data: Tables) -> Listing:
    card, trials = scorecard(data), by_trial(data)
    rows = []
    for title in dict.fromkeys(case.title for case in card):
        cases = [case for case in card if case.title == title]
        first = cases[0]
        rows.append(
            [
                title,
                _signed(first.correlation),
                STYLES[first.predicted].label if first.predicted else "–",
                ", ".join(STYLES[case.actual].label for case in cases),
                ", ".join("yes" if case.is_right else "no" for case in cases) if first.predicted else "–",
                f"{trials[title]:.0%}" if title in trials else "–",
                "yes" if first.counts else "no",
            ]
        )
    return Listing(
        caption="The scorecard. Three entries in a cell are for ε = 0.01, 0.1 and 1.",
        columns=["setting", "correlation", "predicted", "better one", "right", "right trial by trial", "judged"],
        rows=rows,
    )


def _numbers(data: Tables) -> dict[str, str]:
    scored = [case for case in scorecard(data) if case.counts and case.predicted]
    far = {each.title: float(each.distances[each.small].max()) for each in scenarios(data["errors"])}
    worst = max(far, key=far.__getitem__)
    return {
        "right": str(sum(case.is_right for case in scored)),
        "cases": str(len(scored)),
        "worst": short(worst).lower(),
        "far": number(far[worst]),
        "others": number(max(ratio for title, ratio in far.items() if title != worst)),
    }


HEURISTIC = Experiment(
    name="heuristic",
    title="The paper’s heuristic, scored in all its settings",
    caption=(
        "Left: for ε ≤ 1 the better one of GEM and mGEM has up to {far} times the lowest error of all the paper’s "
        "mechanisms in {worst}, and at most {others} times in the other scenarios; at ε = 10 kRR is mostly ahead. "
        "Right: the sign of the correlation, which is in brackets, names the better one of the two in {right} of "
        "{cases} cases that count. Blue is right and red is wrong."
    ),
    description=(
        "Two coloured tables, with a row for each scenario or dataset and a column for each ε. Left: the better "
        "error of GEM and mGEM over the lowest error, and whose it is. Right: which of the two the sign of the "
        "correlation predicts, and which is better."
    ),
    notes={
        "settings": "the eight scenarios, the seven slopes of the increasing correlation (right), and the kept "
        "runs",
        "correlation": f"Spearman’s: the mean over {TRIALS} trials, or the median over users with clipped scores",
        "real data": "ε = 8 in place of 10; only runs on the paper’s datasets, or on parts of them, count",
        "bandit": "G10 reads the kept tables of a full run",
        "error": "the mean of each trial’s exact error, over the same trials for all mechanisms (not in the "
        "slopes)",
    },
    plan=_plan,
    draw=_draw,
    listings=lambda data: [_listing(data)],
    numbers=_numbers,
    claims=CLAIMS,
)
