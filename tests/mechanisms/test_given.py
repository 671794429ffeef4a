"""Mechanisms from a function that returns probabilities."""

import pickle
import subprocess
import sys
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare

import dpselect as dps
from dpselect.budget import Ledger
from dpselect.errors import ReleaseConflictError
from dpselect.guarantees import ANY_SCORES
from dpselect.laws import given
from dpselect.release import Charge, release


def softmax(scores, sensitivities, epsilon=1.0):
    weights = np.exp(np.maximum(epsilon * (scores - scores.max()) / (2 * sensitivities.max()), -600.0))
    return weights / weights.sum()


PROMISE = dps.Guarantee(epsilon=1.0, theorem="the exponential mechanism", reference="McSherry and Talwar 2007")
OWN = dps.from_pmf(softmax, guarantee=PROMISE)
TWIN = dps.NoisyMax(1.0, noise="gumbel")
SCORES, WIDTHS = [0.0, 2.0, 1.0, -3.0], [1.0, 0.5, 0.25, 1.0]


def test_its_probabilities_are_those_of_the_function_in_every_form_of_scores():
    np.testing.assert_allclose(OWN.pmf(SCORES, WIDTHS), TWIN.pmf(SCORES, WIDTHS), rtol=1e-12)
    batch = np.array([SCORES, SCORES[::-1]])
    np.testing.assert_allclose(OWN.pmf(batch, 1.0), TWIN.pmf(batch, 1.0), rtol=1e-12)
    ragged = np.array([0.0, 1.0, 2.0]), np.array([0, 2, 3])
    np.testing.assert_allclose(OWN.pmf(ragged, 1.0), TWIN.pmf(ragged, 1.0), rtol=1e-12)
    assert OWN.pmf(np.empty((0, 3)), 1.0).shape == (0, 3)
    assert OWN.select(np.empty((0, 3)), 1.0).shape == (0,)


def test_picks_follow_the_probabilities():
    """A fixed seed; for other seeds the false-alarm rate is 1e-6."""
    picks = OWN.select(np.broadcast_to(SCORES, (20_000, 4)), WIDTHS, randomness=dps.Randomness.seeded(1))
    assert chisquare(np.bincount(picks, minlength=4), 20_000 * OWN.pmf(SCORES, WIDTHS)).pvalue > 1e-6


def test_a_pick_is_exact_where_sums_of_floats_are_not():
    """Of 8 possible draws, 1 is the first's, 6 are the second's and 1 is the third's; the fourth has none."""
    drawn = [given._pick([0.125, 0.75, 0.125, 0.0], number.to_bytes(8, "little")) for number in range(4000)]
    assert chisquare(np.bincount(drawn, minlength=3), [500, 3000, 500]).pvalue > 1e-6
    tiny = [2.0**-1074, 1.0 - 2.0**-53]
    total = sum(map(Fraction, tiny))
    for number in range(50):  # 1074 bits decide, and the sum is not 1
        assert given._pick(tiny, number.to_bytes(8, "little")) == 1
    assert Fraction(tiny[0]) / total > 0
    assert given._pick([1.0], b"") == 0


def test_it_works_in_tables_lists_errors_audits_and_advice():
    frame = pd.DataFrame(
        {"user": [1, 1, 2, 2], "candidate": list("abab"), "score": [900.0, 0, 0, 900.0], "sensitivity": 1.0}
    )
    assert dps.select_table(frame, OWN)["candidate"].tolist() == ["a", "b"]
    top = dps.TopK(OWN, count=2)
    assert top.guarantee.epsilon == 2.0
    assert dps.select_table(frame, top)["candidate"].tolist() == ["a", "b", "b", "a"]
    assert top.probability([1, 2], SCORES, WIDTHS) == pytest.approx(
        dps.TopK(TWIN, count=2).probability([1, 2], SCORES, WIDTHS)
    )
    assert dps.expected_error(OWN, SCORES, WIDTHS) == pytest.approx(dps.expected_error(TWIN, SCORES, WIDTHS))
    assert dps.auditing.privacy_loss(OWN, [0.0, 2.0], [1.0, 1.0], 1.0).epsilon == pytest.approx(
        dps.auditing.privacy_loss(TWIN, [0.0, 2.0], [1.0, 1.0], 1.0).epsilon
    )
    assert dps.advice.advise([1.0, 2.0], 1.0, pool=[OWN, dps.Uniform()]).ranking[0].mechanism in {
        OWN,
        dps.Uniform(),
    }


