"""Top share on a CUDA device gives the CPU's picks, bit for bit.

The tests marked ``gpu`` run on a real device with ``make test-gpu``. Another runs them all in Numba's simulator.
"""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import config, cuda

import dpselect as dps
from dpselect import kernels
from dpselect.laws import base

SIMULATED = bool(config.ENABLE_CUDASIM)
if SIMULATED:
    from warps import Simulated

    kernels.gpu.LEAST_BLOCKS = 1
ROWS = 3 if SIMULATED else 600
ROOT = Path(__file__).parents[2]
on_gpu = pytest.mark.gpu


def libraries():
    return ["simulated"] if SIMULATED else ["torch", "cupy", "jax"]


def on_device(array, library="torch"):
    """Return an array on the device."""
    if SIMULATED:
        return Simulated(np.array(array))
    if not cuda.is_available():
        pytest.skip("needs a CUDA device: there is none")
    module = pytest.importorskip(library)
    if library == "torch":
        return module.as_tensor(np.array(array)).cuda()
    return (module.numpy if library == "jax" else module).asarray(array)


def on_host(picks):
    return np.asarray(picks.cpu() if hasattr(picks, "cpu") else picks.get() if hasattr(picks, "get") else picks)


def check(mechanism, scores, randomness, library="torch", weights=None, given=None):
    """Check that the device picks what the CPU picks. The weights may be given in another form."""
    public = {} if weights is None else {"weights": weights}
    there = {} if weights is None else {"weights": weights if given is None else given}
    picks = mechanism.select(on_device(scores, library), **there, randomness=randomness)
    assert type(picks) is not np.ndarray
    np.testing.assert_array_equal(on_host(picks), mechanism.select(scores, **public, randomness=randomness))


def rows_of(size, seed, *, ties, kind):
    """Return scores, with or without many ties."""
    scores = np.random.default_rng(seed).normal(size=(ROWS, size))
    return np.round(scores, 0 if ties else 6).astype(kind)


def weights_of(form, size):
    source = np.random.default_rng(size)
    own = source.random(size) ** 4 * (source.random(size) > 0.3)
    own[-1] = 0.5
    return {"none": None, "shared": own, "equal": np.full(size, 0.3)}[form]


@pytest.mark.skipif(SIMULATED, reason="this starts the simulator")
def test_the_simulator_passes_all_tests_of_this_module():
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-qx",
        "-W",
        "default",
        "-m",
        "gpu",
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(  # noqa: S603 - our own
        [*command, __file__], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


@on_gpu
@pytest.mark.parametrize("form", ["none", "shared", "equal"])
@pytest.mark.parametrize("epsilon", [1.0, 4.0, 16.0])
@pytest.mark.parametrize("size", [1, 2, 3, 33, 300] if SIMULATED else [1, 2, 3, 33, 500])
def test_picks_are_those_of_the_cpu(size, epsilon, form):
    kind = np.float32 if (size + int(epsilon)) % 2 else np.float64
    for ties in (epsilon < 4.0,) if SIMULATED else (False, True):
        scores = rows_of(size, size, ties=ties, kind=kind)
        check(dps.TopShare(epsilon), scores, dps.Randomness.seeded(size), weights=weights_of(form, size))


@on_gpu
def test_long_rows_read_several_groups_of_the_stream():
    for size in (1200,) if SIMULATED else (1200, 5000, 70_000):
        scores = rows_of(size, 1, ties=False, kind=np.float32)[: 1 if SIMULATED else None]
        check(dps.TopShare(3.0, share=3 / size), scores, dps.Randomness.seeded(4))


@on_gpu
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 16.0])
def test_picks_are_the_recorded_ones(epsilon):
    """The table of tests/test_recorded_picks.py, whose rows these are. Its first twelve picks are readable."""
    table = json.loads((ROOT / "tests" / "recorded_picks.json").read_text("utf-8"))["picks"]
    key = hashlib.blake2b(b"recorded picks", digest_size=32).digest()
    count = 3 if SIMULATED else 12
    for size in (1, 2, 7, 64, 65, 130, 700):
        scores = np.round(np.random.default_rng(size).normal(size=(60, size)), 1)[:count]
        picks = dps.TopShare(epsilon).select(on_device(scores), randomness=dps.Randomness.keyed(key, range(count)))
        expected = table[dps.TopShare(epsilon).law_name][f"{size} own"].split()[:count]
        assert [str(pick) for pick in on_host(picks).tolist()] == expected


