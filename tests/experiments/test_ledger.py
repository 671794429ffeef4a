"""The ledger: verdicts, order and totals."""

from dataclasses import replace

import pytest

from experiments import ledger
from experiments.__main__ import EXPERIMENTS
from experiments.ledger import Claim, Entry, Finding, Verdict, judge

CLAIMED = {
    f"{letter}{number}"
    for letter, last in {"P": 10, "G": 10, "T": 7, "S": 13, "A": 3, "R": 4, "B": 5, "U": 3}.items()
    for number in range(1, last + 1)
}
"""The rows of the paper's claims."""


ORIGIN = {"effort": "full: all", "duration": "17.0 s"}


def entry(id_, verdict=Verdict.HOLDS):
    finding = Finding(verdict=verdict, measured="1")
    return Entry(claim=Claim(id=id_, text="so", check=lambda _: finding), finding=finding, experiment="figure")


def test_every_claim_of_the_paper_is_checked_once():
    ids = [claim.id for experiment in EXPERIMENTS for claim in experiment.claims if not claim.id.startswith("N")]
    assert len(ids) == len(CLAIMED) == 55
    assert set(ids) == CLAIMED


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ({"one": True, "two": True}, Verdict.HOLDS),
        ({"one": True, "two": False}, Verdict.IN_PART),
        ({"one": False, "two": False}, Verdict.FAILS),
        ({"one": False}, Verdict.FAILS),
    ],
)
def test_a_claim_holds_in_part_if_some_of_it_does_and_what_does_not_is_named(parts, verdict):
    finding = judge(parts, "numbers", "why")
    assert finding.verdict is verdict
    assert all((name in finding.comment) == (not holds) for name, holds in parts.items())
    assert finding.comment.endswith("why")


def test_a_failing_part_is_replaced_by_what_is_true_instead():
    finding = judge({"grows": False, "is positive": False}, "numbers", instead={"grows": "it stays bounded"})
    assert finding.comment == "Fails: it stays bounded; “is positive”."
    assert judge({"grows": True}, "numbers", instead={"grows": "it stays bounded"}).comment == ""


def test_a_scope_belongs_to_a_claim_that_holds_and_is_shown_with_its_verdict():
    finding = judge({"grows": True}, "numbers", scope="for ε ≤ 1")
    assert finding.words == "holds for ε ≤ 1"
    assert judge({"grows": False}, "numbers", scope="for ε ≤ 1").words == "does not hold"
    claim = Claim(id="S1", text="so", check=lambda _: finding)
    page = ledger.markdown([Entry(claim=claim, finding=finding, experiment="figure")], ORIGIN)
    assert "| **holds** for ε ≤ 1 | numbers | `figure` |" in page
    assert "**1** holds" in page
    assert "1 hold in the stated range" in page


def test_a_formula_is_not_escaped_and_the_rest_is():
    finding = judge({"grows": True}, "a_b is $e^{−ε}_a$ if Δ₁ < Δ₂, at √2")
    claim = Claim(id="P5", text="$Δ_*$ < [*]", check=lambda _: finding)
    page = ledger.markdown([Entry(claim=claim, finding=finding, experiment="figure")], ORIGIN)
    assert r"| $Δ_*$ \< \[\*] | **holds** | a\_b is $e^{−ε}_a$ if $Δ₁ < Δ₂$, at $\sqrt 2$ |" in page


def test_a_verdict_that_fails_says_what_is_true_and_the_page_says_it_once():
    finding = judge(
        {"grows": False}, "numbers", "The proof is short.", instead={"grows": "the ratio stays bounded"}
    )
    assert finding.sentence == "Fails: the ratio stays bounded."
    assert finding.remark == "The proof is short."
    claim = Claim(id="P5", text="so", check=lambda _: finding)
    page = ledger.markdown([Entry(claim=claim, finding=finding, experiment="figure")], ORIGIN)
    assert (
        "| **does not hold** Fails: the ratio stays bounded. | numbers *The proof is short.* | `figure` |" in page
    )
    assert judge({"grows": True}, "numbers", "why").sentence == ""


def test_a_verdict_that_fails_where_the_paper_makes_it_says_where_it_holds():
    failed = replace(
        judge({"wins": False}, "numbers", instead={"wins": "UCB wins"}), scope="at α = √2; holds for α ≤ 1"
    )
    assert failed.words == "does not hold at α = √2; holds for α ≤ 1"
    claim = Claim(id="B1", text="so", check=lambda _: failed)
    page = ledger.markdown([Entry(claim=claim, finding=failed, experiment="figure")], ORIGIN)
    assert r"| **does not hold** at α = $\sqrt 2$; holds for α ≤ 1. Fails: UCB wins. | numbers | `figure` |" in page


def test_the_page_says_how_long_its_run_took_and_what_cannot_be_computed_again():
    page = ledger.markdown([entry("S1")], ORIGIN)
    assert "This run was full: all. It took 17.0 s." in page
    assert "except those on real data" in page
    assert "HG(M, M′)" in page


def test_the_ledger_is_in_the_order_of_the_paper():
    ids = [
        line.claim.id
        for line in ledger.in_order(
            [entry(id_) for id_ in ("U1", "S10", "S2", "P10", "G1", "P9", "T7", "A3", "R1")]
        )
    ]
    assert ids == ["P9", "P10", "G1", "T7", "S2", "S10", "A3", "R1", "U1"]


@pytest.mark.parametrize(("ids", "named"), [(["S1", "S1"], "S1"), (["Q1"], "Q1"), (["S"], "'S'")])
def test_a_claim_checked_twice_or_without_a_proper_id_is_refused(ids, named):
    with pytest.raises(ValueError, match=named):
        ledger.in_order([entry(id_) for id_ in ids])


def test_totals_count_each_verdict():
    entries = [entry("S1"), entry("S2", Verdict.FAILS), entry("S3")]
    assert ledger.totals(entries) == {Verdict.HOLDS: 2, Verdict.IN_PART: 0, Verdict.FAILS: 1}


def test_open_verdicts_are_counted_where_there_are_any():
    entries = [entry("S1"), entry("S2", Verdict.OPEN)]
    assert ledger.totals(entries) == {Verdict.HOLDS: 1, Verdict.IN_PART: 0, Verdict.FAILS: 0, Verdict.OPEN: 1}


@pytest.mark.parametrize("needs", [True, False])
@pytest.mark.parametrize("full", [True, False])
def test_only_a_full_run_judges_what_rests_on_many_trials(needs, full):
    claim = Claim(id="S1", text="so", check=lambda _: judge({"so": True}, "17 of 20", "why"), needs_full_run=needs)
    (line,) = ledger.assess("figure", [claim], {}, full=full)
    is_open = needs and not full
    assert line.finding.verdict is (Verdict.OPEN if is_open else Verdict.HOLDS)
    assert line.finding.measured == "17 of 20"
    assert ("too few trials" in line.finding.comment) == is_open
