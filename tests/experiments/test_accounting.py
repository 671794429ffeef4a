"""The section on many picks: its numbers are ordered as the theory says, and its figure draws."""

import pyarrow as pa
import pytest

from experiments.accounting import EPSILONS, MANY_PICKS, WAYS
from experiments.experiment import FAST


@pytest.fixture(scope="module")
def tables():
    return {"totals": pa.concat_tables(task.compute() for task in MANY_PICKS.plan(FAST))}


def test_each_sharper_bound_is_no_larger(tables):
    rows = tables["totals"].to_pylist()
    assert {row["epsilon"] for row in rows} == set(EPSILONS)
    for row in rows:
        slack = 1 + 1e-3  # a total has a δ only if that saves a thousandth of ε
        assert row["gumbel"] <= row["exponential"] * slack
        assert row["exponential"] <= row["dp_accounting"] * slack
        assert row["dp_accounting"] <= min(row["opendp_pure"], row["opendp_zcdp"]) * slack
        assert row["exponential"] <= row["ledger"] <= row["opendp_pure"] * slack
        assert row["ledger"] <= max(row["opendp_pure"], row["opendp_zcdp"])


def test_the_gain_grows_with_epsilon(tables):
    gains = [
        1 - row["exponential"] / row["dp_accounting"]
        for row in tables["totals"].to_pylist()
        if row["picks"] == 1000
    ]
    assert gains == sorted(gains)
    assert gains[-1] > 0.15


def test_the_figure_shows_every_way_for_every_epsilon(tables):
    figure = MANY_PICKS.draw(tables)
    assert [len(panel.lines) for panel in figure.axes] == [len(WAYS)] * len(EPSILONS)
    [listing] = MANY_PICKS.listings(tables)
    assert all(len(row) == len(listing.columns) for row in listing.rows)
