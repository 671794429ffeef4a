"""The verdicts on bandits, on tables with known outcomes."""

from bandit_runs import runs, story

from experiments.bandit.claims import CLAIMS
from experiments.ledger import Verdict

CHECKS = {claim.id: claim.check for claim in CLAIMS}


def test_b1_holds_if_ucb_is_stuck_and_everybody_private_earns_more():
    assert CHECKS["B1"](runs(ucb=story(0.75, 0.2))).verdict is Verdict.HOLDS


def test_b1_does_not_hold_if_ucb_changes_over():
    finding = CHECKS["B1"](runs(ucb=story(0.75, 0.75)))
    assert finding.verdict is Verdict.FAILS
    assert "UCB earns more than mGEM" in finding.comment


def test_b2_holds_if_mgem_is_ahead_of_all_and_gem_behind_random():
    assert CHECKS["B2"](runs(mgem=story(0.7, 0.7), gem=story(0.3, 0.3))).verdict is Verdict.HOLDS


def test_b2_names_who_earns_more_than_mgem():
    finding = CHECKS["B2"](runs(mgem=story(0.6, 0.6), gem=story(0.3, 0.3), ucb=story(0.7, 0.7)))
    assert finding.verdict is Verdict.IN_PART
    assert "UCB earns more than mGEM" in finding.comment
    assert "kRR" not in finding.comment.partition("Beyond the paper")[0]


def test_b3_compares_how_soon_the_rising_arm_is_seen():
    fast = {"mgem": story(0.5, 0.5, rise=40), "rs": story(0.5, 0.5, rise=80)}
    assert CHECKS["B3"](runs(**fast)).verdict is Verdict.HOLDS
    finding = CHECKS["B3"](runs(**fast, ucb=story(0.5, 0.5, rise=8)))
    assert finding.verdict is Verdict.IN_PART
    assert "UCB adapts faster than RSᵧ" in finding.comment


def test_b4_holds_if_estimates_are_near_and_not_if_they_are_off():
    assert CHECKS["B4"](runs()).verdict is Verdict.HOLDS
    finding = CHECKS["B4"](runs(gem=story(0.4, 0.4, error=0.15)))
    assert finding.verdict is Verdict.IN_PART
    assert "GEM: each quantile" in finding.comment
    off = {name: story(0.4, 0.4, error=0.15) for name in ("rnm", "rs", "gem", "mgem", "combined_gem")}
    assert CHECKS["B4"](runs(**off)).verdict is Verdict.FAILS
