"""The verdicts on bandits, on tables with known outcomes."""

from bandit_runs import runs, story

from experiments.bandit.claims import CLAIMS
from experiments.bandit.runs import ALPHAS
from experiments.ledger import Verdict

CHECKS = {claim.id: claim.check for claim in CLAIMS}


STUCK, ADAPTS = story(0.75, 0.2), story(0.75, 0.75)


PRINTED = "does not hold at α = √2, the only value printed; holds"


def test_b1_is_judged_at_the_printed_alpha_and_says_for_which_alpha_it_holds():
    finding = CHECKS["B1"](runs(dict.fromkeys(ALPHAS, ADAPTS) | dict.fromkeys(ALPHAS[2:5], STUCK)))
    assert finding.words == f"{PRINTED} for α = 0.02 to 0.05"
    assert finding.fails == "UCB earns more than every private policy"
    assert CHECKS["B1"](runs(dict.fromkeys(ALPHAS, STUCK))).words == "holds"
    assert CHECKS["B1"](runs(dict.fromkeys(ALPHAS, ADAPTS))).words == f"{PRINTED} for no α"


def test_b1_does_not_hold_if_one_private_policy_earns_less_than_ucb_with_any_alpha():
    finding = CHECKS["B1"](runs(dict.fromkeys(ALPHAS, STUCK), krr=story(0.1, 0.1)))
    assert finding.words == f"{PRINTED} for no α"
    assert finding.comment.startswith("Fails: UCB earns more than kRR.")


MGEM_AHEAD = {"mgem": story(0.7, 0.7), "gem": story(0.3, 0.3)}


def test_b2_holds_for_the_alpha_at_which_mgem_is_ahead_of_all_and_gem_behind_random():
    assert CHECKS["B2"](runs(**MGEM_AHEAD)).words == "holds"
    finding = CHECKS["B2"](runs({ALPHAS[-1]: story(0.8, 0.8)}, **MGEM_AHEAD))
    assert finding.words == f"{PRINTED} for α ≤ 1"
    assert "Whatever α, mGEM earns most of the private policies" in finding.comment


def test_b2_names_who_earns_more_than_mgem():
    finding = CHECKS["B2"](runs(mgem=story(0.6, 0.6), gem=story(0.3, 0.3), thompson=story(0.7, 0.7)))
    assert finding.verdict is Verdict.FAILS
    assert "Whatever α" not in finding.comment
    assert "Thompson sampling earns more than mGEM" in finding.comment
    assert "kRR" not in finding.comment.partition("Beyond the paper")[0]
    finding = CHECKS["B2"](runs(dict.fromkeys(ALPHAS, story(0.9, 0.9)), **MGEM_AHEAD))
    assert finding.words == f"{PRINTED} for no α"
    assert finding.comment.startswith("Fails: UCB earns 200 ± 0 more than mGEM.")


def test_b3_compares_how_soon_the_rising_arm_is_seen():
    fast = {"mgem": story(0.5, 0.5, rise=40), "rs": story(0.5, 0.5, rise=80)}
    sooner = story(0.5, 0.5, rise=8)
    assert CHECKS["B3"](runs(**fast)).words == "holds"
    printed = CHECKS["B3"](runs({ALPHAS[-1]: sooner}, **fast))
    assert printed.verdict is Verdict.IN_PART
    assert "at α = √2, the only value printed, though not for α ≤ 1" in printed.comment
    finding = CHECKS["B3"](runs(**fast, thompson=sooner))
    assert finding.verdict is Verdict.IN_PART
    assert "Thompson sampling adapts faster than RSᵧ" in finding.comment
    assert "for every α" in CHECKS["B3"](runs(dict.fromkeys(ALPHAS, sooner), **fast)).comment


def test_b4_holds_if_estimates_are_near_and_not_if_they_are_off():
    assert CHECKS["B4"](runs()).verdict is Verdict.HOLDS
    # 0.1 is less than a fifth of the wide arm's range of 0.584, and more than a fifth of the narrow one's 0.256.
    for error in (0.1, 0.15):
        finding = CHECKS["B4"](runs(gem=story(0.4, 0.4, error=error)))
        assert finding.verdict is Verdict.IN_PART
        assert finding.comment.startswith("Fails: GEM’s worst quantile is close to the truth")
    off = {name: story(0.4, 0.4, error=0.15) for name in ("rnm", "rs", "gem", "mgem", "combined_gem")}
    assert CHECKS["B4"](runs(**off)).verdict is Verdict.FAILS


def test_b5_compares_noise_for_each_arm_with_equal_noise_and_with_none_before_the_shift():
    better = {"mgem": story(0.6, 0.1), "rs": story(0.55, 0.1), "gem": story(0.5, 0.1)}
    assert CHECKS["B5"](runs(**better)).words == "holds"
    finding = CHECKS["B5"](runs(**better | {"gem": story(0.3, 0.9), "ucb": story(0.7, 0.1)}))
    assert finding.verdict is Verdict.IN_PART
    assert finding.comment.startswith("Fails: GEM earns less than RNM; every private policy earns less than UCB.")
