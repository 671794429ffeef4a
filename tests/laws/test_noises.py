"""Every noise has all its parts, and one that lacks a part is refused."""

from typing import get_args

import pytest
import reference

import dpselect as dps
from dpselect.laws.noises import SAMPLERS, code_of, sampler_of
from dpselect.parameters import NOISES, Noise


def test_every_noise_has_a_sampler_and_a_slow_twin():
    assert set(SAMPLERS) == set(NOISES) == set(get_args(Noise)) == set(reference.NOISES)
    assert all(sampler_of(noise) for noise in NOISES)


@pytest.mark.parametrize("noise", NOISES)
def test_every_sampler_has_a_kernel_an_exact_twin_and_a_law(noise):
    sampler = sampler_of(noise)
    assert callable(sampler.kernel.select_from_scores)
    assert callable(sampler.kernel.select_from_gaps)
    assert callable(sampler.twin.pick)
    assert callable(sampler.pmf.fill_rows)


def test_an_unknown_noise_is_refused_and_never_taken_for_another():
    for lookup in (sampler_of, code_of):
        with pytest.raises(ValueError, match="noise must be one of"):
            lookup("unheard-of")


@pytest.mark.parametrize("noise", NOISES)
def test_a_noise_without_a_scale_of_its_own_is_refused(noise):
    if noise in dps.unsafe.SCALES:
        dps.unsafe.NaiveHeterogeneousNoisyMax(epsilon=1.0, noise=noise).pmf([0.0, 1.0], 1.0)
        assert code_of(noise) >= 0
    else:
        with pytest.raises(ValueError, match=f"noise must be .*{noise}"):
            dps.unsafe.NaiveHeterogeneousNoisyMax(epsilon=1.0, noise=noise)
