"""Bad input is a ValueError that names the argument and the rule, before any work, and shows no score."""

import traceback
from contextlib import ExitStack
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpselect as dps
from dpselect.engines.arrow import Layout, PickTransform
from dpselect.release import release
from dpselect.unsafe import NaiveHeterogeneousNoisyMax

SECRET = 73.21943
DIGITS = "73.2"

REGISTERED = {name: make(epsilon=1.0) for name, make in dps.MECHANISMS.items()}
CLASSES = {type(mechanism): name for name, mechanism in reversed(REGISTERED.items())}
MECHANISMS = {name: REGISTERED[name] for name in CLASSES.values()} | {
    "rnmh": NaiveHeterogeneousNoisyMax(epsilon=1.0)
}
"""The first mechanism of each class: what is refused does not depend on parameters."""
every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
NOISY_MAX = MECHANISMS["rnm"]
KEY = bytes(range(32))


def calls(mechanism):
    return {"pmf": mechanism.pmf, "select": mechanism.select}


def start_no_work(*_, **__):
    raise AssertionError("work began before the input was checked")


def is_flat_floats(numbers):
    return isinstance(numbers, list) and all(isinstance(number, float) for number in numbers)


def checked_while_picking(call, scores):
    """Return whether only the pass that picks can detect the error: float scores that are not finite."""
    values = scores[0] if isinstance(scores, tuple) else scores
    values = values.flatten() if isinstance(values, pa.Array) else np.asarray(values)
    numbers = np.asarray(values, dtype=np.float64) if np.asarray(values).dtype.kind == "f" else np.zeros(1)
    return call.__name__ == "select" and not (np.abs(numbers) <= 2.0**300).all()


def assert_refused(call, *arguments, names, picking=False, **keywords):
    """Check that the call is refused with a message that names the argument, and that no score shows.

    It must be refused before any work. If ``picking``, it may be refused during the work, but no pick may be
    settled or returned.
    """
    with ExitStack() as stack:
        for module in ("laws.base", "ranks"):
            if not picking:
                stack.enter_context(patch(f"dpselect.{module}.over_rows", start_no_work))
        stack.enter_context(patch("dpselect.laws.base.ExactStream", start_no_work))
        caught = stack.enter_context(pytest.raises(ValueError))  # noqa: PT011 - the message is checked below
        call(*arguments, **keywords)
    message = str(caught.value)
    assert names in message
    assert len(message) > len(names) + 8
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(caught.value.args)
    assert DIGITS not in shown
    return message


# --- Scores, sensitivities, offsets -----------------------------------------------------------------------

BAD_NUMBERS = {
    "nan": [SECRET, np.nan],
    "inf": [SECRET, np.inf],
    "-inf": [-np.inf, SECRET],
    "beyond 2^300": [SECRET, 2.0**301],
    "complex": np.array([SECRET, 1j]),
    "strings": [str(SECRET), "1"],
    "bytes": [str(SECRET).encode(), b"1"],
    "bools": np.array([True, False]),
    "objects": np.array([SECRET, None], dtype=object),
    "long doubles": np.array([SECRET, 1.0], dtype=np.longdouble),
    "dates": np.array(["2025-01-01", "2025-01-02"], dtype="datetime64[D]"),
    "durations": np.array([1, 2], dtype="timedelta64[s]"),
    "a structure": np.array([(SECRET, 1.0)] * 2, dtype=[("a", float), ("b", float)]),
    "masked": np.ma.array([SECRET, 1.0], mask=[False, True]),
    "unmasked but masked by type": np.ma.array([SECRET, 1.0]),
    "integers beyond 2^53": np.array([2**53 + 1, 1]),
    "negative integers beyond 2^53": np.array([-(2**53) - 1, 1]),
    "unsigned integers beyond 2^53": np.array([2**63 + 1, 1], dtype=np.uint64),
    "integers beyond 64 bits": [2**70, 1],
    "jagged": [[SECRET, 1.0], [SECRET]],
    "jagged and deep": [[[SECRET], [1.0, 2.0]], [[1.0], [2.0]]],
    "a dictionary of lists": {"a": [SECRET]},
    "a dictionary with text": {"a": SECRET, "b": "x"},
    "a set": {SECRET, 1.0},
    "nothing": [None, SECRET],
}
bad_numbers = pytest.mark.parametrize("numbers", BAD_NUMBERS.values(), ids=BAD_NUMBERS)


