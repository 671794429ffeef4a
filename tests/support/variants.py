"""Every mechanism with some of its parameters, rows to pick from, and neighbouring rows."""

import dataclasses

import numpy as np
import pytest
from hypothesis import strategies as st

import dpselect as dps
from dpselect.unsafe import SCALES, NaiveHeterogeneousNoisyMax

REGISTERED = {name: make(epsilon=1.5) for name, make in dps.MECHANISMS.items()}
VARIANTS = {
    "heterogeneous-laplace": dps.HeterogeneousNoisyMax(epsilon=0.7, noise="laplace"),
    "heterogeneous-gumbel": dps.HeterogeneousNoisyMax(epsilon=2.0, noise="gumbel", tilt=0.5),
    "heterogeneous-tilted": dps.HeterogeneousNoisyMax(epsilon=1.0, tilt=-1.0, beta=0.3, neutral=False),
    "heterogeneous-most-sensitive": dps.HeterogeneousNoisyMax(epsilon=1.0, keep=(0.5, 1.0)),
    "rnm-laplace": dps.NoisyMax(epsilon=0.7, noise="laplace"),
    "rnm-monotone": dps.NoisyMax(epsilon=1.0, monotone=True),
    "rnm-monotone-gumbel": dps.NoisyMax(epsilon=1.0, monotone=True, noise="gumbel", tilt=-1.0),
    "rnm-monotone-laplace": dps.NoisyMax(epsilon=1.0, monotone=True, noise="laplace"),
    "rnm-tilted-down": dps.NoisyMax(epsilon=1.0, tilt=-0.4, beta=0.3, noise="laplace"),
    "gem-laplace": dps.GEM(epsilon=2.0, noise="laplace"),
    "gem-gumbel": dps.GEM(epsilon=2.0, noise="gumbel", tilt=0.0),
    "gem-steep": dps.GEM(epsilon=0.5, tilt=-3.0, beta=0.5),
    "standardized-laplace": dps.StandardizedNoisyMax(epsilon=1.0, noise="laplace", tilt=0.5),
    "standardized-gumbel": dps.StandardizedNoisyMax(epsilon=1.0, noise="gumbel", tilt=-0.5),
    "rs-negative": dps.RandomStopping(epsilon=1.0, eta=-0.5),
    "rs-steep": dps.RandomStopping(epsilon=1.0, gamma=0.2, eta=4.0),
    "rs-once": dps.RandomStopping(epsilon=1.0, gamma=1.0),
    "rs-rarely": dps.RandomStopping(epsilon=1.0, gamma=0.001, eta=0.0),
    "rs-exponential-negative": dps.RandomStopping(epsilon=1.0, eta=-0.5, noise="exponential"),
    "rs-exponential-steep": dps.RandomStopping(epsilon=1.0, gamma=0.2, eta=4.0, noise="exponential"),
    "rs-exponential-rarely": dps.RandomStopping(epsilon=1.0, gamma=0.001, noise="exponential"),
    "rnm-fixed-work": dps.NoisyMax(epsilon=1.0, fixed_work=True),
    "rnm-anchored": dps.Anchored(mechanism=dps.NoisyMax(epsilon=1.0), weight=0.5),
    "gem-anchored": dps.Anchored(mechanism=dps.GEM(epsilon=1.0, tilt=0.0), weight=-1.0),
    "combined-gem-curious": dps.CombinedGEM(epsilon=4.0, correlation_share=0.9, beta=0.2),
}
PRIVATE = REGISTERED | VARIANTS
UNSAFE = {f"rnmh-{noise}": NaiveHeterogeneousNoisyMax(epsilon=1.0, noise=noise) for noise in SCALES}
EVERY = PRIVATE | UNSAFE

every_mechanism = pytest.mark.parametrize("mechanism", EVERY.values(), ids=EVERY)
every_private_mechanism = pytest.mark.parametrize("mechanism", PRIVATE.values(), ids=PRIVATE)


def public_name(mechanism):
    """Return the name of the public numbers a mechanism takes with a call, if any."""
    return next(iter(mechanism.takes), None)


def needed(mechanism):
    """Return public numbers that change nothing, for mechanisms that require some."""
    return dict.fromkeys(mechanism.needs, 0.0)


def at_budget(mechanism, epsilon):
    """Return a mechanism with another privacy budget."""
    if isinstance(mechanism, dps.Anchored):
        return dataclasses.replace(mechanism, mechanism=at_budget(mechanism.mechanism, epsilon))
    return dataclasses.replace(mechanism, epsilon=epsilon)


def candidates(mechanism, shape, seed=0):
    """Return dyadic scores and sensitivities, some zero, and public numbers if the mechanism takes them."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(-64, 64, shape) / 32
    sensitivities = np.maximum(0, rng.integers(-6, 48, shape)) / 16
    name = public_name(mechanism)
    return scores, sensitivities, {} if name is None else {name: rng.integers(-32, 32, shape) / 32}


@st.composite
def neighbours(draw, *, one_direction=False):
    """Draw dyadic scores, neighbours and sensitivities, so that |q − q'| ≤ Δ holds exactly."""
    size = draw(st.integers(2, 5))
    widths = draw(st.lists(st.integers(0, 32), min_size=size, max_size=size))
    levels = draw(st.lists(st.integers(-32, 32), min_size=size, max_size=size))
    least = 0 if one_direction else -1
    moves = [draw(st.one_of(st.just(w), st.just(least * w), st.integers(least * w, w))) for w in widths]
    seed = draw(st.integers(0, 99))
    levels, widths, moves = (np.array(numbers) / 16 for numbers in (levels, widths, moves))
    return np.stack([levels, levels + moves]), widths, seed


def laws(mechanism, pair, sensitivities, seed):
    """Return the laws of a pair of neighbours, without candidates that neither can pick."""
    name = public_name(mechanism)
    public = {} if name is None else {name: np.random.default_rng(seed).integers(-9, 9, pair.shape[1]) / 8}
    first, second = mechanism.pmf(pair, sensitivities, **public)
    possible = (first > 0) | (second > 0)
    return first[possible], second[possible]
