"""Rules for numbers: arrays and tables refuse the same numbers in the same words."""

import numpy as np
import pyarrow as pa
import pytest

import dpselect as dps
from dpselect import rules
from dpselect.engines.arrow import Layout, PickTransform
from dpselect.errors import BadUnitsError

BAD = {
    "scores": [np.inf, -np.inf, 2.0**301],
    "sensitivities": [np.inf, 2.0**301, -1.0, -(2.0**-301), 2.0**-301],
    "offsets": [np.inf, -(2.0**301)],
    "weights": [np.inf, -1.0, 2.0**-301],
}
GOOD = {
    "scores": [0.0, -1.0, 2.0**300, -(2.0**300), 2.0**-301],
    "sensitivities": [0.0, 2.0**-300, 2.0**300],
    "offsets": [0.0, -1.0, 2.0**-301],
    "weights": [0.0, 2.0**-300, 2.0**300],
}
MECHANISM, WEIGHTED = dps.GEM(epsilon=1.0), dps.TopShare(epsilon=1.0)


def call(argument, number):
    """Return a mechanism and the arguments of a call, one of which has the number."""
    further = {"weights": [1.0, 1.0]} if argument == "weights" else {"offsets": [0.0, 0.0]}
    numbers = {"scores": [0.0, 0.0], "sensitivities": [1.0, 1.0], **further}
    numbers[argument] = [number, numbers[argument][1]]
    return WEIGHTED if argument == "weights" else MECHANISM, numbers


def from_arrays(argument, number):
    mechanism, numbers = call(argument, number)
    mechanism.select(**numbers)


def from_a_table(argument, number):
    mechanism, numbers = call(argument, number)
    columns = {name: [values] for name, values in numbers.items()} | {"user": [1], "candidate": [["a", "b"]]}
    further = {"weight": "weights"} if argument == "weights" else {"offset": "offsets"}
    layout = Layout(score="scores", sensitivity="sensitivities", **further)
    PickTransform(mechanism, bytes(32), layout=layout).transform(pa.RecordBatch.from_pydict(columns))


@pytest.mark.parametrize(("argument", "number"), [(a, n) for a, numbers in BAD.items() for n in numbers])
def test_arrays_and_tables_refuse_a_number_in_the_same_words(argument, number):
    [rule] = [rule for rule in rules.NUMBERS[argument] if rule.is_broken(np.array([number]))[0]][:1]
    with pytest.raises(ValueError, match="must be") as array:
        from_arrays(argument, number)
    assert str(array.value) == f"{argument} {rule.words}"
    with pytest.raises(BadUnitsError) as table:
        from_a_table(argument, number)
    assert table.value.problem == f"column {argument!r} {rule.words}"


@pytest.mark.parametrize(("argument", "number"), [(a, n) for a, numbers in GOOD.items() for n in numbers])
def test_arrays_and_tables_accept_the_numbers_at_the_limits(argument, number):
    from_arrays(argument, number)
    from_a_table(argument, number)
