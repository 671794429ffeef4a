"""What is measured, against direct evaluation; and that the private protocol is private."""

import numpy as np
import pytest
from scipy.stats import spearmanr

import dpselect as dps
from experiments.mechanisms import STYLES
from experiments.recommender import private, protocol, tuned
from experiments.recommender.generated import generate
from experiments.recommender.models import fit_ease
from experiments.recommender.preprocessing import Split, hold_out_users, like_matrix
from experiments.recommender.protocol import Lists
from experiments.recommender.scoring import find_candidates, find_ranges

K = 40


@pytest.fixture(scope="module")
def users():
    random = np.random.default_rng(8)
    sensitivities = random.uniform(0.1, 1.0, (30, K))
    return Lists(scores=sensitivities * random.uniform(0, 1, (30, K)), sensitivities=sensitivities)


@pytest.fixture(scope="module")
def split():
    return hold_out_users(generate(users=600, items=760, seed=3), test_users=25, calibration_users=40, seed=1)


@pytest.fixture(scope="module")
def model(split):
    return fit_ease(split.train, l2=20.0)


def naive_error(mechanism, users):
    return np.mean(
        [
            np.sum(mechanism.pmf(q, d) * (q.max() - q) ** 2)
            for q, d in zip(users.scores, users.sensitivities, strict=True)
        ]
    )


@pytest.mark.parametrize("mechanism", ["rnm", "gem", "mgem", "combined-gem", "krr", "uniform"])
def test_exact_errors_are_those_of_the_exact_probabilities(mechanism, users):
    row = protocol.error_row(users, mechanism, 2.0, gamma=0.1, seed=1)
    contender = protocol.contenders(2.0, beta=protocol.BETA, gamma=0.1)[mechanism]
    assert row["mean_squared_error"] == pytest.approx(naive_error(contender, users), rel=1e-10)
    assert (row["standard_error"], row["draws"], row["users"]) == (0, 0, 30)


@pytest.mark.parametrize("mechanism", sorted(protocol.DRAWN))
def test_drawn_errors_agree_with_exact_ones_within_their_standard_error(mechanism, users):
    row = protocol.error_row(users, mechanism, 2.0, gamma=0.1, seed=1, total_draws=12_000)
    contender = protocol.contenders(2.0, beta=protocol.BETA, gamma=0.1)[mechanism]
    assert row["draws"] == 400
    assert 0 < row["standard_error"] < 0.05 * row["mean_squared_error"]
    # Four tests of a fixed seed at 4.5 standard errors: a false alarm once in 30,000 choices of the seed.
    assert abs(row["mean_squared_error"] - naive_error(contender, users)) < 4.5 * row["standard_error"]


def test_an_error_of_some_users_tells_how_uncertain_it_is(users, monkeypatch):
    monkeypatch.setitem(protocol.SOME_USERS, "combined-gem", 12)
    row = protocol.error_row(users, "combined-gem", 2.0, gamma=0.1, seed=1)
    everybody = naive_error(dps.CombinedGEM(epsilon=2.0), users)
    assert row["users"] == 12
    assert abs(row["mean_squared_error"] - everybody) < 4.5 * row["standard_error"]


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


def test_the_tuned_mechanism_is_private_and_errs_as_it_says(users):
    anchors = users.scores.mean(axis=0) * np.ones_like(users.scores)
    row = tuned.tuned_row(users, anchors, 1.0, seed=3)
    assert row["mgem"] == pytest.approx(naive_error(dps.ModifiedGEM(epsilon=1.0), users))
    assert "with one pick each, ε = 1.1" in row["chosen"]
    assert all(member.guarantee.epsilon == 1.0 for member in tuned.pool(1.0))


def test_clipped_scores_lie_in_their_items_range_and_unclipped_ones_are_as_predicted(split, model):
    candidates, ranges = find_candidates(model, split.inputs), find_ranges(model, split.inputs)
    clipped = protocol.lists(candidates, ranges, clipped=True)
    lower, upper = ranges.lower[candidates.items], ranges.upper[candidates.items]
    assert (clipped.scores >= lower).all()
    assert (clipped.scores <= upper).all()
    assert ((clipped.scores.max(axis=1) - clipped.scores.min(axis=1)) > 0).all()
    np.testing.assert_array_equal(protocol.lists(candidates, ranges, clipped=False).scores, candidates.scores)


def test_the_paper_says_what_it_compares_and_every_mechanism_is_compared(users):
    for mechanism in STYLES:
        assert (
            protocol.error_row(users.sample(3, 1), mechanism, 1.0, gamma=0.1, seed=1, total_draws=6)["users"] == 3
        )


def test_a_private_users_history_changes_nothing_but_scores_within_public_ranges(split, model):
    random = np.random.default_rng(5)
    items = split.train.shape[1]
    other = like_matrix(
        np.repeat(np.arange(25, dtype=np.int32), 30), random.integers(0, items, 750).astype(np.int32), (25, items)
    )
    changed = Split(train=split.train, inputs=other, targets=split.targets, calibration=split.calibration)
    one, two = (private.prepare_sides(model, part).private.users for part in (split, changed))
    np.testing.assert_array_equal(one.sensitivities, two.sensitivities)
    assert (np.abs(one.scores - two.scores) <= one.sensitivities * (1 + 1e-6)).all()
    assert (one.scores != two.scores).any()
    for mechanism in private.tilted_contenders(2.0, gamma=0.008).values():
        before, after = (mechanism.pmf(side.scores, side.sensitivities) for side in (one, two))
        assert np.abs(np.log(before) - np.log(after)).max() <= 2.0 + 1e-9


def test_the_papers_protocol_does_depend_on_private_users(split, model):
    fewer = Split(
        train=split.train, inputs=split.inputs[:20], targets=split.targets[:20], calibration=split.calibration
    )
    one, two = (private.prepare_sides(model, part).paper.users for part in (split, fewer))
    assert (one.sensitivities[:20] != two.sensitivities).any()


def test_both_protocols_are_measured_against_the_best_unseen_item(split, model):
    sides = private.prepare_sides(model, split)
    scores = np.where(split.inputs.toarray() > 0, -np.inf, split.inputs.toarray() @ model.weights)
    np.testing.assert_allclose(sides.best, scores.max(axis=1), rtol=1e-5)
    for side in (sides.paper, sides.private):
        assert (side.worth[~side.seen] <= np.repeat(sides.best[:, None], 500, axis=1)[~side.seen] + 1e-6).all()
    rows = private.side_rows(sides, 1.0, gamma=0.008)
    uniform = next(row for row in rows if (row["protocol"], row["mechanism"]) == ("private", "uniform"))
    expected = np.mean((sides.best[:, None] - sides.private.worth) ** 2)
    assert uniform["mean_squared_error"] == pytest.approx(expected)
    assert uniform["seen_share"] == pytest.approx(sides.private.seen.mean())
