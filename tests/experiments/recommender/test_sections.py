"""The sections on recommendations: synthetic data are labelled, and claims follow the tables."""

import numpy as np
import pyarrow as pa
import pytest

from experiments import ledger, tables
from experiments.__main__ import main
from experiments.ledger import Verdict
from experiments.mechanisms import COMPARED
from experiments.recommender import claims, live, protocol, results

EPSILONS = protocol.EPSILONS


# One run is looked at from several sides: by one worker, so that it is one run.
pytestmark = pytest.mark.xdist_group("recommender")


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    directory = tmp_path_factory.mktemp("run")
    assert main(["--fast", "--only", "recommender-generated", "--output", str(directory)]) == 0
    return directory


def test_synthetic_interactions_are_called_synthetic_wherever_they_are_shown(output):
    page = (output / "excerpt.html").read_text(encoding="utf-8")
    assert "Recommendations from synthetic interactions" in page
    assert "synthetic interactions, not real data" in page
    assert "synthetic: " in page
    figure = (output / "figures" / "recommender-generated.svg").read_text(encoding="utf-8")
    assert "Synthetic interactions, not real data" in figure
    for file in (output / "tables").glob("recommender-generated-*.csv"):
        assert set(tables.read(file)["run"].to_pylist()) == {live.TITLE}


def test_synthetic_interactions_have_the_tables_of_a_real_run(output):
    found = {file.stem.removeprefix("recommender-generated-") for file in (output / "tables").glob("recommender-*")}
    assert found == {"facts", *results.TABLES} - {"lists"}  # they have a section of their own


def test_in_synthetic_interactions_popular_items_are_the_sensitive_ones(output):
    table = tables.read(output / "tables" / "recommender-generated-correlations.csv").to_pylist()
    clipped = [row for row in table if row["variant"] == "clipped"]
    assert np.average([row["correlation"] for row in clipped], weights=[row["users"] for row in clipped]) > 0.2


RISING, FALLING = [0.1, 0.2, 0.3], [0.3, 0.2, 0.1]


def made_up(errors, facts, run="MovieLens-20M", below_zero=RISING, unclipped=None):
    """Return tables in which each mechanism has one error at all ε, but for those given."""
    given = {"clipped": errors, "unclipped": errors if unclipped is None else unclipped}
    rows = [
        {
            "run": run,
            "variant": variant,
            "mechanism": mechanism,
            "epsilon": epsilon,
            "mean_squared_error": given[variant].get((mechanism, epsilon), given[variant].get(mechanism, 1.0)),
        }
        for variant in ("clipped", "unclipped")
        for mechanism in COMPARED
        for epsilon in EPSILONS
    ]
    values = {
        **{
            f"correlation_{variant}_{name}": value
            for variant in ("clipped", "unclipped")
            for name, value in (
                ("quantile_50", "0.4"),
                ("negative_share", "0.0"),
                ("users", "900"),
                ("undefined", "0"),
            )
        },
        # Without clipping, every claim about correlations is true too.
        "correlation_unclipped_negative_share": "0.02" if run.startswith("Amazon") else "0.0",
        "ratio_trend": "0.5",
        "ratio_negative_users": "0",
        "ratio_mean_ratio_where_negative": "0.0",
        "ratio_users": "900",
        "ratio_undefined": "7",
    } | facts
    found = pa.table({"run": [run] * len(values), "name": list(values), "value": list(values.values())})
    ratios = pa.table(
        {
            "run": [run] * 4,
            "version": ["exact"] * 4,
            "correlation": [-0.3, -0.2, -0.1, 0.5],
            "log_ratio": [*below_zero, 0.0],
            "users": [40, 40, 40, 1],
        }
    )
    return {"errors": pa.Table.from_pylist(rows), "facts": found, "ratios": ratios}


AS_CLAIMED = {"mgem": 0.2, "gem": 1.5, "rnm": 0.9, "rs": 0.4}


