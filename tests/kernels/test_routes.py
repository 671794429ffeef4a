"""Kernels give the same answers in plain Python as compiled, and are compiled where that pays."""

import math
import os
import re
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from routes import in_plain_python, plain_rows
from variants import candidates, every_mechanism

import dpselect as dps
from dpselect.kernels import chacha, compilation, instructions
from dpselect.kernels.arrays import Column, Rows, Units
from dpselect.kernels.compilation import IEEE, Kernel, compiled, size_of

FLOOR = 1e-250
"""Smaller probabilities are not promised to be precise."""


def both(call):
    """Return what a call returns on each route."""
    with in_plain_python():
        plain = call()
    return plain, call()


@every_mechanism
@pytest.mark.parametrize("shape", [(30, 7), (6, 200), (1, 1000)], ids=str)
def test_both_routes_pick_the_same(mechanism, shape):
    shape = (plain_rows(mechanism, shape[0]), shape[1])
    scores, sensitivities, public = candidates(mechanism, shape, 11)
    wide = np.maximum(sensitivities, 0.25) ** 3
    for widths in (sensitivities, wide, wide[0]):
        seed = dps.Randomness.seeded(5)
        plain, compiled = both(lambda: mechanism.select(scores, widths, randomness=seed, **public))  # noqa: B023
        np.testing.assert_array_equal(plain, compiled)


@every_mechanism
@pytest.mark.parametrize("shape", [(5, 3), (2, 60), (1, 300)], ids=str)
def test_both_routes_give_the_same_probabilities(mechanism, shape):
    shape = (plain_rows(mechanism, shape[0]), shape[1])
    scores, sensitivities, public = candidates(mechanism, shape, 12)
    precision = 1e-12
    for widths in (sensitivities, np.maximum(sensitivities, 0.25), np.full(shape, 2.0**-7)):
        plain, compiled = both(lambda: mechanism.pmf(scores, widths, **public))  # noqa: B023
        assert plain[compiled > FLOOR] == pytest.approx(compiled[compiled > FLOOR], rel=precision)
        assert (plain[compiled <= FLOOR] <= 2 * FLOOR).all()


# --- When to compile --------------------------------------------------------------------------------------


@compiled
def total(values):
    result = 0.0
    for value in values:
        result += value
    return result


@pytest.fixture
def by_need(monkeypatch):
    """Decide as for a user, and from anew; the other tests compile everything."""
    monkeypatch.setattr(compilation, "_AT_ONCE", [])
    monkeypatch.delenv("DPSELECT_COMPILE", raising=False)
    monkeypatch.setattr(total, "seconds", 0.0)
    monkeypatch.setattr("dpselect.kernels.caches.is_kept", lambda _: False)


def few(size=3):
    return (np.ones(size),)


@pytest.mark.usefixtures("by_need")
def test_a_large_call_is_compiled_and_a_small_one_is_not():
    assert not total.pays(few())
    assert not total.pays(few(compilation.SMALL))
    assert total.pays(few(compilation.SMALL + 1))


def test_rows_that_share_their_candidates_count_each_time():
    column = Column(np.ones(100), np.zeros(40, np.int64))
    table = Rows(column, column, column, np.arange(41) * 100)
    assert size_of((0, 40, table, 1.0)) == 4000
    assert size_of(((table, 2.0), np.ones(5000))) == 5000
    assert size_of((Units(np.zeros(8, np.uint32), np.zeros((40, 3), np.uint32)),)) == 40 * compilation.ROW


@pytest.mark.usefixtures("by_need")
def test_small_calls_that_add_up_are_compiled_or_sooner_loaded(monkeypatch):
    monkeypatch.setattr(total, "seconds", 0.9 * compilation.LOADING)
    assert not total.pays(few())
    monkeypatch.setattr(total, "seconds", 1.1 * max(compilation.LOADING, total.seconds_to_compile))
    assert total.pays(few())
    longer = dps.GEM(epsilon=1.0).law(np.array([3])).sampler.kernel.select_from_gaps
    assert longer.seconds_to_compile > 3 * compilation.LOADING
    monkeypatch.setattr(longer, "seconds", 2 * compilation.LOADING)
    assert not longer.pays(few())
    monkeypatch.setattr("dpselect.kernels.caches.is_kept", lambda _: True)
    assert longer.pays(few())


@pytest.mark.usefixtures("by_need")
def test_the_time_of_small_calls_is_added_up():
    assert total(np.ones(5)) == 5.0
    assert total.ready is None
    assert total.seconds > 0.0


