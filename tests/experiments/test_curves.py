"""Comparisons of error curves."""

import numpy as np
import pyarrow as pa
import pytest

from experiments.curves import Curves, judge_where, scope, span
from experiments.ledger import Verdict


def errors(**curves):
    return Curves(
        pa.table(
            {
                "scenario": ["s"] * 3 * len(curves),
                "mechanism": [name for name in curves for _ in range(3)],
                "epsilon": [0.1, 1.0, 10.0] * len(curves),
                "mean_squared_error": [value for values in curves.values() for value in values],
            }
        )
    )


def test_curves_tell_who_is_below_whom_and_where():
    curves = errors(rnm=[3.0, 2.0, 1e-9], gem=[1.0, 3.0, 2e-9], uniform=[4.0, 4.0, 4.0])
    assert curves.below("s", "gem", "rnm").tolist() == [True, False, True]  # the last: both are negligible
    assert curves.always("s", "gem", "rnm", high=0.1)
    assert not curves.always("s", "gem", "rnm", low=1.0, high=1.0)
    assert curves.span("s", "gem", "rnm") == "for ε = 0.1 and ε = 10"
    assert curves.at("s", "gem", 1.0) == 3.0


def test_a_condition_that_never_holds_is_said_so():
    curves = errors(rnm=[1.0, 1.0, 1.0], gem=[2.0, 2.0, 2.0], uniform=[4.0, 4.0, 4.0])
    assert span(curves.epsilons, curves.below("s", "gem", "rnm")) == "for no ε"


EPSILONS = np.array([0.1, 1.0, 10.0, 100.0])


def test_an_order_of_several_mechanisms_holds_where_all_its_pairs_do():
    curves = errors(rnm=[3.0, 2.0, 1.0], gem=[1.0, 3.0, 2.0], uniform=[4.0, 4.0, 1.5])
    assert curves.ordered("s", ("gem", "uniform")).tolist() == [True, True, False]
    assert curves.ordered("s", ("gem", "uniform"), ("gem", "rnm")).tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        ([True, True, True, True], ""),
        ([True, True, False, False], "for ε ≤ 1"),
        ([False, False, True, True], "for ε ≥ 10"),
        ([False, True, True, False], "for ε = 1 to 10"),
        ([True, False, False, True], "for ε = 0.1 and ε = 100"),
    ],
)
def test_a_scope_is_said_in_few_words(mask, words):
    assert scope(EPSILONS, np.array(mask)) == words


def test_a_claim_that_names_no_epsilon_holds_where_it_does():
    finding = judge_where("it grows", EPSILONS, np.array([True, True, False, False]), "numbers")
    assert finding.words == "holds for ε ≤ 1"
    assert judge_where("it grows", EPSILONS, np.array([True] * 4), "numbers").words == "holds"


@pytest.mark.parametrize(
    ("mask", "said"), [([True, False, False, True], "it grows only for ε"), ([False] * 4, "it grows for no ε")]
)
def test_a_claim_fails_if_it_fails_where_it_must_hold(mask, said):
    finding = judge_where("it grows", EPSILONS, np.array(mask), "numbers", parts={"it is positive": True})
    assert finding.words == "holds in part"
    assert finding.comment.startswith(f"Fails: {said}")
    assert judge_where("it grows", EPSILONS, np.array(mask), "numbers").verdict is Verdict.FAILS
