"""Other libraries' samplers follow the law of noisy max; this checks the wrappers as much as the libraries."""

import numpy as np
import pytest
from peers import DiffprivlibNoisyMax, OpenDPNoisyMax
from scipy.stats import chisquare

SCORES = np.array([0.0, 1.0, 2.5, 2.0])
SENSITIVITIES = np.array([0.5, 2.0, 1.0, 0.0])

FALSE_ALARM = 1e-9
"""The false-alarm rate for each peer: OpenDP's randomness cannot be seeded, so a correct run can fail."""

PEERS = {
    "opendp-exponential": OpenDPNoisyMax(epsilon=2.0),
    "opendp-gumbel": OpenDPNoisyMax(epsilon=2.0, noise="gumbel"),
    "diffprivlib-exponential": DiffprivlibNoisyMax(epsilon=2.0, seed=1),
    "diffprivlib-gumbel": DiffprivlibNoisyMax(epsilon=2.0, noise="gumbel", seed=2),
}
every_peer = pytest.mark.parametrize("peer", PEERS.values(), ids=PEERS)


@every_peer
def test_picks_are_as_frequent_as_the_probabilities_of_noisy_max(peer):
    draws = 20_000
    picks = peer.select(np.broadcast_to(SCORES, (draws, 4)), SENSITIVITIES)
    assert picks.shape == (draws,)
    counts = np.bincount(picks, minlength=4)
    assert chisquare(counts, draws * peer.pmf(SCORES, SENSITIVITIES)).pvalue > FALSE_ALARM


@every_peer
def test_one_row_gives_one_pick(peer):
    assert peer.select(SCORES, SENSITIVITIES) in range(4)