@every_mechanism
@bad_numbers
def test_scores_must_be_finite_numbers(mechanism, numbers):
    for call in calls(mechanism).values():
        picking = is_flat_floats(numbers) and checked_while_picking(call, numbers)
        assert_refused(call, numbers, 1.0, names="scores", picking=picking)


@bad_numbers
@pytest.mark.parametrize("bad", ["sensitivities", "offsets"])
def test_public_numbers_must_be_finite_numbers(bad, numbers):
    mechanism = MECHANISMS["gem"]
    good = {"scores": [SECRET, 1.0], "sensitivities": 1.0}
    for call in calls(mechanism).values():
        assert_refused(call, **{**good, bad: numbers}, names=bad)


def test_integers_beyond_2_to_the_53_are_refused_although_numpy_would_convert_them():
    assert_refused(NOISY_MAX.pmf, [2**63, -1], 1.0, names="scores")


@every_mechanism
@pytest.mark.parametrize("numbers", [[-1.0, 1.0], -1e-300, [1.0, 5e-324], 1e-310, [2.0**-301, 1.0], np.nan, np.inf])
def test_sensitivities_must_be_zero_or_positive_and_not_tiny(mechanism, numbers):
    for call in calls(mechanism).values():
        message = assert_refused(call, [SECRET, 1.0], numbers, names="sensitivities")
        assert "must" in message


@every_mechanism
@pytest.mark.parametrize("numbers", [[1.0], [1.0, 1.0, 1.0], [[1.0, 1.0, 1.0]], []])
def test_sensitivities_must_fit_the_candidates(mechanism, numbers):
    if numbers == [1.0]:
        numbers = np.ones((3, 4))
    for call in calls(mechanism).values():
        assert_refused(call, [SECRET, 1.0], numbers, names="sensitivities")


@every_mechanism
@pytest.mark.parametrize("scores", [[], [[], []], np.zeros((3, 0)), SECRET, np.float64(SECRET), np.array(SECRET)])
def test_there_must_be_candidates(mechanism, scores):
    for call in calls(mechanism).values():
        assert_refused(call, scores, 1.0, names="scores")


def test_leading_axes_must_broadcast():
    scores = np.full((3, 4), SECRET)
    for call in calls(NOISY_MAX).values():
        message = assert_refused(call, scores, np.ones((2, 4)), names="broadcast")
        assert "sensitivities (2, 4)" in message
        assert_refused(call, scores, 1.0, offsets=np.ones((5, 4)), names="offsets (5, 4)")
        assert_refused(call, scores, 1.0, offsets=np.ones(3), names="offsets")


def test_an_extreme_tilt_is_refused():
    assert_refused(dps.GEM(epsilon=1e-80, tilt=1e20).pmf, [SECRET, 1.0], 1.0, names="tilt")


# --- Ragged rows ------------------------------------------------------------------------------------------

VALUES = [SECRET, 1.0, 2.0]


@every_mechanism
@pytest.mark.parametrize(
    "scores",
    [
        (VALUES, [1, 3]),
        (VALUES, [0, 2]),
        (VALUES, [0, 4]),
        (VALUES, [0, 2, 1, 3]),
        (VALUES, [0.0, 3.0]),
        (VALUES, [0, 0, 3]),
        (VALUES, [0, 3, 3]),
        (VALUES, []),
        (VALUES, [[0, 3]]),
        (VALUES, 3),
        (VALUES, ["0", "3"]),
        (VALUES, [False, True]),
        ([VALUES], [0, 1]),
        (VALUES,),
        (VALUES, [0, 3], [0, 3]),
        (SECRET, 1.0, 2.0),
        (SECRET, 1.0),
        (),
        ([SECRET, np.nan], [0, 2]),
    ],
    ids=str,
)
def test_ragged_rows_must_add_up(mechanism, scores):
    for call in calls(mechanism).values():
        picking = len(scores) == 2 and is_flat_floats(scores[0]) and checked_while_picking(call, scores)
        assert_refused(call, scores, 1.0, names="scores", picking=picking)


