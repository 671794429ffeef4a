"""The report's first page: its numbers are those of the tables, and it says nothing that the run does not show."""

import re

import pytest

from experiments.ledger import Claim, Entry, Finding, Verdict
from experiments.scenarios import TITLES
from experiments.summary import CORRECTIONS, COUNTERPARTS, FINDINGS, PAPER_FIGURES, summarise
from experiments.tables import from_rows

VERDICTS = {each.claim: each.verdict for each in (*FINDINGS, *CORRECTIONS) if each.claim}


def entry(id_, verdict):
    finding = Finding(verdict=verdict, measured="1", scope="at α = 3; holds for α = 0.03" if id_ == "B1" else "")
    return Entry(claim=Claim(id=id_, text="so", check=lambda _: finding), finding=finding, experiment="x")


def entries(**changes):
    return [entry(id_, verdict) for id_, verdict in (VERDICTS | changes).items()]


def errors(values, epsilons=(0.1, 1.0, 10.0)):
    """Return a table of errors: those given at ε = 1, and others elsewhere."""
    rows = [
        (scenario, name, epsilon, value if epsilon == 1 else 7.0, 0.0, 1)
        for scenario, own in values.items()
        for name, value in own.items()
        for epsilon in epsilons
    ]
    columns = ("scenario", "mechanism", "epsilon", "mean_squared_error", "standard_error", "trials")
    return from_rows(columns, rows)


EVERYWHERE = {"rnm": 2.0, "uniform": 4.0, "gem": 2.0, "mgem": 2.0, "rs": 2.0, "heterogeneous-rnm": 1.0}
STOPPING = from_rows(
    ("candidates", "probability", "neighbour", "ratio", "printed_ratio", "limit"),
    [(2, 0.1, 0.1, 1.1, 3.0, 1.5), (500, 0.1, 0.1, 1.4321, 4321.0, 1.5432)],
)
FAR = from_rows(
    ("candidates", "lead", "loss", "searched_loss", "pairs", "claimed"),
    [(2, 40, 1.5, 1.0, 9, 1.0), (6, 1, 5.1, 5.0, 9, 5.0), (6, 40, 5.67, 5.0, 9, 5.0)],
)
CONDITIONS = from_rows(
    ("published_worse_than_noisy_max", "worse_than_noisy_max"),
    [(True, True), (True, False), (True, False), (False, False), (False, False)],
)
OWN = from_rows(
    ("scenario", "published_worse_than_noisy_max", "worse_than_noisy_max"),
    [
        (TITLES[1], True, True),
        (TITLES[5], False, False),
        *((TITLES[6], True, worse) for worse in (True, False, False, False)),
        *((TITLES[8], True, worse) for worse in (True, True, True, False, False)),
    ],
)
TABLES = {
    "scenarios-1-to-3": {
        "errors": errors(
            {
                TITLES[1]: EVERYWHERE | {"mgem": 0.123, "gem": 8.76},
                TITLES[2]: EVERYWHERE | {"mgem": 6.54, "gem": 0.321},
            }
        )
    },
    "all-scenarios": {
        "errors": errors(
            {
                title: EVERYWHERE
                | {"mgem": 0.2 if place in {1, 4} else 13.2, "gem": 0.5 if place in {2, 5} else 20.4}
                for place, title in TITLES.items()
            }
        )
    },
    "default-everywhere": {
        "scenarios": from_rows(("epsilon", "ratio"), [(0.5, 0.9), (2.0, 0.8), (2.0, 1.1)]),
        "rows": from_rows(("kind", "candidates", "ratio"), [("search", 3, 1.2), ("family", 70, 5.43)]),
    },
    "recommender": {
        "facts": from_rows(("run", "name", "value"), [("A", "title", "A"), ("B", "title", "B")]),
        "errors": from_rows(
            ("run", "variant", "mechanism", "epsilon", "mean_squared_error"),
            [
                (run, variant, name, epsilon, value if (variant, epsilon) == ("clipped", 0.1) else 9.0)
                for run, own in {"A": {"mgem": 0.3, "rnm": 1.0}, "B": {"mgem": 0.9, "rnm": 1.2}}.items()
                for name, value in own.items()
                for variant in ("clipped", "unclipped")
                for epsilon in (0.1, 1.0)
            ],
        ),
    },
    "recommender-private": {
        "private": from_rows(
            ("run", "protocol", "mechanism", "epsilon", "mean_squared_error"),
            [
                (run, protocol, name, 4.0, value if protocol == "private" else 9.0)
                for run, own in {
                    "A": {"top-share": 0.2, "rnm": 1.0, "top-share-fitted": 0.1, "uniform": 2.0},
                    "B": {"top-share": 1.6, "rnm": 2.0, "top-share-fitted": 0.8, "uniform": 2.5},
                }.items()
                for name, value in own.items()
                for protocol in ("paper", "private")
            ],
        )
    },
    "bandit": {},
    "counterexamples": {"stopping": STOPPING, "far": FAR},
    "utility-bounds": {"conditions": CONDITIONS, "scenarios": OWN},
}
NUMBERS = {
    "S1": ("mGEM 0.123, RNM 2, random 4, GEM 8.76", "GEM 0.321, mGEM 6.54"),
    "G3": ("GEM 5.1, mGEM 3.3, RSᵧ 1",),
    "": ("2 of 3 cases", "2 values of ε from 0.5 to 2", "a row of 70 candidates", "5.43 times"),
    "N1": ("is 0.05 to 0.32 of a random pick’s in 2 runs", "has 0.50 to 0.80"),
    "R3": ("0.30 to 0.75 times", "2 runs"),
    "B1": ("does not hold at α = 3; holds for α = 0.03",),
    "P5": ("k = 500 it is 1.4321", "1.5432", "4,321"),
    "P10": ("For k = 6", "that is 5,", "5.67"),
    "U2": ("always in 1, and in 25% to 60% of the cases in 6, 8", "on random layouts, in 1 of 3"),
}


