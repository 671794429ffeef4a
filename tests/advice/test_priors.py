"""Scores drawn for a stated correlation."""

import numpy as np
import pytest

import dpselect as dps


@pytest.mark.parametrize("correlation", [-0.9, -0.4, 0.0, 0.6, 1.0])
def test_drawn_scores_have_the_stated_correlation_and_spread(correlation):
    widths = np.linspace(0.1, 1.0, 200)
    scores = dps.advice.priors.draw_scores(widths, (correlation,), 3.0)
    assert np.mean(dps.correlation.spearman(scores, widths)) == pytest.approx(correlation, abs=0.02)
    assert scores.std() == pytest.approx(3.0, rel=0.02)