def test_public_numbers_of_ragged_rows_must_match_the_scores():
    scores = np.array(VALUES), [0, 1, 3]
    for wrong in ([1.0, 1.0], [[1.0, 1.0, 1.0]], (VALUES, [0, 2, 3]), (VALUES, [0, 3]), np.ones((2, 3))):
        assert_refused(NOISY_MAX.pmf, scores, wrong, names="sensitivities")
        assert_refused(NOISY_MAX.pmf, scores, 1.0, offsets=wrong, names="offsets")
    assert_refused(NOISY_MAX.pmf, scores, [1.0, -1.0, 1.0], names="sensitivities")
    assert_refused(NOISY_MAX.pmf, [SECRET, 1.0], ([1.0, 1.0], [0, 2]), names="sensitivities")


# --- Arrow ------------------------------------------------------------------------------------------------

ROWS = [[SECRET, 1.0], [2.0]]


@pytest.mark.parametrize(
    "scores",
    [
        pa.array([[SECRET, 1.0], None]),
        pa.array([[SECRET, None], [1.0]]),
        pa.array([[SECRET, 1.0], []]),
        pa.array([[str(SECRET)], ["1"]]),
        pa.array([[True], [False]]),
        pa.array([[[SECRET]], [[1.0]]]),
        pa.array([SECRET, 1.0]),
        pa.array([[SECRET, np.nan]]),
        pa.array([[2**53 + 1, 1]]),
        pa.array([[None]], pa.list_(pa.float64())),
        pa.array([None], pa.list_(pa.float64(), 2)),
        pa.array([[]], pa.list_(pa.float64(), 0)),
        pa.chunked_array([[[SECRET, 1.0]], [None]]),
        pa.array([{"a": SECRET}]),
        pa.nulls(2),
        pa.scalar([SECRET, 1.0]),
        pa.table({"scores": ROWS}),
        pa.record_batch({"scores": ROWS}),
    ],
    ids=lambda scores: f"{type(scores).__name__} {getattr(scores, 'type', '')}",
)
def test_arrow_scores_must_be_lists_of_numbers_without_nulls(scores):
    for call in calls(NOISY_MAX).values():
        bad_float = isinstance(scores, pa.ListArray) and scores.type == pa.list_(pa.float64())
        whole = bad_float and scores.null_count == 0 and scores.flatten().null_count == 0
        picking = whole and checked_while_picking(call, scores)
        assert_refused(call, scores, 1.0, names="scores", picking=picking)


@pytest.mark.parametrize(
    "wrong",
    [
        pa.array([[1.0], [1.0, 1.0]]),
        pa.array([[1.0, 1.0]]),
        pa.array([[1.0, 1.0], None]),
        pa.array([[1.0, None], [1.0]]),
        pa.array([1.0, 1.0, 1.0]),
        pa.array([["a", "b"], ["c"]]),
        np.ones((2, 2)),
        np.ones(2),
    ],
    ids=lambda wrong: str(wrong).replace("\n", ""),
)
def test_public_numbers_of_arrow_rows_must_match_the_scores(wrong):
    assert_refused(NOISY_MAX.pmf, pa.array(ROWS), wrong, names="sensitivities")
    assert_refused(NOISY_MAX.pmf, pa.array(ROWS), 1.0, offsets=wrong, names="offsets")


# --- Fields of mechanisms ---------------------------------------------------------------------------------

NOT_NUMBERS = [np.nan, np.inf, -np.inf, True, "1", None, 1j, [1.0], np.array([1.0]), 10**400]
NOT_POSITIVE = [*NOT_NUMBERS, 0, 0.0, -1.0, 1e-320]
NOT_INSIDE = [*NOT_POSITIVE, 1.0, 1.5]
FAMILIES = [type(mechanism) for mechanism in MECHANISMS.values() if not isinstance(mechanism, dps.Uniform)]


@pytest.mark.parametrize("value", NOT_POSITIVE, ids=lambda value: str(type(value).__name__))
@pytest.mark.parametrize("family", dict.fromkeys(FAMILIES))
def test_epsilon_must_be_a_positive_number(family, value):
    assert_refused(family, epsilon=value, names="epsilon")