def test_every_number_is_read_from_the_tables():
    summary = summarise(TABLES, entries())
    said = {each.claim: each.text for each in (*summary.findings, *summary.corrections)}
    assert said.keys() == NUMBERS.keys()
    for claim, parts in NUMBERS.items():
        for part in parts:
            assert part in said[claim]


def test_there_are_six_findings_three_corrections_and_a_recommendation():
    summary = summarise(TABLES, entries())
    assert (len(summary.findings), len(summary.corrections)) == (6, 3)
    assert all(re.search(r"\d", each.text) for each in (*summary.findings, *summary.corrections))
    assert {each.whose for each in summary.recommendation if each.use == "top-share"} == {"one person’s"}
    assert {each.use: each.number for each in summary.recommendation} == {
        "top-share": "0.40",  # √(0.2 · 0.8)
        "heterogeneous-rnm": "0.50",  # 1 / 2 in all scenarios
        "mgem": "0.10",  # 0.2 / 2 where good candidates are the more sensitive ones
        "gem": "0.25",  # 0.5 / 2 where they are the less sensitive ones
    }


@pytest.mark.parametrize("figure", TABLES)
def test_what_is_not_part_of_the_run_is_left_out(figure):
    part = {name: tables for name, tables in TABLES.items() if name != figure}
    summary = summarise(part, entries())
    sentences = (*summary.findings, *summary.corrections)
    assert figure not in {each.figure for each in sentences}
    assert len(sentences) == sum(each.figure != figure for each in (*FINDINGS, *CORRECTIONS))
    assert ("top-share" in {each.use for each in summary.recommendation}) == (figure != "recommender-private")
    assert ("gem" in {each.use for each in summary.recommendation}) == (figure != "all-scenarios")


@pytest.mark.parametrize("claim", VERDICTS)
def test_a_sentence_that_the_verdict_contradicts_is_left_out(claim):
    summary = summarise(TABLES, entries(**{claim: Verdict.OPEN}))
    assert claim not in {each.claim for each in (*summary.findings, *summary.corrections)}


def test_the_paper_s_eighteen_figures_are_each_drawn_once():
    numbers = [number for drawn in PAPER_FIGURES.values() for number in drawn]
    assert sorted(numbers) == list(range(1, 19))
    assert sorted(COUNTERPARTS) == sorted(numbers)
    found = summarise({"correlation-layouts": {}, "orders": {}, "tuning": {}}, []).figures
    assert found == {3: "orders", 4: "correlation-layouts", 18: "correlation-layouts"}
