"""The verdicts on the mechanisms as a whole, on tables with known outcomes."""

import pyarrow as pa
import pytest

from experiments.ledger import Verdict
from experiments.scenarios import TITLES
from experiments.synthetic.overall_claims import CLAIMS, GAMMAS, HETEROGENEOUS, NEW

CHECKS = {claim.id: claim.check for claim in CLAIMS}
EPSILONS = (0.1, 1.0, 10.0)
OTHERS = ("rnm", "krr", "uniform", "rnmh")


def tables(errors=(), stopping=0.5, new=None, real=0.5, **everywhere):
    """Return tables in which all errors are 1 and mGEM's are 1 beside random stopping's, unless said otherwise.

    ``errors`` has errors by scenario and mechanism, ``everywhere`` by mechanism, ``stopping`` random stopping's by
    scenario and γ, or one for all. ``real`` is mGEM's error on real data, where random stopping's is 1.
    """
    known = dict(errors)
    names = [*HETEROGENEOUS, *OTHERS, *([NEW] if new else [])]
    everywhere = {name.replace("_", "-"): value for name, value in everywhere.items()} | {NEW: new}
    rows = [
        {
            "scenario": title,
            "mechanism": name,
            "epsilon": epsilon,
            "mean_squared_error": known.get((number, name), everywhere.get(name, 1.0)),
        }
        for number, title in TITLES.items()
        for name in names
        for epsilon in EPSILONS
    ]
    draws = [
        {
            "scenario": title,
            "gamma": gamma,
            "epsilon": epsilon,
            "mean_squared_error": stopping if isinstance(stopping, float) else stopping[number, gamma],
            "mgem": 1.0,
        }
        for number, title in TITLES.items()
        for gamma in GAMMAS
        for epsilon in EPSILONS
    ]
    kept = [
        {
            "run": "Amazon Books",
            "correlation": 0.2,
            "variant": "clipped",
            "mechanism": name,
            "epsilon": epsilon,
            "mean_squared_error": error,
        }
        for name, error in {"mgem": real, "rs": 1.0}.items()
        for epsilon in EPSILONS
    ]
    found = {"errors": rows, "stopping": draws, "data": kept}
    return {name: pa.Table.from_pylist(values) for name, values in found.items()}


def test_g1_holds_if_some_mechanism_is_ahead_in_each_scenario():
    assert CHECKS["G1"](tables(mgem=0.5)).words == "holds"


def test_g1_names_the_scenarios_in_which_no_mechanism_is_ahead():
    finding = CHECKS["G1"](tables({(3, "mgem"): 1.1}, mgem=0.5))
    assert finding.verdict is Verdict.IN_PART
    assert finding.comment.startswith("Fails: no mechanism beats RNM in scenario 3 at any ε.")
    assert CHECKS["G1"](tables()).verdict is Verdict.FAILS


def test_g2_holds_if_each_mechanism_is_behind_somewhere_and_names_those_that_never_are():
    behind = {(2, name): 1.5 for name in HETEROGENEOUS}
    assert CHECKS["G2"](tables(behind)).words == "holds"
    finding = CHECKS["G2"](tables(behind | {(2, "gem"): 0.9}))
    assert finding.comment.startswith("Fails: GEM is never worse.")


@pytest.mark.parametrize(
    ("new", "said"), [(0.9, "lower error than RNM in every scenario at every ε"), (1.2, "in 0.0% of the cases")]
)
@pytest.mark.parametrize("id_", ["G1", "G2"])
def test_what_is_true_of_heterogeneous_noisy_max_is_said_beside_the_paper_s_claims(id_, new, said):
    assert said in CHECKS[id_](tables(new=new)).comment
    assert "heterogeneous noisy max" not in CHECKS[id_](tables()).comment


def test_g3_needs_all_three_mechanisms_to_lose_to_a_random_pick():
    worse = {(2, "rs"): 1.5, (1, "gem"): 1.5, (2, "mgem"): 1.5}
    assert CHECKS["G3"](tables(worse)).words == "holds"
    finding = CHECKS["G3"](tables(worse | {(1, "gem"): 1.0}))
    assert finding.comment == "Fails: GEM never is."


def test_g4_depends_on_gamma_and_on_the_scenario():
    assert CHECKS["G4"](tables(stopping=2.0)).words == "holds"
    assert CHECKS["G4"](tables(stopping=0.5, real=2.0)).verdict is Verdict.FAILS
    finding = CHECKS["G4"](tables(stopping=0.5))
    assert finding.verdict is Verdict.IN_PART
    assert "mGEM has the lower error in 3 of 3 cells of run and ε, 0.5 to 0.5 times" in finding.measured
    better = {(number, gamma): 2.0 if number in {1, 4} else 0.5 for number in TITLES for gamma in GAMMAS}
    finding = CHECKS["G4"](tables(stopping=better | {(1, 0.001): 0.1}))
    assert finding.verdict is Verdict.IN_PART
    assert "in 2 of 8 scenarios at ε = 1" in finding.comment
    assert "at γ = 0.001 RSᵧ has the lower error with positive correlation" in finding.comment


def test_g5_compares_combined_gem_with_what_needs_no_correlation():
    assert CHECKS["G5"](tables(combined_gem=0.5)).words == "holds"
    finding = CHECKS["G5"](tables({(7, "combined-gem"): 0.5}, combined_gem=1.2))
    assert finding.verdict is Verdict.IN_PART
    assert "on average over all scenarios RNM is better" in finding.comment
    assert CHECKS["G5"](tables(combined_gem=2.0)).verdict is Verdict.FAILS


def test_g8_compares_random_stopping_with_the_naive_mechanism_at_both_gammas():
    shares = {(number, gamma): 1.1 for number in TITLES for gamma in GAMMAS}
    assert CHECKS["G8"](tables(stopping=shares, rs=1.1, rnmh=1.0)).words == "holds"
    finding = CHECKS["G8"](tables({(1, "rs"): 5.0, (2, "rs"): 0.5}, stopping=shares, rs=1.1))
    assert finding.verdict is Verdict.IN_PART
    assert (
        "it is much worse in scenario 1 (5 to 5 times); it is better in scenario 2 (0.5 to 0.5 times)"
        in finding.comment
    )