@pytest.mark.parametrize(
    ("family", "field", "values"),
    [
        *((family, "beta", NOT_INSIDE) for family in (dps.NoisyMax, dps.GEM, dps.ModifiedGEM, dps.CombinedGEM)),
        (dps.CombinedGEM, "correlation_share", NOT_INSIDE),
        (dps.RandomStopping, "gamma", [*NOT_POSITIVE, 1.0000001]),
        (dps.RandomStopping, "eta", [*NOT_NUMBERS, -1, -1.0, -7.0]),
        (dps.RandomStopping, "noise", ["gumbel", "Exponential", "", None, 0, ["laplace"]]),
        *((family, "tilt", NOT_NUMBERS) for family in (dps.NoisyMax, dps.GEM)),
        (dps.NoisyMax, "monotone", [0, 1, None, "True", 1.0, np.array([True, False])]),
        *(
            (
                family,
                "noise",
                ["normal", "Laplace", "", None, 0, ["laplace"]],
            )
            for family in (dps.NoisyMax, dps.GEM, NaiveHeterogeneousNoisyMax)
        ),
    ],
)
def test_fields_must_satisfy_their_rules(family, field, values):
    for value in values:
        assert_refused(family, **{"epsilon": 1.0, field: value}, names=field)


def test_a_noise_that_is_an_array_is_refused_by_name():
    assert_refused(dps.NoisyMax, epsilon=1.0, noise=np.array(["laplace", "gumbel"]), names="noise")


def test_an_integer_too_long_to_print_is_refused_by_name():
    assert_refused(dps.NoisyMax, epsilon=10**5000, names="epsilon")


@pytest.mark.parametrize("power", [0, -1, np.nan, np.inf, "2", None, True])
def test_the_power_of_an_error_must_be_positive(power):
    assert_refused(dps.expected_error, NOISY_MAX, [SECRET, 1.0], 1.0, power, names="power")


@pytest.mark.parametrize(("gamma", "eta"), [(1e-12, 1.0), (1e-12, 0.0), (1e-11, 3.0), (2.0**-300, 2.0**300)])
def test_more_draws_than_a_stream_has_bits_for_are_refused_before_any_work(gamma, eta):
    mechanism = dps.RandomStopping(epsilon=1.0, gamma=gamma, eta=eta)
    assert_refused(mechanism.select, [SECRET, 1.0], 1.0, names="gamma")


@pytest.mark.parametrize("eta", [-0.5, -1e-12, 0.0, 1e-12, 1.0, 3.0])
def test_the_mean_number_of_draws_is_that_of_the_law(eta):
    mechanism = dps.RandomStopping(epsilon=1.0, gamma=0.3, eta=eta)
    weights = np.cumprod([1.0, *((1 - 0.3) * (n + eta) / (n + 1) for n in range(1, 400))])
    assert mechanism.law(np.array([2])).mean_draws == pytest.approx(
        weights @ np.arange(1, 401) / weights.sum(), rel=1e-9
    )


# --- Randomness -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1.0, "1", None, b"1", [1], np.array([1, 2])])
def test_seeds_must_be_integers(seed):
    assert_refused(dps.Randomness.seeded, seed, names="seed")


@pytest.mark.parametrize("key", [bytes(31), bytes(33), b"", "k" * 32, None, 7, bytearray(32), list(range(32))])
def test_keys_must_be_thirty_two_bytes(key):
    assert_refused(dps.Randomness.keyed, key, [1], names="key")


DUPLICATED = [[1, 1], ["a", "a"], [b"a", b"a"], np.array([3, 3]), np.array(["a", "a"])]
MIXED = [[1, "a"], ["a", b"a"], [1.0, 2.0], [None], [True], True, 1.5, [2**64], [2**64, 1], np.array([1.5])]
MISSHAPEN = [[[1], [2]], {1, 2}, None, np.array([[1]]), np.array(1)]


@pytest.mark.parametrize("units", [*DUPLICATED, *MIXED, *MISSHAPEN], ids=str)
def test_units_must_be_distinct_and_of_one_kind(units):
    assert_refused(dps.Randomness.keyed, KEY, units, names="units")


