"""The beginners' guide: its pictures and tables show the numbers of its code."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

import dpselect as dps
from experiments import guide

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/guide/sensitivities.md").read_text("utf-8")


def test_the_page_shows_every_picture_and_every_picture_is_committed():
    shown = re.findall(r"\]\(\.\./images/([\w-]+\.png)\)", PAGE)
    assert sorted(shown) == sorted(guide.PICTURES)
    for name in shown:
        assert (guide.IMAGES / name).read_bytes().startswith(b"\x89PNG")


def test_the_pictures_can_be_drawn_again(tmp_path):
    guide.draw_all(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(guide.PICTURES)


def test_the_pictures_use_the_numbers_of_the_pages_code():
    for name, numbers in (("scores", guide.SCORES), ("raters", guide.RATERS)):
        line = re.search(rf"^{name} = (\{{.*?\}})", PAGE, flags=re.MULTILINE)
        assert line is not None
        assert eval(line[1]) == numbers  # noqa: S307 - our own text


def test_the_table_of_what_epsilon_buys_is_true():
    widths = {drink: 5 / people for drink, people in guide.RATERS.items()}
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.]+) \| (\d+) % \|$", PAGE, flags=re.MULTILINE)
    assert len(rows) == 4
    for epsilon, factor, percent in rows:
        mechanism = dps.HeterogeneousNoisyMax(epsilon=float(epsilon))
        assert f"{math.exp(float(epsilon)):.1f}" == factor
        assert f"{100 * dps.probability_of_best(mechanism, guide.SCORES, widths):.0f}" == percent


def two_candidates(gap, width):
    """Return the probability of the trailing one of two candidates of equal sensitivity, at ε = 1."""
    return math.exp(-gap / (2 * width)) / 2


def test_the_losses_of_the_mistakes_agree_with_the_formula_for_two_candidates():
    found = guide.mistakes()
    assert found["no mistake"] == pytest.approx(1)
    assert found["five picks, paid for once"] == pytest.approx(5)
    before, after = two_candidates(1, 0.01), 1 - two_candidates(1, 0.01)
    assert found["scores in percent, Δ not"] == pytest.approx(math.log(after / before))
    means, other_means = (3.5, 2.0), (3.1, 2.0)  # the spreads are 1 and 2 before, 4 and 2 after, over ten people
    before = two_candidates(means[0] - means[1], (0.1 + 0.2) / 2)
    after = two_candidates(other_means[0] - other_means[1], (0.4 + 0.2) / 2)
    assert found["Δ from the spread of the private data"] == pytest.approx(math.log(after / before))


def test_the_caption_of_the_mistakes_states_their_losses():
    stated = re.search(
        r"!\[Privacy lost by each mistake: ([\d.]+), ([\d.]+) and ([\d.]+) where 1 was promised", PAGE
    )
    assert stated is not None
    losses = [loss for loss in guide.mistakes().values() if np.isfinite(loss)][1:]
    assert list(stated.groups()) == [f"{loss:.2g}" for loss in losses]
