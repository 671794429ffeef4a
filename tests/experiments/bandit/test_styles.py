"""The policies and their styles."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from experiments import drawing
from experiments.bandit.others import LEVELS
from experiments.bandit.others import SHOWN as OTHERS_SHOWN
from experiments.bandit.policies import BUDGETS, MECHANISMS, OTHERS, PRINTED, TEAMS
from experiments.bandit.shift import SHOWN
from experiments.bandit.styles import POLICY_STYLES
from experiments.mechanisms import STYLES


def distance(first, second):
    """Return a distance of colours as eyes see them, 0 to 765: the weighted "redmean" of their components."""
    one, two = (255 * np.array(to_rgb(color)) for color in (first, second))
    red = (one[0] + two[0]) / 2
    weights = np.array([2 + red / 256, 4, 2 + (255 - red) / 256])
    return float(np.sqrt((weights * (one - two) ** 2).sum()))


def test_every_policy_has_a_style_and_every_private_one_a_budget():
    members = [member for team in TEAMS for member in team.members]
    assert sorted(members) == sorted(POLICY_STYLES) == sorted((*PRINTED, *OTHERS))
    assert set(BUDGETS) == {name for name, style in POLICY_STYLES.items() if style.private}


def test_the_figure_of_the_paper_has_the_paper_s_seven_policies_alone():
    assert sorted(SHOWN) == ["gem", "krr", "mgem", "rnm", "rs", "thompson", "ucb"]
    assert not set(OTHERS) & {*SHOWN, *LEVELS}
    assert set(OTHERS) < set(OTHERS_SHOWN)


@pytest.mark.parametrize("policies", [SHOWN, OTHERS_SHOWN, LEVELS], ids=["paper", "others", "levels"])
def test_no_two_policies_of_a_figure_look_nearly_the_same(policies):
    for one, two in combinations(policies, 2):
        assert distance(POLICY_STYLES[one].color, POLICY_STYLES[two].color) > 100, (one, two)


def test_what_is_no_mechanism_has_no_mechanism_s_colour():
    own = {name: style.color for name, style in POLICY_STYLES.items() if name not in MECHANISMS}
    for name, color in {**own, "dark": drawing.DARK, "light": drawing.LIGHT}.items():
        for mechanism, style in STYLES.items():
            assert distance(color, style.color) > 60, (name, mechanism)