@every_mechanism
@pytest.mark.parametrize("units", [[1], [1, 2, 3], []])
def test_units_must_name_every_row_once(mechanism, units):
    randomness = dps.Randomness.keyed(KEY, units)
    scores = [[SECRET, 1.0], [SECRET, 2.0]]
    assert_refused(mechanism.select, scores, 1.0, randomness=randomness, names="units")


@pytest.mark.parametrize("setting", ["0", "-1", "two", "1.5", " 2", "²"])
def test_the_number_of_threads_must_be_positive(monkeypatch, setting):
    monkeypatch.setenv("DPSELECT_THREADS", setting)
    for call in calls(NOISY_MAX).values():
        with pytest.raises(ValueError, match="DPSELECT_THREADS must be a positive whole number"):
            call([[SECRET, 1.0], [SECRET, 2.0]], 1.0)


# --- Labels -----------------------------------------------------------------------------------------------

SERIES = pd.Series([SECRET, 2.0, 1.0], index=list("abc"))
FRAME = pd.DataFrame([[SECRET, 2.0, 1.0]] * 2, columns=list("abc"), index=["ann", "bob"])


@pytest.mark.parametrize("widths", [pd.Series([2.0] * 3), pd.Series([2.0] * 2, index=list("ab"))])
def test_other_labels_are_refused(widths):
    for call in calls(NOISY_MAX).values():
        assert_refused(call, SERIES, widths, names="sensitivities must have the labels of scores")
        assert_refused(call, FRAME, widths, names="sensitivities must have the labels of scores")


# --- Functions of mechanisms, of sensitivities alone, and of collections ----------------------------------

PAIR = ([SECRET, 1.0], [SECRET, 1.5], 1.0)
OF_A_MECHANISM = {
    "expected_error": lambda what: dps.expected_error(what, [SECRET, 1.0], 1.0),
    "privacy_loss": lambda what: dps.auditing.privacy_loss(what, *PAIR),
    "audit": lambda what: dps.auditing.audit(what, [1.0, 1.0]),
    "select_table": lambda what: dps.select_table("no table", what),
    "release": lambda what: release("no table", what),
    "TopK": dps.TopK,
    "select_list": lambda what: dps.select_list([SECRET, 1.0], [[0, 1]], what),
    "PickTransform": lambda what: PickTransform(what, bytes(32), layout=Layout()),
    "tune": lambda what: dps.tuning.tune([[SECRET, 1.0]], 1.0, 1.0, 1.0, cap=1.0, pool=[what]),
    "advise": lambda what: dps.advice.advise([1.0, 2.0], 1.0, pool=[what]),
}


@pytest.mark.parametrize("call", OF_A_MECHANISM.values(), ids=OF_A_MECHANISM)
@pytest.mark.parametrize("what", [[SECRET, 1.0], np.array([SECRET]), None, "gem", dps.GEM], ids=repr)
def test_an_object_that_is_not_a_mechanism_is_refused_by_name(call, what):
    assert_refused(call, what, names="must be a Mechanism such as dps.GEM(1.0), got ")


@pytest.mark.parametrize("what", [[SECRET, 1.0], None, "gem", dps.GEM], ids=repr)
def test_an_object_that_is_not_a_selector_is_refused_by_name(what):
    assert_refused(dps.auditing.check, what, [1.0, 1.0], epsilon=1.0, names="selector must be a mechanism such as")


OF_SENSITIVITIES = {
    "audit": lambda widths: dps.auditing.audit(NOISY_MAX, widths, restarts=1, sweeps=1),
    "check": lambda widths: dps.auditing.check(NOISY_MAX, widths, restarts=1, draws=200),
    "advise": lambda widths: dps.advice.advise(widths, 1.0, pool=[NOISY_MAX]),
}
MORE_BAD_SENSITIVITIES = {
    "negative": [-1.0, 1.0],
    "minute": [1e-310, 1.0],
    "no candidates": [],
    "a batch": np.ones((2, 2)),
}


@pytest.mark.parametrize("call", OF_SENSITIVITIES.values(), ids=OF_SENSITIVITIES)
@pytest.mark.parametrize(
    "widths", (BAD_NUMBERS | MORE_BAD_SENSITIVITIES).values(), ids=BAD_NUMBERS | MORE_BAD_SENSITIVITIES
)
def test_sensitivities_without_scores_must_satisfy_the_same_rules(call, widths):
    assert_refused(call, widths, names="sensitivities must")