def test_a_guarantee_for_any_scores_needs_no_sensitivities():
    def best(scores, sensitivities):
        assert not sensitivities.any()
        return np.where(scores == scores.max(), 0.75, 0.25 / (scores.size - 1))

    promise = dps.Guarantee(epsilon=2.5, neighbours=ANY_SCORES, theorem="as randomised response", reference="")
    own = dps.from_pmf(best, guarantee=promise)
    assert own.pmf([0.0, 1.0]).tolist() == [0.25, 0.75]
    with pytest.raises(ValueError, match="sensitivities must be given"):
        OWN.select([0.0, 1.0])


def test_a_paid_release_is_not_computed_again_with_another_function(tmp_path):
    table = {"user": [1, 1], "candidate": ["a", "b"], "score": [9.0, 1.0], "sensitivity": [1.0, 1.0]}
    with Ledger.create(tmp_path / "budget.db") as ledger:
        ledger.add_population("readers", epsilon=9.0)
        charge = Charge(ledger, "readers", "spring")
        first = release(table, OWN, payment=charge).picks
        assert release(table, OWN, payment=charge).picks == first
        with pytest.raises(ReleaseConflictError):
            release(table, dps.from_pmf(changed, guarantee=PROMISE, name="softmax"), payment=charge)
        assert ledger.statement("readers").epsilon_spent == 1.0


def changed(scores, sensitivities):
    return softmax(scores, 3 * sensitivities)


def made_with(scale):
    return lambda scores, sensitivities: softmax(scores, scale * sensitivities)


def test_the_name_of_the_law_changes_with_the_code_and_with_what_it_was_made_with():
    functions = [
        *(softmax, changed, made_with(2.0), made_with(3.0), partial(softmax, epsilon=0.5)),
        *(partial(softmax, epsilon=0.25), lambda q, d: softmax(q, d) if "a" in {"a", "b"} else None),
    ]
    names = [dps.from_pmf(function, guarantee=PROMISE, name="one").law_name for function in functions]
    assert len(set(names)) == len(names)
    assert all(name.startswith("from_pmf(one, epsilon=1.0, code=") for name in names)
    again = dps.from_pmf(made_with(2.0), guarantee=PROMISE, name="one").law_name
    assert again == names[2]


def test_the_name_of_the_law_is_the_same_in_another_process():
    script = (
        "import dpselect as dps\n"
        "f = lambda q, d: q if 'a' in {'a', 'b', 'c', 'd'} else d\n"
        "print(dps.from_pmf(f, guarantee=dps.GEM(1.0).guarantee).law_name)"
    )
    runs = [subprocess.run([sys.executable, "-c", script], capture_output=True, check=True) for _ in range(2)]  # noqa: S603
    assert len({run.stdout for run in runs}) == 1


def test_it_can_be_sent_to_another_process_and_shows_no_address():
    assert pickle.loads(pickle.dumps(OWN)) == OWN  # noqa: S301 - our own
    assert repr(OWN) == "from_pmf(softmax, epsilon=1.0)"
    assert (OWN.label, OWN.guarantee) == ("softmax", PROMISE)


SECRET = 73.21943


@pytest.mark.parametrize(
    ("function", "rule"),
    [
        (lambda *_: [1.0], "one probability for each candidate, 2 in this row"),
        (lambda *_: None, "one probability for each candidate"),
        (lambda *_: ["a", "b"], "one probability for each candidate"),
        (lambda *_: [0.5, 0.6], "add up to 1"),
        (lambda *_: [1.5, -0.5], "numbers ≥ 0"),
        (lambda *_: [np.nan, 1.0], "numbers ≥ 0"),
    ],
)
def test_what_are_not_probabilities_is_refused_and_no_score_shows(function, rule):
    own = dps.from_pmf(function, guarantee=PROMISE)
    for call in (own.pmf, own.select):
        with pytest.raises(ValueError, match=rule) as caught:
            call([SECRET, 0.0], 1.0)
        assert "73" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"function": "softmax"}, "function must be a function of scores and sensitivities, got str"),
        ({"function": dps.GEM}, "function must be a function"),
        ({"guarantee": 1.0}, "guarantee must be a Guarantee, such as"),
        ({"name": ""}, "name must be a non-empty text"),
    ],
)
def test_bad_arguments_are_refused(arguments, rule):
    with pytest.raises(ValueError, match=rule):
        dps.from_pmf(**{"function": softmax, "guarantee": PROMISE} | arguments)
