"""The most accurate private mechanism on a grid."""

import numpy as np
import pytest

import dpselect as dps
from experiments.default.optimum import Lattice, least_error

UNEVEN, EVEN = Lattice((0.5, 1.5), points=7, step=0.5), Lattice((1.0, 1.0), points=7, step=0.5)
THREE = Lattice((1.0, 1.0, 2.0), points=4, step=1.0)
LATTICES = (UNEVEN, EVEN, THREE, Lattice((1.0, 1.0, 1.0), points=4, step=1.0))


def losses(lattice, law):
    """Return each pair's distance and the largest privacy loss, straight from the definition."""
    law = np.maximum(law, 1e-300)
    for before, q in enumerate(lattice.scores):
        distances = (np.abs(lattice.scores - q) / lattice.sensitivities).max(axis=1)
        for after in np.flatnonzero((distances > 0) & (distances <= 1 + 1e-9)):
            yield distances[after], np.abs(np.log(law[before] / law[after])).max()


def mean_error(lattice, mechanism):
    return float(np.mean(dps.expected_error(mechanism, lattice.scores, np.array(lattice.sensitivities))))


@pytest.mark.parametrize("proportional", [False, True])
@pytest.mark.parametrize("lattice", LATTICES, ids=str)
def test_the_optimum_is_private_and_its_error_is_the_one_stated(lattice, proportional):
    error, law = least_error(lattice, 1.0, proportional=proportional)
    np.testing.assert_allclose(law.sum(axis=1), 1.0, atol=1e-9)
    assert law.min() >= 0
    assert (law * lattice.losses).sum(axis=1).mean() == pytest.approx(error, rel=1e-9)
    for distance, loss in losses(lattice, law):
        assert loss <= (distance if proportional else 1.0) + 1e-6


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("lattice", LATTICES, ids=str)
def test_no_private_mechanism_is_below_the_optimum(lattice, epsilon):
    least, proportional = (least_error(lattice, epsilon, proportional=flag)[0] for flag in (False, True))
    assert least <= proportional * (1 + 1e-9)
    private = [name for name, record in dps.MECHANISMS.items() if not record.has_slow_pmf]
    for name in private:
        assert mean_error(lattice, dps.MECHANISMS[name](epsilon=epsilon)) >= least * (1 - 1e-7), name
    for name in ("rnm", "heterogeneous-rnm"):
        assert mean_error(lattice, dps.MECHANISMS[name](epsilon=epsilon)) >= proportional * (1 - 1e-7), name


def test_where_all_states_are_neighbours_randomised_response_is_best():
    # Two of the four states have a wrong candidate, with loss 1, and its probability is at least 1/(1 + e^ε).
    error, _ = least_error(Lattice((1.0, 1.0), points=2, step=1.0), 0.7)
    assert error == pytest.approx(0.5 / (1 + np.exp(0.7)), rel=1e-9)


def test_exchanging_equally_sensitive_candidates_loses_nothing():
    # Sensitivities that differ by less than a step have the same neighbours, and are not exchanged.
    for lattice in (EVEN, THREE):
        distinct = tuple(delta * (1 + place / 1000) for place, delta in enumerate(lattice.sensitivities))
        other = Lattice(distinct, lattice.points, lattice.step)
        assert len(np.unique(lattice.variables())) < len(np.unique(other.variables()))
        assert least_error(lattice, 1.0)[0] == pytest.approx(least_error(other, 1.0)[0], rel=1e-8)


def test_two_mirrored_wrong_picks_add_up_to_at_least_the_bound_of_their_gap():
    lattice = Lattice((0.5, 1.5), points=9, step=0.5)
    _, law = least_error(lattice, 1.0)
    chance = {tuple(q): p for q, p in zip(lattice.scores.tolist(), law, strict=True)}
    for tie in (1.5, 2.0, 2.5):
        # One move of both candidates from a tie opens a gap of Δ₁ + Δ₂, on either side.
        wrong = chance[tie - 0.5, tie + 1.5][0] + chance[tie + 0.5, tie - 1.5][1]
        assert wrong >= np.exp(-1.0) - 1e-6


@pytest.mark.parametrize(
    ("lattice", "noisy_max", "default", "optimum"),
    [
        (Lattice((0.5, 1.5), points=21, step=0.5), 1.450, 0.695, 0.558),
        (Lattice((1.0, 1.0, 2.0), points=9, step=1.0), 3.672, 2.569, 1.723),
        (Lattice((1.0, 1.0, 1.0), points=9, step=1.0), 1.315, 1.315, 1.236),
    ],
    ids=str,
)
def test_numbers_that_an_independent_program_found_come_out(lattice, noisy_max, default, optimum):
    assert mean_error(lattice, dps.NoisyMax(epsilon=1.0)) == pytest.approx(noisy_max, abs=1e-3)
    assert mean_error(lattice, dps.HeterogeneousNoisyMax(epsilon=1.0)) == pytest.approx(default, abs=1e-3)
    assert least_error(lattice, 1.0)[0] == pytest.approx(optimum, abs=1e-3)
