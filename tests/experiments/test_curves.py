"""Comparisons of error curves."""

import pyarrow as pa

from experiments.curves import Curves, span


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
