"""The slow twin in :mod:`reference` for each mechanism."""

import reference

import dpselect as dps
from dpselect.unsafe import NaiveHeterogeneousNoisyMax

TWINS = {
    dps.NoisyMax: reference.noisy_max,
    dps.HeterogeneousNoisyMax: reference.heterogeneous_noisy_max,
    dps.GEM: reference.gem,
    dps.RandomStopping: reference.random_stopping,
    dps.CombinedGEM: reference.combined_gem,
    dps.TopShare: reference.top_share,
    dps.RandomizedResponse: reference.randomized_response,
    dps.Uniform: reference.uniform,
    NaiveHeterogeneousNoisyMax: reference.naive_noisy_max,
}
