"""The measurements, against direct evaluation."""

import numpy as np
import pytest
from naive import naive_error
from scipy.stats import spearmanr

import dpselect as dps
from experiments.mechanisms import COMPARED, build
from experiments.recommender import protocol
from experiments.recommender.protocol import Lists
from experiments.recommender.scoring import find_candidates, find_ranges


@pytest.mark.parametrize("mechanism", COMPARED)
def test_errors_are_those_of_the_exact_probabilities(mechanism, users):
    row = protocol.error_row(users, mechanism, 2.0, gamma=0.1, seed=1)
    chosen = build(mechanism, 2.0, gamma=0.1)
    assert row["mean_squared_error"] == pytest.approx(naive_error(chosen, users), rel=1e-9)
    assert (row["standard_error"], row["users"]) == (0, 30)


@pytest.mark.parametrize("mechanism", ["combined-gem", "rs"])
def test_an_error_of_some_users_tells_how_uncertain_it_is(mechanism, users, monkeypatch):
    monkeypatch.setitem(protocol.SOME_USERS, "combined-gem", 12)
    row = protocol.error_row(users, mechanism, 2.0, gamma=0.1, seed=1, slow_users=12)
    everybody = naive_error(build(mechanism, 2.0, gamma=0.1), users)
    assert row["users"] == 12
    assert 0 < abs(row["mean_squared_error"] - everybody) < 4.5 * row["standard_error"]


def test_correlations_are_counted_by_bin(users):
    found = [spearmanr(q, d).statistic for q, d in zip(users.scores, users.sensitivities, strict=True)]
    table, summary = protocol.correlation_table(users)
    counts, _ = np.histogram(found, bins=np.arange(-1.0, 1.02, 0.02) - 1e-12)
    assert dict(zip(table["correlation"].to_numpy().round(2), table["users"].to_pylist(), strict=True)) == {
        round(-0.99 + 0.02 * place, 2): count for place, count in enumerate(counts) if count
    }
    assert summary["quantile_50"] == pytest.approx(np.median(found))
    assert summary["negative_share"] == np.mean(np.array(found) < 0)


def test_users_without_a_correlation_are_counted_apart():
    flat = Lists(scores=np.ones((3, 5)), sensitivities=np.ones((3, 5)))
    table, summary = protocol.correlation_table(flat)
    assert (table.num_rows, summary["undefined"], summary["users"]) == (0, 3, 3)


def test_ratios_are_logs_of_mean_scores_and_fifty_draws_scatter_about_them(users):
    table, summary = protocol.ratio_table(users, seed=2)
    expected = []
    for q, d in zip(users.scores, users.sensitivities, strict=True):
        means = [np.sum(m(epsilon=1.0).pmf(q, d) * q) for m in (dps.ModifiedGEM, dps.GEM)]
        expected.append(np.log(means[0] / means[1]))
    correlations = [spearmanr(q, d).statistic for q, d in zip(users.scores, users.sensitivities, strict=True)]
    assert summary["mean_ratio_where_positive"] == pytest.approx(
        np.mean(np.array(expected)[np.array(correlations) >= 0])
    )
    assert summary["trend"] == pytest.approx(spearmanr(correlations, expected).statistic)
    for version in ("exact", "50 draws"):
        rows = [row for row in table.to_pylist() if row["version"] == version]
        assert sum(row["users"] for row in rows) == 30
        mean = sum(row["users"] * row["log_ratio"] for row in rows) / 30
        assert mean == pytest.approx(np.mean(expected), abs=0.01 if version == "exact" else 0.1)


def test_a_ratio_needs_two_positive_means():
    negative = Lists(scores=-np.ones((2, 3)) * [1, 2, 3], sensitivities=np.ones((2, 3)) * [1, 2, 3])
    table, summary = protocol.ratio_table(negative, seed=1)
    assert (table.num_rows, summary["undefined"]) == (0, 2)


def test_tilt_curves_pass_through_gem_and_modified_gem(users):
    rows = {(row["family"], row["tilt"]): row["mean_squared_error"] for row in protocol.tilt_rows(users, 1.0)}
    assert rows["gem", 1.0] == pytest.approx(naive_error(dps.GEM(epsilon=1.0), users))
    assert rows["gem", -1.0] == pytest.approx(naive_error(dps.ModifiedGEM(epsilon=1.0), users))
    assert rows["tilted-rnm", 0.0] == pytest.approx(naive_error(dps.NoisyMax(epsilon=1.0), users))


def test_clipped_scores_lie_in_their_items_range_and_unclipped_ones_are_as_predicted(large_split, model):
    candidates, ranges = find_candidates(model, large_split.inputs), find_ranges(model, large_split.inputs)
    clipped = protocol.lists(candidates, ranges, clipped=True)
    lower, upper = ranges.lower[candidates.items], ranges.upper[candidates.items]
    assert (clipped.scores >= lower).all()
    assert (clipped.scores <= upper).all()
    assert ((clipped.scores.max(axis=1) - clipped.scores.min(axis=1)) > 0).all()
    np.testing.assert_array_equal(protocol.lists(candidates, ranges, clipped=False).scores, candidates.scores)
