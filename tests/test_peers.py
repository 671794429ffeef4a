"""Other libraries' samplers follow the law of noisy max; this checks the wrappers as much as the libraries."""

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld, rdp
from peers import DiffprivlibNoisyMax, OpenDPNoisyMax
from scipy.stats import binom, chisquare

import dpselect as dps

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


@pytest.mark.parametrize("picks", [1, 2, 10])
def test_dp_accounting_charges_repeated_picks_at_least_what_they_lose_exactly(picks):
    """Two candidates: the number of picks of the first is binomial. Gumbel noise is ε²/8-zCDP; ε = 1."""
    epsilon = 0.5 * picks**0.5
    for noise, event, accountants in (
        ("gumbel", dp_accounting.ZCDpEvent(1 / 8), [rdp.RdpAccountant]),
        ("exponential", dp_accounting.LaplaceDpEvent(1.0), [rdp.RdpAccountant, pld.PLDAccountant]),
    ):
        law = dps.NoisyMax(1.0, noise=noise).pmf
        gaps = np.linspace(-6, 6, 61)
        sides = [law(np.stack([gaps + move, 0 * gaps - move], axis=1), 1.0)[:, :1] for move in (0.0, 1.0)]
        here, there = (binom.pmf(np.arange(picks + 1), picks, side) for side in sides)
        exact = np.maximum(here - np.exp(epsilon) * there, 0).sum(axis=1).max()
        for make in accountants:
            counted, repeated = make(), make()
            counted.compose(event, picks)
            repeated.compose(dp_accounting.SelfComposedDpEvent(event, picks))
            charged = counted.get_delta(epsilon)
            assert exact <= charged == pytest.approx(repeated.get_delta(epsilon), rel=1e-9)


@every_peer
def test_one_row_gives_one_pick(peer):
    assert peer.select(SCORES, SENSITIVITIES) in range(4)