GUARANTEE = NOISY_MAX.guarantee


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: dps.tuning.tune([[SECRET, 1.0]], 1.0, 1.0, 1.0, cap=1.0, pool=NOISY_MAX), "pool"),
        (lambda: dps.advice.advise([1.0, 2.0], 1.0, pool=NOISY_MAX), "pool"),
        (lambda: dps.tuning.fleet_errors(NOISY_MAX, [[SECRET, 1.0]], 1.0), "pool"),
        (lambda: dps.tuning.fleet_errors([], [[SECRET, 1.0]], 1.0), "pool"),
        (lambda: dps.tuning.fleet_errors([dps.GEM], [[SECRET, 1.0]], 1.0), "pool"),
        (lambda: dps.pools.default_pool(1.0, gammas=0.1), "gammas"),
        (lambda: dps.tuning.choice_pmf([SECRET, 1.0], 1.0, cap=1.0), "errors"),
        (lambda: dps.tuning.choice_pmf([[str(SECRET)]], 1.0, cap=1.0), "errors"),
        (lambda: dps.tuning.choice_pmf(np.zeros((0, 3)), 1.0, cap=1.0), "errors"),
        (lambda: dps.accounting.total_guarantee(GUARANTEE, delta=1e-6), "guarantees"),
        (
            lambda: dps.accounting.total_guarantee([GUARANTEE], delta=1e-6, fixed_beforehand="no"),
            "fixed_beforehand",
        ),
        (lambda: dps.accounting.to_pld(GUARANTEE, interval=[1e-4]), "interval"),
        (lambda: dps.Guarantee(epsilon=1.0, neighbours=None, theorem="t", reference="r"), "neighbours"),
    ],
)
def test_arguments_of_other_functions_are_refused_by_name(call, names):
    assert_refused(call, names=f"{names} must")


def test_errors_do_not_show_a_value_passed_in_place_of_a_name():
    assert_refused(dps.NoisyMax, epsilon=1.0, noise=[SECRET, 1.0], names="noise")


# --- What is accepted, and what never shows ---------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.float16, np.float32, ">f8", np.int8, np.uint16, np.int32, np.int64, np.uint64])
@every_mechanism
def test_a_mechanism_accepts_narrow_numbers_and_widens_them_exactly(mechanism, kind):
    scores, sensitivities = (
        np.array([3.3, 1.7, 2.0, 5.1]).astype(kind),
        np.array([1.1, 2.2, 1.0, 3.0]).astype(kind),
    )
    wide = mechanism.pmf(scores.astype(float), sensitivities.astype(float))
    assert (mechanism.pmf(scores, sensitivities) == wide).all()
    assert (mechanism.pmf(scores.tolist(), sensitivities.tolist()) == wide).all()


@every_mechanism
def test_a_mechanism_accepts_an_empty_batch(mechanism):
    for shape in ((0, 5), (2, 0, 5)):
        assert mechanism.select(np.zeros(shape), 1.0).shape == shape[:-1]
        assert mechanism.pmf(np.zeros(shape), 1.0).shape == shape
        assert dps.expected_error(mechanism, np.zeros(shape), 1.0).shape == shape[:-1]


@every_mechanism
def test_a_mechanism_accepts_ragged_and_arrow_batches_without_rows(mechanism):
    column = pa.array([], pa.list_(pa.float64()))
    for rows in ((np.zeros(0), [0]), column):
        assert mechanism.select(rows, 1.0).shape == (0,)
        assert dps.expected_error(mechanism, rows, 1.0).shape == (0,)
    assert mechanism.pmf((np.zeros(0), [0]), 1.0).shape == (0,)
    assert mechanism.pmf(column, 1.0).to_pylist() == []


@every_mechanism
def test_a_mechanism_accepts_scores_without_keeping_them(mechanism):
    mechanism.pmf([SECRET, 1.0], 1.0)
    mechanism.select([SECRET, 1.0], 1.0)
    shown = repr(mechanism) + str(mechanism) + repr(mechanism.guarantee) + repr(vars(mechanism))
    assert DIGITS not in shown