@pytest.mark.parametrize(
    ("id_", "errors", "facts", "run", "verdict"),
    [
        ("R1", {}, {}, "MovieLens-20M", Verdict.HOLDS),
        ("R1", {}, {"correlation_clipped_negative_share": "0.01"}, "MovieLens-20M", Verdict.IN_PART),
        ("R1", {}, {"correlation_clipped_negative_share": "0.01"}, "Amazon Books", Verdict.HOLDS),
        ("R1", {}, {"correlation_clipped_negative_share": "0.003"}, "Amazon Books", Verdict.IN_PART),
        (
            "R1",
            {},
            {"correlation_clipped_negative_share": "0.4", "correlation_clipped_undefined": "300"},
            "Amazon Books",
            Verdict.IN_PART,
        ),
        (
            "R1",
            {},
            {"correlation_clipped_negative_share": "0.9", "correlation_clipped_quantile_50": "-0.2"},
            "MovieLens-20M",
            Verdict.FAILS,
        ),
        ("R2", {}, {}, "MovieLens-20M", Verdict.HOLDS),
        ("R2", {}, {"ratio_trend": "-0.1"}, "MovieLens-20M", Verdict.FAILS),
        ("R3", AS_CLAIMED, {}, "MovieLens-20M", Verdict.HOLDS),
        ("R3", AS_CLAIMED | {("rs", 0.1): 0.1}, {}, "MovieLens-20M", Verdict.IN_PART),
        ("R3", AS_CLAIMED | {"rnmh": 0.01}, {}, "MovieLens-20M", Verdict.HOLDS),
        ("R3", AS_CLAIMED | {"rs": 0.1}, {}, "MovieLens-20M", Verdict.FAILS),
        ("R4", AS_CLAIMED, {}, "MovieLens-20M", Verdict.HOLDS),
        ("R4", AS_CLAIMED | {("gem", 16.0): 0.5}, {}, "MovieLens-20M", Verdict.IN_PART),
        ("R4", AS_CLAIMED | {"gem": 0.5}, {}, "MovieLens-20M", Verdict.FAILS),
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


@pytest.mark.parametrize(("below_zero", "verdict"), [(RISING, Verdict.HOLDS), (FALLING, Verdict.IN_PART)])
@pytest.mark.parametrize("mean", ["-0.3", "0.3"])
def test_below_zero_the_trend_of_the_ratio_counts_and_not_its_sign(below_zero, verdict, mean):
    facts = {"ratio_negative_users": "120", "ratio_mean_ratio_where_negative": mean}
    data = made_up({}, facts, "Amazon Books", below_zero)
    finding = next(claim for claim in claims.CLAIMS if claim.id == "R2").check(data)
    assert finding.verdict is verdict
    assert ("does not grow with the correlation below zero" in finding.comment) == (verdict is Verdict.IN_PART)


def joined(*tables):
    return {name: pa.concat_tables([each[name] for each in tables]) for name in tables[0]}


def test_a_substitute_never_turns_a_verdict():
    check = next(claim for claim in claims.CLAIMS if claim.id == "R3").check
    good = made_up(AS_CLAIMED, {}, "Amazon Books 84 %, density 5e-5")
    near, other = (made_up(AS_CLAIMED | {"rs": error}, {}, "MovieLens-1M") for error in (0.4, 0.1))
    alone = check(near)
    assert alone.words == "is not judged (substitutes alone)"
    assert "MovieLens-1M stands for MovieLens-20M and turns no verdict" in alone.comment
    assert "Not available: MovieLens-20M, Netflix Prize, Amazon Books." in alone.comment
    assert check(joined(good, near)).words == "holds on substitutes"
    assert check(joined(good, other)).words == "holds on substitutes but not on MovieLens-1M"
    bad = made_up(AS_CLAIMED | {"rs": 0.1}, {}, "MovieLens-20M")
    assert check(joined(good, near, bad)).verdict is Verdict.IN_PART


@pytest.mark.parametrize("id_", ["R3", "R4", "A3"])
def test_what_unclipped_scores_reverse_is_said_with_the_verdict_and_does_not_turn_it(id_):
    check = next(claim for claim in claims.CLAIMS if claim.id == id_).check
    reverse = {"mgem": 1.5, "gem": 0.1, "rnm": 0.9, "rs": 0.4, "combined-gem": 0.2}
    finding = check(made_up(AS_CLAIMED, {}, "Amazon Books", unclipped=reverse))
    assert finding.words == "holds clipped; unclipped scores reverse it on Amazon Books"
    assert "unclipped: " in finding.measured


def test_users_without_a_correlation_are_counted():
    data = made_up({}, {"correlation_clipped_undefined": "11"}, "Amazon Books")
    finding = next(claim for claim in claims.CLAIMS if claim.id == "R1").check(data)
    assert "of 900 users, undefined for 11" in finding.measured
    finding = next(claim for claim in claims.CLAIMS if claim.id == "R2").check(data)
    assert "7 of 900 users are left out" in finding.measured


def test_a_dataset_that_the_paper_never_used_turns_no_verdict():
    check = next(claim for claim in claims.CLAIMS if claim.id == "R3").check
    good, bad = made_up(AS_CLAIMED, {}), made_up(AS_CLAIMED | {"rs": 0.1}, {}, "Gowalla")
    finding = check(joined(good, bad))
    assert finding.words == "holds"
    assert "Shown but not judged" in finding.measured
    assert "Gowalla" in finding.measured


def test_netflix_must_have_the_largest_correlations_if_it_is_there():
    check = next(claim for claim in claims.CLAIMS if claim.id == "R1").check
    netflix = made_up({}, {"correlation_clipped_quantile_50": "0.6"}, "Netflix Prize")
    less, more = (made_up({}, {"correlation_clipped_quantile_50": median}) for median in ("0.4", "0.7"))
    assert check(joined(netflix, less)).words == "holds"
    assert "no dataset has a larger median" in check(joined(netflix, more)).comment


def test_what_unclipped_scores_show_is_said():
    data = made_up({"gem": 0.1, "rnmh": 0.05}, {})
    assert claims.unclipped(data)["MovieLens-20M"].startswith("best at ε = 0.01: GEM; mGEM 1, GEM 0.1")


def test_what_fails_on_one_set_is_named_with_the_set():
    good, bad = made_up(AS_CLAIMED, {}), made_up(AS_CLAIMED | {"rs": 0.1}, {}, "Amazon Books")
    finding = next(claim for claim in claims.CLAIMS if claim.id == "R3").check(joined(good, bad))
    assert finding.verdict is Verdict.IN_PART
    assert "(Amazon Books)" in finding.comment
    assert "(MovieLens-20M)" not in finding.comment


def test_the_claims_of_this_section_are_its_five():
    assert sorted(claim.id for claim in claims.CLAIMS) == ["A3", "R1", "R2", "R3", "R4"]
    assert claims.checkable(["Gowalla"]) == []
    assert sorted(claim.id for claim in claims.checkable(["MovieLens-1M"])) == ["R1", "R2", "R3", "R4"]
    assert claims.checkable(["Gowalla", "Amazon Books 84 %, density 5e-5"]) == list(claims.CLAIMS)
    assert ledger.in_order(_entries())[0].claim.id == "A3"


def _entries():
    data = made_up(AS_CLAIMED, {}, "Amazon Books")
    return ledger.assess("recommender", claims.CLAIMS, data, full=True)
