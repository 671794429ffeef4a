"""Private running sums against the textbook's algorithm, their scales, and their bound."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, chi2

from experiments.bandit.exposure import block_losses
from experiments.bandit.sums import (
    Block,
    binary_blocks,
    binary_noise,
    error_bound,
    hybrid_blocks,
    hybrid_deviations,
    hybrid_noise,
    scales_at,
)


def binary_prefix(length, start=0):
    """Return the blocks that a binary mechanism sums for a prefix: the binary digits, largest first."""
    blocks, end = [], start
    for j in reversed(range(length.bit_length())):
        if length >> j & 1:
            blocks.append((end + 1, end + 2**j))
            end += 2**j
    return blocks


def hybrid_prefix(length):
    """Return the logarithmic mechanism's blocks for a prefix, and those of the binary mechanism after them."""
    k = length.bit_length() - 1
    whole = [(1, 1)] + [(2**j + 1, 2 ** (j + 1)) for j in range(k)]
    return whole, binary_prefix(length - 2**k, start=2**k)


def hybrid_scales(length, epsilon):
    whole, rest = hybrid_prefix(length)
    k = length.bit_length() - 1
    return dict.fromkeys(whole, 2 / epsilon) | dict.fromkeys(rest, 2 * k / epsilon)


def binary_scales(length, horizon, epsilon):
    levels = len(f"{horizon:b}")
    return dict.fromkeys(binary_prefix(length), levels / epsilon)


@given(st.integers(1, 5000))
def test_the_blocks_of_a_prefix_hold_each_of_its_items_once(length):
    whole, rest = hybrid_prefix(length)
    for blocks in (binary_prefix(length), sorted(whole + rest)):
        items = [item for first, last in blocks for item in range(first, last + 1)]
        assert items == list(range(1, length + 1))


@given(st.integers(1, 600), st.sampled_from([0.1, 1.0, 3.0]))
def test_released_blocks_are_those_that_prefixes_need(length, epsilon):
    needed = {block: scale for n in range(1, length + 1) for block, scale in hybrid_scales(n, epsilon).items()}
    assert {(first, last): scale for first, last, scale in hybrid_blocks(length, epsilon=epsilon)} == needed
    needed = {
        block: scale for n in range(1, length + 1) for block, scale in binary_scales(n, length, epsilon).items()
    }
    assert {(first, last): scale for first, last, scale in binary_blocks(length, epsilon=epsilon)} == needed


@given(st.integers(1, 3000), st.sampled_from([0.3, 1.0, 2.0]))
def test_scales_of_a_prefix_are_those_of_its_blocks(length, epsilon):
    assert sorted(scales_at(length, epsilon=epsilon)) == pytest.approx(
        sorted(hybrid_scales(length, epsilon).values())
    )
    assert sorted(scales_at(length, epsilon=epsilon, horizon=3000)) == pytest.approx(
        sorted(binary_scales(length, 3000, epsilon).values())
    )


@given(st.integers(1, 2000), st.sampled_from([0.5, 1.0]))
def test_no_item_loses_more_than_epsilon_and_some_item_all_of_it(length, epsilon):
    hybrid = block_losses(hybrid_blocks(length, epsilon=epsilon), length)
    binary = block_losses(binary_blocks(length, epsilon=epsilon), length)
    assert max(hybrid.max(), binary.max()) <= epsilon + 1e-9
    assert binary[0] == pytest.approx(epsilon)
    if length >= 4:
        assert hybrid.max() == pytest.approx(epsilon)


def test_losses_count_the_blocks_that_hold_an_item():
    blocks = [Block(1, 4, 2.0), Block(3, 3, 4.0), Block(3, 6, 1.0)]
    by_hand = [sum(1 / b.scale for b in blocks if b.first <= item <= b.last) for item in range(1, 8)]
    np.testing.assert_allclose(block_losses(blocks, 7), by_hand, atol=1e-12)


@pytest.mark.parametrize("kind", ["binary", "hybrid"])
def test_the_noise_of_prefixes_varies_together_as_their_common_blocks_say(kind):
    """Variances and covariances of 15 prefixes; for normal data each would miss 6 standard errors once in 5e8."""
    streams, length = 100_000, 15
    rng = np.random.default_rng(5)
    if kind == "binary":
        noise = binary_noise(streams, length, epsilon=2.0, rng=rng)[:, 1:]
        scales = [binary_scales(n, length, 2.0) for n in range(1, length + 1)]
    else:
        noise = hybrid_noise(streams, length, epsilon=2.0, rng=rng)[:, 1:]
        scales = [hybrid_scales(n, 2.0) for n in range(1, length + 1)]
    expected = np.array([[sum(2 * a[block] ** 2 for block in a.keys() & b.keys()) for b in scales] for a in scales])
    products = noise[:, :, np.newaxis] * noise[:, np.newaxis, :]
    margin = 6 * products.std(axis=0) / streams**0.5
    assert (np.abs(products.mean(axis=0) - expected) <= margin).all()


def test_a_single_release_is_laplace():
    """χ² on 20 equally likely cells; false alarms once in 1e6."""
    values = hybrid_noise(40_000, 1, epsilon=0.5, rng=np.random.default_rng(8))[:, 1]
    shares = 0.5 + 0.5 * np.sign(values) * (1 - np.exp(-np.abs(values) / 4))  # scale 2/ε = 4
    counts = np.histogram(shares, bins=20, range=(0, 1))[0]
    assert ((counts - 2000) ** 2 / 2000).sum() < chi2.ppf(1 - 1e-6, 19)


def test_nothing_is_added_to_an_empty_sum():
    rng = np.random.default_rng(1)
    assert (hybrid_noise(3, 9, epsilon=1.0, rng=rng)[:, 0] == 0).all()
    assert (binary_noise(3, 9, epsilon=1.0, rng=rng)[:, 0] == 0).all()


@pytest.mark.parametrize("failure", [0.3, 0.05])
@pytest.mark.parametrize("kind", ["binary", "hybrid"])
def test_errors_exceed_their_bound_no_more_often_than_it_says(kind, failure):
    """For each of six lengths; false alarms once in 1e6 even if the bound were sharp."""
    streams, horizon, lengths = 2000, 1000, [1, 7, 64, 511, 768, 1000]
    draw, known = (binary_noise, {"horizon": horizon}) if kind == "binary" else (hybrid_noise, {})
    noise = draw(streams, horizon, epsilon=1.0, rng=np.random.default_rng(11))[:, lengths]
    bounds = [error_bound(scales_at(n, epsilon=1.0, **known), failure) for n in lengths]
    exceeded = (np.abs(noise) > bounds).sum(axis=0)
    assert (exceeded <= binom.ppf(1 - 1e-6 / 6, streams, failure)).all()


@pytest.mark.parametrize("failure", [0.5, 0.1, 0.01, 1e-6])
def test_the_bound_is_above_the_exact_quantile_of_one_laplace_variable(failure):
    assert error_bound(np.array([3.0]), failure) >= 3.0 * np.log(1 / failure)


def test_deviations_are_those_of_the_scales():
    expected = [0.0] + [(2 * sum(s**2 for s in hybrid_scales(n, 0.7).values())) ** 0.5 for n in range(1, 40)]
    np.testing.assert_allclose(hybrid_deviations(39, epsilon=0.7), expected)
