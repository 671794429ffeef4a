"""Arrays of other libraries give NumPy's picks, as arrays of their own kind on their own device."""

import logging
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

import dpselect as dps
from dpselect import arrays, inputs

MECHANISM = dps.GEM(2.0)
SEED = dps.Randomness.seeded(5)
SCORES = np.random.default_rng(4).integers(-8, 9, (7, 5)) / 4  # quarters, which bfloat16 holds exactly
WIDTHS = np.array([0.0, 0.5, 1.0, 0.25, 2.0])
PICKS = MECHANISM.select(SCORES, WIDTHS, randomness=SEED)
small = arrays_of.arrays(np.float32, arrays_of.array_shapes(max_dims=3, max_side=4), elements=st.integers(-4, 4))


class Exported:
    """An array with DLPack and nothing else, on the processor."""

    def __init__(self, array, device="cpu:0"):
        self.array, self.device = np.asarray(array), device

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return (1, 0)

    dtype, ndim, shape = (
        property(lambda self, name=name: getattr(self.array, name)) for name in ("dtype", "ndim", "shape")
    )


class OnDevice(Exported):
    """An array in the memory of a device that the processor cannot read: only ``get`` copies it."""

    copied: list[tuple[int, ...]] = []  # noqa: RUF012 - cleared by the tests that read it

    def __init__(self, array, device="accelerator:1"):
        super().__init__(array, device)

    def __array_namespace__(self):
        return SimpleNamespace(asarray=OnDevice)

    def __dlpack__(self, **_):
        raise BufferError("on another device")

    def __array__(self, *_, **__):
        raise TypeError("on another device")

    def __dlpack_device__(self):
        return (2, 1)

    def __getitem__(self, places):
        return OnDevice(self.array[places], self.device)

    def get(self):
        OnDevice.copied.append(self.array.shape)
        return self.array


@given(small, st.integers(0, 99))
def test_what_has_dlpack_gives_the_picks_and_probabilities_of_numpy(scores, seed):
    randomness = dps.Randomness.seeded(seed)
    for mechanism in (MECHANISM, dps.TopK(MECHANISM, scores.shape[-1])):
        picks = mechanism.select(scores, 1.0, randomness=randomness)
        exported = mechanism.select(Exported(scores), Exported(np.float32(1.0)), randomness=randomness)
        np.testing.assert_array_equal(exported, picks)
        moved = mechanism.select(OnDevice(scores), 1.0, randomness=randomness)
        assert (
            isinstance(moved, int)
            if scores.ndim == 1 and mechanism.count is None
            else moved.device == "accelerator:1"
        )
        np.testing.assert_array_equal(getattr(moved, "array", moved), picks)
    law = MECHANISM.pmf(OnDevice(scores), 1.0)
    np.testing.assert_array_equal(law.array, MECHANISM.pmf(scores, 1.0))
    error = dps.expected_error(MECHANISM, OnDevice(scores), OnDevice([1.0]))
    np.testing.assert_array_equal(error, dps.expected_error(MECHANISM, scores, 1.0))


def test_ragged_rows_and_lists_of_foreign_arrays_are_read():
    flat, bounds = SCORES.reshape(-1), np.array([0, 3, 3 + 9, 35])
    expected = MECHANISM.select((flat, bounds), 1.0, randomness=SEED)
    picks = MECHANISM.select((OnDevice(flat), OnDevice(bounds)), 1.0, randomness=SEED)
    np.testing.assert_array_equal(picks.array, expected)
    rows = [Exported(row) for row in SCORES]
    np.testing.assert_array_equal(MECHANISM.select(rows, WIDTHS, randomness=SEED), PICKS)


def test_another_device_is_copied_in_blocks_of_rows_and_said_once(monkeypatch, caplog):
    monkeypatch.setattr(inputs, "AT_ONCE", 3 * SCORES.shape[1])
    monkeypatch.setattr(logging.getLogger("dpselect"), "disabled", False)  # as --quiet leaves it in this process
    arrays.say_once.cache_clear()
    OnDevice.copied.clear()
    with caplog.at_level(logging.INFO, "dpselect"):
        for _ in range(2):
            picks = MECHANISM.select(OnDevice(SCORES), WIDTHS, randomness=SEED)
    np.testing.assert_array_equal(picks.array, PICKS)
    assert OnDevice.copied == 2 * [(3, 5), (3, 5), (1, 5)]
    said = [record.getMessage() for record in caplog.records]
    assert [line for line in said if "compiling" not in line] == [
        "scores on accelerator:1 are copied to the host, picked from there, and the picks copied back"
    ]


@pytest.mark.parametrize(
    ("scores", "rule"),
    [
        (OnDevice([1.0, np.nan]), "finite"),
        (OnDevice([2**60, 1]), "2\\^53"),
        (OnDevice([True, False]), "must hold numbers, got bool"),
        (OnDevice(np.zeros((2, 0))), "at least one candidate"),
        (Exported(np.array(["ale", "rum"])), "must be a dense array"),
        (Exported(np.float64(3.0)), "a last axis of candidates"),
    ],
)
def test_bad_foreign_arrays_are_refused_by_the_same_rules(scores, rule):
    with pytest.raises(ValueError, match=f"^scores.*{rule}"):
        MECHANISM.select(scores, 1.0)


@pytest.mark.parametrize("device", ["CPU_DEVICE", "device1"])
def test_an_array_of_the_standard_stays_on_its_device(device):
    strict = pytest.importorskip("array_api_strict")
    place = strict.Device(device)
    picks = MECHANISM.select(strict.asarray(SCORES, device=place), strict.asarray(WIDTHS), randomness=SEED)
    assert (type(picks), picks.device) == (type(strict.asarray(0)), place)
    np.testing.assert_array_equal(np.from_dlpack(picks), PICKS)
    law = MECHANISM.pmf(strict.asarray(SCORES, device=place), WIDTHS)
    assert (law.device, law.dtype) == (place, strict.float64)


def test_tensors_give_tensors():
    torch = pytest.importorskip("torch")
    for tensor in (
        torch.tensor(SCORES),
        torch.tensor(SCORES, requires_grad=True),
        torch.tensor(SCORES, dtype=torch.bfloat16),
        torch.tensor(SCORES.T.copy()).T,
    ):
        picks = MECHANISM.select(tensor, torch.tensor(WIDTHS), randomness=SEED)
        assert (type(picks), picks.device, picks.dtype) == (torch.Tensor, tensor.device, torch.int64)
        assert picks.tolist() == PICKS.tolist()
    page = (Path(__file__).parent.parent / "docs/guide/batches.md").read_text("utf-8")
    [block] = re.findall(r"```py\n(.*?)```", page, flags=re.DOTALL)
    exec(block, {"dps": dps})  # noqa: S102 - our own text
    for bad in (torch.eye(3).to_sparse(), torch.empty(3, device="meta")):
        with pytest.raises(ValueError, match=r"^scores must be a dense array"):
            MECHANISM.select(bad, 1.0)


def test_arrays_of_jax_give_arrays_of_jax():
    jax = pytest.importorskip("jax")
    for kind in ("float32", "bfloat16"):
        picks = MECHANISM.select(jax.numpy.asarray(SCORES, dtype=kind), WIDTHS, randomness=SEED)
        assert isinstance(picks, jax.Array)
        assert picks.tolist() == PICKS.tolist()
    with pytest.raises(ValueError, match=r"^scores must be .*not inside jax\.jit"):
        jax.jit(lambda scores: MECHANISM.select(scores, 1.0))(jax.numpy.ones(3))
