"""Accounts, outcomes and verdicts of the bandit."""

import numpy as np
import pyarrow as pa
import pytest

from experiments.bandit.claims import CLAIMS
from experiments.bandit.exposure import account, window_losses
from experiments.bandit.outcomes import Outcomes, estimate, median
from experiments.bandit.policies import BUDGETS
from experiments.bandit.privacy import BANDIT_PRIVACY
from experiments.bandit.styles import POLICY_STYLES
from experiments.experiment import FAST
from experiments.ledger import Verdict

POINTS = 125
TIMES = np.arange(1, POINTS + 1) * 8
CHECKS = {claim.id: claim.check for claim in CLAIMS}


@pytest.mark.parametrize(
    ("policy", "total", "printed"),
    [("mgem", 2.0, 4.0), ("rnm", 2.0, 4.0), ("krr", 1.0, 5.0), ("uniform", 0.0, 0.0)],
)
def test_one_reward_costs_its_arms_means_and_one_window(policy, total, printed):
    found = account(BUDGETS[policy], horizon=5000, window=200)
    assert found.total == pytest.approx(total)
    assert found.as_printed == pytest.approx(printed)


def test_the_account_does_not_grow_with_time():
    totals = {account(BUDGETS["gem"], horizon=horizon, window=200).total for horizon in (1000, 4000, 16_000)}
    assert totals == {2.0}


def test_only_full_windows_cost():
    np.testing.assert_array_equal(window_losses(7, 3, epsilon=0.5), [0.5] * 6 + [0.0])
    np.testing.assert_array_equal(window_losses(2, 3, epsilon=0.5), [0.0, 0.0])


def test_measured_errors_of_private_sums_stay_below_their_bound():
    """The bound is more than twice the true quantile; 200 streams do not miss it by that much."""
    task = next(task for task in BANDIT_PRIVACY.plan(FAST) if task.table == "errors")
    table = task.compute()
    assert set(table["mechanism"].to_pylist()) == {"binary", "hybrid"}
    assert (table["measured"].to_numpy() < table["bound"].to_numpy()).all()


def test_confidence_intervals_are_students():
    """For 1, 2, 3, 4: mean 2.5, standard error 0.6455; t with 3 degrees of freedom reaches 3.1824."""
    found = estimate(np.array([1.0, 2.0, 3.0, 4.0]))
    assert found.mean == 2.5
    assert found.margin == pytest.approx(0.645497 * 3.182446, rel=1e-5)
    assert not found._replace(margin=3.0).is_positive


@pytest.mark.parametrize(("count", "rank"), [(6, 0), (9, 1), (20, 5)])
def test_intervals_of_medians_are_between_order_statistics(count, rank):
    """The ranks of the textbook's table for 95 %: 1 and 6 of 6, 2 and 8 of 9, 6 and 15 of 20."""
    found = median(np.random.default_rng(1).permutation(count).astype(float))
    assert (found.middle, found.low, found.high) == ((count - 1) / 2, rank, count - 1 - rank)


def test_a_median_may_be_never():
    assert str(median(np.array([1.0, 2.0, 3.0, np.inf, np.inf, np.inf, np.inf]))) == "never (1 to never)"
    assert str(median(np.full(7, np.inf))) == "never"


def story(rate_before, rate_after, *, means=(0.2, 0.756), rise=TIMES[-1] * 2, error=0.0, worlds=6):
    """Return made-up runs: reward a step before and after, regret to match, means that rise after some steps."""
    shift = int(TIMES[-1] * 3 // 5)
    noise = 1 + 1e-4 * np.arange(worlds)
    before, after = np.minimum(TIMES, shift), np.maximum(TIMES - shift, 0)
    reward = np.outer(noise, before * rate_before + after * rate_after)
    risen = np.where(shift + rise <= TIMES, means[1], means[0])
    quantiles = {
        0: {"low": (0.0718, 0.4155), "high": (0.3282, 1.0)},
        1: {"low": (0.4155, 0.0718), "high": (1.0, 0.3282)},
    }
    columns = {
        f"{end}_{arm}": np.tile(np.where(shift >= TIMES, *quantiles[arm][end]) + error, worlds)
        for arm in (0, 1)
        for end in ("low", "high")
    }
    return {
        "world": np.repeat(np.arange(worlds), POINTS),
        "time": np.tile(TIMES, worlds),
        "reward": reward.reshape(-1),
        "regret": np.outer(noise, before * (0.756 - rate_before) + after * (0.756 - rate_after)).reshape(-1),
        "mean_0": np.tile(risen, worlds),
        "mean_1": np.tile(np.full(POINTS, 0.7), worlds),
        **columns,
    }


def runs(**stories):
    """Return a table in which every policy earns as much as random choice unless given otherwise."""
    tables = []
    for policy in POLICY_STYLES:
        columns = stories.get(policy.replace("-", "_"), story(0.45, 0.45))
        size = len(columns["time"])
        tables.append(pa.table({"policy": [policy] * size, **columns}))
    return {"runs": pa.concat_tables(tables)}


def test_b1_holds_if_ucb_is_stuck_and_all_private_policies_earn_more():
    assert CHECKS["B1"](runs(ucb=story(0.75, 0.2))).verdict is Verdict.HOLDS


def test_b1_does_not_hold_if_ucb_changes_over():
    finding = CHECKS["B1"](runs(ucb=story(0.75, 0.75)))
    assert finding.verdict is Verdict.FAILS
    assert "mGEM out-earns UCB" in finding.comment


def test_b2_holds_if_mgem_is_ahead_of_all_and_gem_behind_random():
    assert CHECKS["B2"](runs(mgem=story(0.7, 0.7), gem=story(0.3, 0.3))).verdict is Verdict.HOLDS


def test_b2_names_the_policies_that_earn_more_than_mgem():
    finding = CHECKS["B2"](runs(mgem=story(0.6, 0.6), gem=story(0.3, 0.3), ucb=story(0.7, 0.7)))
    assert finding.verdict is Verdict.IN_PART
    assert "mGEM earns more than UCB" in finding.comment
    assert "mGEM earns more than kRR" not in finding.comment


def test_b3_compares_how_soon_the_rising_arm_is_seen():
    fast = {"mgem": story(0.5, 0.5, rise=40), "rs": story(0.5, 0.5, rise=80)}
    assert CHECKS["B3"](runs(**fast)).verdict is Verdict.HOLDS
    finding = CHECKS["B3"](runs(**fast, ucb=story(0.5, 0.5, rise=8)))
    assert finding.verdict is Verdict.IN_PART
    assert "RSᵧ adapts faster than UCB" in finding.comment


def test_half_times_count_from_the_shift_and_may_be_never():
    table = runs(mgem=story(0.5, 0.5, rise=40))["runs"]
    outcomes = Outcomes(table)
    assert outcomes.problem.shift == 600
    np.testing.assert_array_equal(outcomes.half_times("mgem"), [40.0] * 6)
    assert np.isinf(outcomes.half_times("gem")).all()


def test_b4_holds_if_estimates_are_near_and_not_if_they_are_off():
    assert CHECKS["B4"](runs()).verdict is Verdict.HOLDS
    finding = CHECKS["B4"](runs(gem=story(0.4, 0.4, error=0.15)))
    assert finding.verdict is Verdict.IN_PART
    assert "GEM: each quantile" in finding.comment
    off = {name: story(0.4, 0.4, error=0.15) for name in ("rnm", "rs", "gem", "mgem", "combined_gem")}
    assert CHECKS["B4"](runs(**off)).verdict is Verdict.FAILS
