"""The section on the privacy of the bandit."""

from experiments.bandit.privacy import BANDIT_PRIVACY
from experiments.experiment import FAST


def test_measured_errors_of_private_sums_stay_below_their_bound():
    """The bound is more than twice the true quantile, which 200 streams do not miss by that much."""
    task = next(task for task in BANDIT_PRIVACY.plan(FAST) if task.table == "errors")
    table = task.compute()
    assert set(table["mechanism"].to_pylist()) == {"binary", "hybrid"}
    assert (table["measured"].to_numpy() < table["bound"].to_numpy()).all()
