"""Every mechanism with some of its parameters, rows to pick from, and neighbouring rows."""

import dataclasses

import numpy as np
import pytest
from hypothesis import strategies as st

import dpselect as dps
from dpselect.guarantees import SAME_DIRECTION
from dpselect.unsafe import SCALES, NaiveHeterogeneousNoisyMax

REGISTERED = {name: make(epsilon=1.5) for name, make in dps.MECHANISMS.items()}
VARIANTS = {
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
    "rs-negative": dps.RandomStopping(epsilon=1.0, eta=-0.5),
    "rs-steep": dps.RandomStopping(epsilon=1.0, gamma=0.2, eta=4.0),
    "rs-once": dps.RandomStopping(epsilon=1.0, gamma=1.0),
    "rs-rarely": dps.RandomStopping(epsilon=1.0, gamma=0.001, eta=0.0),
    "rs-exponential-negative": dps.RandomStopping(epsilon=1.0, eta=-0.5, noise="exponential"),
    "rs-exponential-steep": dps.RandomStopping(epsilon=1.0, gamma=0.2, eta=4.0, noise="exponential"),
    "rs-exponential-rarely": dps.RandomStopping(epsilon=1.0, gamma=0.001, noise="exponential"),
    "top-share-few": dps.TopShare(epsilon=4.0, share=0.05),
    "top-share-most": dps.TopShare(epsilon=0.5, share=0.7),
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


def public_numbers(mechanism, rng, shape, bound, scale):
    """Return dyadic public numbers below a bound, if the mechanism takes any; weights are not negative."""
    name = public_name(mechanism)
    if name is None:
        return {}
    numbers = rng.integers(-bound, bound, shape) / scale
    if name == "weights":
        numbers = np.abs(numbers)
        numbers[..., 0] += 1 / scale  # a weight of each row is positive
    return {name: numbers}


def at_budget(mechanism, epsilon):
    """Return a mechanism with another privacy budget."""
    return dataclasses.replace(mechanism, epsilon=epsilon)


def candidates(mechanism, shape, seed=0):
    """Return dyadic scores and sensitivities, some zero, and public numbers if the mechanism takes them."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(-64, 64, shape) / 32
    sensitivities = np.maximum(0, rng.integers(-6, 48, shape)) / 16
    return scores, sensitivities, public_numbers(mechanism, rng, shape, 32, 32)


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


def many_neighbours(mechanism, count=100):
    """Yield dyadic scores, moves to neighbours, sensitivities and public numbers, in batches of 2 to 5 candidates.

    Hypothesis takes 2 ms to draw a pair, the kernels less than 0.1 ms. Three rows in ten have ties and zeros.
    """
    rng = np.random.default_rng(13)
    least = 0 if mechanism.guarantee.neighbours == SAME_DIRECTION else -1
    for shape in ((count, size) for size in (2, 3, 4, 5)):
        coarse = rng.random((count, 1)) < 0.3
        levels = np.where(coarse, 16 * rng.integers(-1, 2, shape), rng.integers(-32, 33, shape))
        widths = np.where(coarse, rng.choice([0, 1, 16, 32], shape), rng.integers(0, 33, shape))
        within = rng.integers(least * widths, widths, endpoint=True)
        moves = np.choose(rng.integers(0, 3, shape), [widths, least * widths, within])
        yield levels / 16, moves / 16, widths / 16, public_numbers(mechanism, rng, shape, 9, 8)


def paired_laws(mechanism, rows, here=0.0, there=1.0):
    """Return the laws of rows, and of their neighbours, or at two shares of the way between them."""
    levels, moves, widths, public = rows
    pairs = np.stack([levels + here * moves, levels + there * moves], axis=1)
    public = {name: numbers[:, np.newaxis] for name, numbers in public.items()}
    found = mechanism.pmf(pairs, widths[:, np.newaxis], **public)
    return found[:, 0], found[:, 1]


def losses_of(first, second):
    """Return log(first / second) for each candidate, and zero for those that neither can pick."""
    possible = (first > 0) | (second > 0)
    with np.errstate(divide="ignore"):
        return np.log(first, where=possible, out=np.zeros_like(first)) - np.log(
            second, where=possible, out=np.zeros_like(second)
        )


def laws(mechanism, pair, sensitivities, seed):
    """Return the laws of a pair of neighbours, without candidates that neither can pick."""
    public = public_numbers(mechanism, np.random.default_rng(seed), pair.shape[1], 9, 8)
    first, second = mechanism.pmf(pair, sensitivities, **public)
    possible = (first > 0) | (second > 0)
    return first[possible], second[possible]
