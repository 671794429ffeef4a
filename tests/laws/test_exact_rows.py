"""Which rows exact arithmetic decides, and that callers see no difference."""

import decimal

import numpy as np
import pytest

import dpselect as dps
from dpselect.laws import base


@pytest.fixture
def exact_rows(monkeypatch):
    """Count the rows that floats could not decide."""
    counted = []
    stream = base.ExactStream

    def counting(units, row):
        counted.append(row)
        return stream(units, row)

    monkeypatch.setattr(base, "ExactStream", counting)
    return counted


SOURCE = np.random.default_rng(11)
REALISTIC = {
    "unit sensitivities, scores of a few": (SOURCE.normal(size=(50, 80)), 1.0),
    "unit sensitivities, scores up to a thousand": (SOURCE.uniform(0, 1e3, (50, 50)), 1.0),
    "unit sensitivities, counts up to a billion": (SOURCE.integers(0, 10**9, (30, 50)), 1.0),
    "counts, log-normal sensitivities": (SOURCE.integers(0, 1000, (30, 60)), SOURCE.lognormal(0, 1.5, 60)),
    "sensitivities over four decades": (SOURCE.normal(size=(30, 100)), 10.0 ** SOURCE.uniform(-2, 2, (30, 100))),
    "all scores equal": (np.zeros((20, 40)), SOURCE.uniform(0.5, 2.0, 40)),
    "counts of 0, 1 and 2": (SOURCE.integers(0, 3, (20, 40)), SOURCE.uniform(0.5, 2.0, 40)),
    "two groups": (np.where(SOURCE.random((20, 40)) < 0.5, 1.0, -1.0), SOURCE.choice([1.0, 1.8], 40)),
}
WIDE = [
    dps.NoisyMax(epsilon=1.0),
    dps.NoisyMax(epsilon=1.0, tilt=1.0),
    dps.NoisyMax(epsilon=1.0, noise="gumbel"),
    dps.GEM(epsilon=1.0),
    dps.GEM(epsilon=1.0, tilt=0.0),
    dps.GEM(epsilon=1.0, noise="gumbel"),
    dps.ModifiedGEM(epsilon=0.1),
    dps.CombinedGEM(epsilon=2.0),
    dps.RandomStopping(epsilon=1.0),
    dps.RandomStopping(epsilon=1.0, eta=0.0),
]


@pytest.mark.parametrize("mechanism", WIDE, ids=repr)
@pytest.mark.parametrize("kind", REALISTIC)
def test_ordinary_rows_are_decided_by_floats(mechanism, kind, exact_rows):
    scores, sensitivities = REALISTIC[kind]
    mechanism.select(scores, sensitivities, randomness=dps.Randomness.seeded(3))
    assert exact_rows == []


def test_a_row_has_the_same_pick_alone_and_in_a_batch_whose_groups_have_their_own_sensitivities():
    """Rows decided without sorting lie between rows that sort: each must sort its own sensitivities."""
    source = np.random.default_rng(5)
    k = 200
    first, second = source.random(k) * 2, 1 + source.random(k)
    first[5], second[-1] = 0.0, 30.0
    easy = source.random(k) * 0.1
    hard = easy.copy()
    hard[0], hard[-1] = 40.0, 41.0
    scores = np.array([[easy, easy], [easy, hard]])
    mechanism = dps.GEM(epsilon=1.0, tilt=0.0)
    for seed in range(60):
        key = dps.Randomness.seeded(seed).units(1).key.tobytes()
        together = mechanism.select(
            scores.reshape(4, k),
            np.array([first, first, second, second]),
            randomness=dps.Randomness.keyed(key, range(4)),
        )
        grouped = mechanism.select(
            scores, np.array([[first], [second]]), randomness=dps.Randomness.keyed(key, range(4))
        )
        alone = [
            mechanism.select(q, d, randomness=dps.Randomness.keyed(key, row))
            for row, (q, d) in enumerate(zip(scores.reshape(4, k), [first, first, second, second], strict=True))
        ]
        assert grouped.reshape(-1).tolist() == together.tolist() == alone


def test_exact_picks_do_not_depend_on_the_decimal_context_of_the_caller(monkeypatch):
    monkeypatch.setattr(base, "FILTER_ERROR", 1e300)
    scores, sensitivities = np.broadcast_to([600.0, 0.0, 599.0], (40, 3)), [1.0, 2.0, 0.7]
    for mechanism in WIDE:
        expected = mechanism.select(scores, sensitivities, randomness=dps.Randomness.seeded(4))
        with decimal.localcontext(prec=1) as context:
            context.traps[decimal.Inexact] = True
            found = mechanism.select(scores, sensitivities, randomness=dps.Randomness.seeded(4))
        assert (found == expected).all()


@pytest.mark.parametrize("width", [2.0**-40, 1e300])
def test_enormous_gaps_are_decided_at_once(monkeypatch, width):
    monkeypatch.setattr(base, "FILTER_ERROR", width)
    for mechanism in WIDE[:-3]:
        picks = mechanism.select(
            np.broadcast_to([1e60, 1e60, -1e60], (20, 3)), 1.0, randomness=dps.Randomness.seeded(1)
        )
        assert set(picks.tolist()) <= {0, 1}


def test_a_giant_tilt_does_not_hide_the_leader():
    """In fractions candidate 1 leads by 2955 scales; in floats candidate 0 seems to lead by 57344."""
    scores = [float.fromhex("0x1.d82d49471e2ffp+122"), float.fromhex("-0x1.775d9a0dfd28ep+65")]
    sensitivities = [float.fromhex("0x1.00000bb2edb20p+0"), float.fromhex("0x1.d0f926ef73544p-49")]
    mechanism = dps.NoisyMax(epsilon=1.0, tilt=2.0**120)
    picks = mechanism.select(np.broadcast_to(scores, (20, 2)), sensitivities, randomness=dps.Randomness.seeded(1))
    assert picks.tolist() == [1] * 20


@pytest.mark.parametrize("wrong", [0, 42, "seed", np.random.default_rng(0)])
def test_randomness_must_be_a_randomness(wrong):
    for mechanism in (dps.NoisyMax(epsilon=1.0), dps.CombinedGEM(epsilon=1.0), dps.Uniform()):
        with pytest.raises(ValueError, match="randomness must be a Randomness"):
            mechanism.select([0.0, 1.0], 1.0, randomness=wrong)


def test_the_number_of_draws_is_right_for_steep_laws_in_exact_arithmetic(monkeypatch):
    """η and γ at which the law of K needs large exponents or loses digits; K = 1 or 2 determines the pick."""
    monkeypatch.setattr(base, "FILTER_ERROR", 1e300)
    for eta, gamma in ((1e-300, 0.3), (5e-324, 1 - 2**-53), (-0.999, 0.5), (30.0, 0.9)):
        mechanism = dps.RandomStopping(epsilon=1.0, eta=eta, gamma=gamma)
        picks = mechanism.select(np.zeros((30, 4)), [0.0, 1.0, 1.0, 1.0], randomness=dps.Randomness.seeded(2))
        assert ((picks >= 0) & (picks < 4)).all()
