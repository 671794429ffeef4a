"""What the report says of recommendations: generated data are labelled, claims are judged as the tables say."""

import numpy as np
import pyarrow as pa
import pytest

from experiments import ledger, tables
from experiments.__main__ import main
from experiments.ledger import Verdict
from experiments.mechanisms import STYLES
from experiments.recommender import claims, live, protocol, results
from experiments.recommender.datasets import RUNS

EPSILONS = protocol.EPSILONS

# Several tests use one run, on one worker, so that it runs once.
pytestmark = pytest.mark.xdist_group("recommender")


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    directory = tmp_path_factory.mktemp("run")
    assert main(["--fast", "--only", "recommender-generated", "--output", str(directory)]) == 0
    return directory


def test_the_generated_set_is_called_generated_wherever_it_is_shown(output):
    page = (output / "excerpt.html").read_text(encoding="utf-8")
    assert "Recommendations from generated interactions" in page
    assert "Not real data" in page
    assert "generated: " in page
    figure = (output / "figures" / "recommender-generated.svg").read_text(encoding="utf-8")
    assert "Generated interactions, not real data" in figure
    for file in (output / "tables").glob("recommender-generated-*.csv"):
        assert set(tables.read(file)["run"].to_pylist()) == {live.TITLE}


def test_the_generated_set_has_the_tables_of_a_real_run(output):
    found = {file.stem.removeprefix("recommender-generated-") for file in (output / "tables").glob("recommender-*")}
    assert found == {"facts", *results.TABLES}


def test_on_generated_data_popular_items_are_the_sensitive_ones(output):
    table = tables.read(output / "tables" / "recommender-generated-correlations.csv").to_pylist()
    clipped = [row for row in table if row["variant"] == "clipped"]
    assert np.average([row["correlation"] for row in clipped], weights=[row["users"] for row in clipped]) > 0.2


def made_up(errors, facts, run="Some set"):
    """Return tables in which each mechanism has the same error at all ε, except for those given."""
    rows = [
        {
            "run": run,
            "variant": variant,
            "mechanism": mechanism,
            "epsilon": epsilon,
            "mean_squared_error": errors.get((mechanism, epsilon), errors.get(mechanism, 1.0)),
        }
        for variant in ("clipped", "unclipped")
        for mechanism in STYLES
        for epsilon in EPSILONS
    ]
    values = {
        "correlation_clipped_quantile_50": "0.4",
        "correlation_clipped_negative_share": "0.0",
        "ratio_trend": "0.5",
        "ratio_negative_users": "0",
        "ratio_mean_ratio_where_negative": "0.0",
    } | facts
    found = pa.table({"run": [run] * len(values), "name": list(values), "value": list(values.values())})
    return {"errors": pa.Table.from_pylist(rows), "facts": found}


AS_CLAIMED = {"mgem": 0.2, "gem": 1.5, "rnm": 0.9, "rs": 0.4}


