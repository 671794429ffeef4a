"""Picks with a filter that decides nothing, so that exact arithmetic decides every row."""

import numpy as np

import dpselect as dps


def assert_same_picks(forced, mechanism, scores, sensitivities, seed=1, **settings):
    settings["randomness"] = dps.Randomness.seeded(seed)
    ordinary = mechanism.select(scores, sensitivities, **settings)
    exact, handed_over = forced(mechanism, scores, sensitivities, **settings)
    assert np.array_equal(exact, ordinary)
    return handed_over
