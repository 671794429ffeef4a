"""The policies and their styles."""

from experiments.bandit.policies import BUDGETS, TEAMS
from experiments.bandit.styles import POLICY_STYLES


def test_every_policy_has_a_style_and_every_private_one_a_budget():
    members = [member for team in TEAMS for member in team.members]
    assert sorted(members) == sorted(POLICY_STYLES)
    assert set(BUDGETS) == {name for name, style in POLICY_STYLES.items() if style.private}