@pytest.mark.usefixtures("by_need")
def test_a_setting_decides_instead(monkeypatch):
    monkeypatch.setenv("DPSELECT_COMPILE", "always")
    assert total.pays(few())
    monkeypatch.setenv("DPSELECT_COMPILE", "never")
    assert not total.pays(few(10**6))
    monkeypatch.setenv("DPSELECT_COMPILE", "sometimes")
    with pytest.raises(ValueError, match=r"DPSELECT_COMPILE must be always or never, or not set; got 'sometimes'"):
        total.pays(few())


def test_an_error_in_a_kernel_is_the_same_error_on_both_routes():
    state = chacha.new_stream(np.zeros(8, np.uint32))
    state[chacha.READ] = chacha.BYTE_REGION
    for route in (chacha.next_group, chacha.next_group.run_plainly):
        with pytest.raises(OverflowError, match="random stream exhausted"):
            route(state)


@pytest.mark.parametrize("log", [False, True], ids=["no log", "a log"])
def test_standard_error_says_what_is_compiled_unless_the_program_keeps_a_log(log, tmp_path):
    script = f"import logging; {log} and logging.basicConfig(); import dpselect as dps; dps.compile('uniform')"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=os.environ | {"DPSELECT_CACHE": str(tmp_path)},
        check=True,
    )
    assert ("dpselect: compiling samplers.uniform.select_rows for about" in done.stderr) is not log


@pytest.mark.skipif(os.name == "nt", reason="terminals")
def test_a_terminal_shows_what_is_compiled_on_standard_error_only(tmp_path):
    script = "import dpselect as dps; dps.compile('uniform')"
    reader, writer = os.openpty()
    settings = os.environ | {"DPSELECT_CACHE": str(tmp_path)}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=writer, env=settings, check=True
    )
    os.close(writer)
    shown = os.read(reader, 10_000).decode()
    os.close(reader)
    assert done.stdout == b""
    assert "dpselect: compiling samplers.uniform.select_rows for about" in shown
    assert all(re.match("dpselect: (still )?compiling ", line) for line in shown.splitlines())


# --- Instructions in Python -------------------------------------------------------------------------------

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(finite, finite, finite)
@example(1.0 + 2.0**-30, 1.0 - 2.0**-30, -1.0)
@example(2.0**-600, 2.0**-600, -0.0)
@example(2.0**600, 2.0**600, -1.0)
def test_a_fused_product_is_rounded_once(a, b, c):
    found = instructions.fused_multiply_add(a, b, c)
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if abs(exact) < Fraction(2) ** 1023 and abs(a * b) < math.inf:
        assert found == float(exact)
    else:
        assert not math.isfinite(found) or abs(found) >= 2.0**1022


@given(st.integers(0, 2**64 - 1))
def test_bits_are_counted(number):
    digits = f"{number:064b}"
    word = np.uint64(number)
    assert instructions.ones_of(word) == digits.count("1")
    assert instructions.leading_zeros(word) == len(digits) - len(digits.lstrip("0"))
    if number:
        assert instructions.lowest_bit(word) == len(digits) - len(digits.rstrip("0"))
    assert instructions.float_bits(instructions.float_of_bits(np.int64(number - 2**63))) == number - 2**63


@pytest.mark.parametrize("region", [0, chacha.BYTE_REGION, chacha.WORD_REGION])
def test_both_routes_compute_the_same_blocks(region):
    key, nonces = np.arange(8, dtype=np.uint32) * 77, np.array([[1, 2, 3], [4, 5, 6]], np.uint32)
    plain, fast = chacha.new_stream(key), chacha.new_stream(key)
    with in_plain_python():
        chacha.load_pair(plain, nonces, 0, 1)
        chacha.fill_group(plain, region + 24, chacha.SEQUENCE)
    chacha.load_pair(fast, nonces, 0, 1)
    chacha.fill_group(fast, region + 24, chacha.SEQUENCE)
    np.testing.assert_array_equal(plain, fast)


def test_functions_of_real_numbers_have_the_compilers_values_where_python_raises():
    assert IEEE.exp(1e4) == IEEE.expm1(1e4) == math.inf
    assert IEEE.log(0.0) == IEEE.log1p(-1.0) == -math.inf
    assert math.isnan(IEEE.log(-1.0))
    assert math.isnan(IEEE.sqrt(-1.0))
    assert math.isnan(IEEE.log1p(-2.0))


def test_a_kernel_keeps_its_name_and_docstring():
    assert isinstance(chacha.seek, Kernel)
    assert repr(chacha.seek) == "<kernel dpselect.kernels.chacha.seek>"
    assert chacha.seek.__doc__.startswith("Move to the start")