@pytest.mark.parametrize(
    ("id_", "errors", "facts", "run", "verdict"),
    [
        ("R1", {}, {}, "Some set", Verdict.HOLDS),
        ("R1", {}, {"correlation_clipped_negative_share": "0.01"}, "Some set", Verdict.IN_PART),
        ("R1", {}, {"correlation_clipped_negative_share": "0.01"}, "Amazon Books", Verdict.HOLDS),
        (
            "R1",
            {},
            {"correlation_clipped_negative_share": "0.9", "correlation_clipped_quantile_50": "-0.2"},
            "Some set",
            Verdict.FAILS,
        ),
        ("R2", {}, {}, "Some set", Verdict.HOLDS),
        ("R2", {}, {"ratio_trend": "-0.1"}, "Some set", Verdict.FAILS),
        (
            "R2",
            {},
            {"ratio_negative_users": "99", "ratio_mean_ratio_where_negative": "0.3"},
            "Some set",
            Verdict.IN_PART,
        ),
        (
            "R2",
            {},
            {"ratio_negative_users": "99", "ratio_mean_ratio_where_negative": "-0.3"},
            "Some set",
            Verdict.HOLDS,
        ),
        ("R3", AS_CLAIMED, {}, "Some set", Verdict.HOLDS),
        ("R3", AS_CLAIMED | {("rs", 0.1): 0.1}, {}, "Some set", Verdict.IN_PART),
        ("R3", AS_CLAIMED | {"rnmh": 0.01}, {}, "Some set", Verdict.HOLDS),
        ("R3", AS_CLAIMED | {"rs": 0.1}, {}, "Some set", Verdict.FAILS),
        ("R4", AS_CLAIMED, {}, "Some set", Verdict.HOLDS),
        ("R4", AS_CLAIMED | {("gem", 16.0): 0.5}, {}, "Some set", Verdict.IN_PART),
        ("R4", AS_CLAIMED | {"gem": 0.5}, {}, "Some set", Verdict.FAILS),
        ("A3", {"mgem": 0.2, "combined-gem": 0.3}, {}, "Amazon Books", Verdict.HOLDS),
        ("A3", {"mgem": 0.2, "combined-gem": 0.3, ("mgem", 1.0): 0.4}, {}, "Amazon Books", Verdict.FAILS),
    ],
)
def test_a_claim_is_judged_by_the_numbers_in_the_tables(id_, errors, facts, run, verdict):
    claim = next(claim for claim in claims.CLAIMS if claim.id == id_)
    data = made_up(errors, facts, run)
    finding = claim.check(data)
    assert finding.verdict is verdict
    assert run in finding.measured
    assert claims.per_run(data)[id_][run].startswith(str(verdict))


def test_the_report_says_what_unclipped_scores_show():
    data = made_up({"gem": 0.1, "rnmh": 0.05}, {})
    assert claims.unclipped(data)["Some set"].startswith("best at ε = 0.01: GEM; mGEM 1, GEM 0.1")


def test_a_claim_that_fails_on_one_set_is_named_with_the_set():
    good, bad = made_up(AS_CLAIMED, {}, "Good set"), made_up(AS_CLAIMED | {"rs": 0.1}, {}, "Bad set")
    both = {name: pa.concat_tables([good[name], bad[name]]) for name in good}
    finding = next(claim for claim in claims.CLAIMS if claim.id == "R3").check(both)
    assert finding.verdict is Verdict.IN_PART
    assert "(Bad set)" in finding.comment
    assert "(Good set)" not in finding.comment


def test_kept_results_are_complete_small_and_say_where_they_come_from():
    for folder in results.COMMITTED.iterdir():
        summary = results.read_summary(folder)
        assert folder.name in {run.name for run in RUNS}
        assert {"recall@20", "published recall@20", "commit", "date", "peak memory", "data", "machine"} <= set(
            summary
        )
        found = results.read_tables(folder)
        assert set(results.TABLES) - set(found) <= {"private"}
        assert {row["epsilon"] for row in found["errors"].to_pylist()} == set(EPSILONS)
        assert sum(path.stat().st_size for path in folder.iterdir()) < 400_000
        # Counts of users, never identities.
        assert not {"user", "item"} & {name for table in found.values() for name in table.column_names}


def test_the_claims_of_this_section_are_its_five():
    assert sorted(claim.id for claim in claims.CLAIMS) == ["A3", "R1", "R2", "R3", "R4"]
    assert sorted(claim.id for claim in claims.checkable(["Gowalla"])) == ["R1", "R2", "R3", "R4"]
    assert claims.checkable(["Gowalla", "Amazon Books 84 %, density 5e-5"]) == list(claims.CLAIMS)
    assert ledger.in_order(_entries())[0].claim.id == "A3"


def _entries():
    data = made_up(AS_CLAIMED, {}, "Amazon Books")
    return ledger.assess("recommender", claims.CLAIMS, data, full=True)