@on_gpu
@pytest.mark.parametrize("library", libraries())
def test_units_axes_and_other_forms_of_scores_and_weights(library):
    source = np.random.default_rng(2)
    scores = source.integers(0, 9, (2, 3, 40)).astype(np.float32)
    own = source.random((2, 3, 40))
    names = dps.Randomness.keyed(bytes(32), [f"unit {i}" for i in range(6)])
    mechanism = dps.TopShare(2.0)
    check(mechanism, scores, names, library)
    check(mechanism, scores, names, library, weights=own[0, 0], given=on_device(own[0, 0], library))
    check(mechanism, scores, names, library, weights=own[:, :1])  # by the CPU
    check(mechanism, scores, names, library, weights=own, given=on_device(own, library))  # by the CPU
    check(mechanism, scores.astype(np.float16), names, library)
    check(mechanism, scores.astype(np.int32), names, library)  # by the CPU
    alone = mechanism.select(on_device(scores[0, 0], library), randomness=dps.Randomness.seeded(1))
    assert type(alone) is int
    assert alone == mechanism.select(scores[0, 0], randomness=dps.Randomness.seeded(1))


@on_gpu
@pytest.mark.parametrize("form", ["none", "shared"])
def test_rows_that_floats_cannot_decide_are_picked_in_exact_arithmetic(form, monkeypatch):
    scores, weights = rows_of(33, 5, ties=True, kind=np.float64)[:3], weights_of(form, 33)
    expected = dps.TopShare(2.0).select(
        scores, **({} if weights is None else {"weights": weights}), randomness=dps.Randomness.seeded(9)
    )
    monkeypatch.setattr(base, "FILTER_ERROR", 1e300)
    picks = dps.TopShare(2.0).select(
        on_device(scores),
        **({} if weights is None else {"weights": weights}),
        randomness=dps.Randomness.seeded(9),
    )
    assert on_host(picks).tolist() == expected.tolist()


@on_gpu
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_are_refused(bad, kind):
    for size, place in ((1, 0), (40, 39)):
        scores = np.ones((5, size), kind)
        scores[3, place] = bad
        with pytest.raises(ValueError, match="scores must be finite"):
            dps.TopShare(1.0).select(on_device(scores))
    check(dps.TopShare(1.0), np.ones((5, 3), kind), dps.Randomness.seeded(1))  # a later call is not affected


@on_gpu
def test_bad_weights_are_refused_as_on_the_cpu():
    scores = np.ones((2, 3))
    for weights, message in (
        ([1.0, -1.0, 2.0], "weights must be ≥ 0"),
        ([[0.0, 1.0, 2.0], [0.0, 0.0, 0.0]], "weights must be positive for at least one candidate"),
        ([[1.0, np.nan, 2.0], [1.0, 1.0, 1.0]], "weights must be finite"),
        ([1.0, 2.0], "weights must have one number for each of the 3 candidates"),
    ):
        for given in (weights, on_device(np.array(weights))):
            with pytest.raises(ValueError, match=message):
                dps.TopShare(1.0).select(on_device(scores), weights=given)
    with pytest.raises(ValueError, match="got 3 units for 2 rows"):
        dps.TopShare(1.0).select(on_device(scores), randomness=dps.Randomness.keyed(bytes(32), range(3)))


@on_gpu
@pytest.mark.skipif(SIMULATED, reason="needs torch's streams")
def test_the_current_stream_of_torch_is_used():
    torch = pytest.importorskip("torch")
    scores = rows_of(500, 3, ties=False, kind=np.float32)
    there = on_device(scores)
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(100_000_000)
        picks = dps.TopShare(2.0).select(there * 1.0, randomness=dps.Randomness.seeded(1))
        copy = picks + 0
    torch.cuda.synchronize()
    assert copy.tolist() == dps.TopShare(2.0).select(scores, randomness=dps.Randomness.seeded(1)).tolist()
