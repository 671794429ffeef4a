"""The package as a whole: its names, its imports, its documentation, and expected errors."""

import inspect
import subprocess
import sys
from importlib import metadata, resources

import numpy as np
import pyarrow as pa
import pytest

import dpselect as dps

PUBLIC = {
    *("NoisyMax", "GEM", "ModifiedGEM", "StandardizedNoisyMax", "RandomStopping", "CombinedGEM"),
    *("RandomizedResponse", "Uniform", "unsafe", "MECHANISMS", "Mechanism", "Guarantee", "Randomness"),
    *("expected_error", "gem_scores", "__version__", "accounting", "auditing"),
}


def test_the_public_names_are_exactly_these_and_no_more_than_thirty():
    assert set(dps.__all__) == PUBLIC
    assert len(PUBLIC) == len(dps.__all__) <= 30
    for name in dps.__all__:
        assert hasattr(dps, name)
    assert sorted(dps.unsafe.__all__) == ["ExponentialRandomStopping", "HeterogeneousNoisyMax"]


def test_importing_loads_neither_the_compiler_nor_any_heavy_library():
    script = (
        "import sys, dpselect; "
        "heavy = {'numba', 'llvmlite', 'scipy', 'matplotlib', 'pyarrow', 'pandas', 'mpmath', 'dp_accounting', 'opendp'}; "
        "print(sorted(heavy & {name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "[]"


def test_arrays_are_weighed_without_loading_arrow():
    script = (
        "import sys, dpselect as dps; dps.GEM(epsilon=1.0).select([1.0, 2.0], 1.0); print('pyarrow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "False"


def test_the_version_is_that_of_the_installed_package():
    assert dps.__version__ == metadata.version("dpselect")


def test_type_hints_are_shipped():
    assert resources.files("dpselect").joinpath("py.typed").is_file()


FAMILIES = [
    *(member for name in dps.__all__ if inspect.isclass(member := getattr(dps, name)) and hasattr(member, "pmf")),
    *(getattr(dps.unsafe, name) for name in dps.unsafe.__all__),
]
FAMILIES.remove(dps.Mechanism)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_a_mechanism_documents_its_privacy_cost_example_and_references(family):
    headings = [line.strip() for line in inspect.getdoc(family).splitlines() if line.strip().endswith(":")]
    wanted = [heading for heading in headings if heading in {"Privacy:", "Cost:", "Example:", "References:"}]
    assert wanted == ["Privacy:", "Cost:", "Example:", "References:"]
    assert ">>>" in family.__doc__
    for method in (family.pmf, family.select, family.guarantee):
        assert inspect.getdoc(method)


@pytest.mark.parametrize("name", sorted(PUBLIC - {"__version__", "MECHANISMS"}))
def test_every_public_name_is_documented(name):
    assert inspect.getdoc(getattr(dps, name))


# --- Expected errors --------------------------------------------------------------------------------------

rng = np.random.default_rng(33)
SCORES, WIDTHS, PUBLIC_NUMBERS = (
    rng.normal(size=(5, 7)),
    rng.uniform(0.1, 1.0, (5, 7)),
    rng.normal(size=(5, 7)),
)


def direct(mechanism, scores, sensitivities, power, **public):
    """Return the sum by its definition, row by row."""
    probabilities = mechanism.pmf(scores, sensitivities, **public)
    return sum(p * (max(scores) - q) ** power for p, q in zip(probabilities, scores, strict=True))


@pytest.mark.parametrize("power", [2, 1, 0.5, 3.7])
def test_expected_errors_are_sums_over_the_candidates(power):
    mechanism = dps.NoisyMax(epsilon=2.0)
    found = dps.expected_error(mechanism, SCORES, WIDTHS, power)
    rows = [direct(mechanism, *row, power) for row in zip(SCORES, WIDTHS, strict=True)]
    assert found.shape == (5,)
    assert found == pytest.approx(rows, rel=1e-13)
    assert dps.expected_error(mechanism, SCORES[0], WIDTHS[0], power=power) == pytest.approx(rows[0], rel=1e-13)


def test_the_expected_error_of_a_random_pick_is_known():
    assert dps.expected_error(dps.Uniform(), [0.0, 1.0, 3.0], 1.0) == pytest.approx((9 + 4 + 0) / 3, rel=1e-15)
    assert dps.expected_error(dps.Uniform(), [0.0, 1.0, 3.0], 1.0, power=1) == pytest.approx(5 / 3, rel=1e-15)
    assert dps.expected_error(dps.RandomizedResponse(epsilon=np.log(3)), [0.0, 2.0], 1.0, 1) == pytest.approx(0.5)


def test_ragged_and_arrow_rows_have_the_same_expected_errors_as_dense_ones():
    mechanism = dps.GEM(epsilon=2.0)
    lengths = [3, 7, 1, 5, 2]
    rows = [scores[:n] for scores, n in zip(SCORES, lengths, strict=True)]
    widths = [numbers[:n] for numbers, n in zip(WIDTHS, lengths, strict=True)]
    exact = [direct(mechanism, q, d, 2) for q, d in zip(rows, widths, strict=True)]
    flat, bounds = np.concatenate(rows), np.r_[0, np.cumsum(lengths)]
    assert dps.expected_error(mechanism, (flat, bounds), np.concatenate(widths)) == pytest.approx(exact, rel=1e-13)
    for kind in (pa.list_(pa.float64()), pa.large_list(pa.float64())):
        column = pa.array([row.tolist() for row in [rows[0], *rows]], kind).slice(1)
        sensitivities = pa.array([row.tolist() for row in widths], kind)
        assert dps.expected_error(mechanism, column, sensitivities) == pytest.approx(exact, rel=1e-13)
    assert dps.expected_error(mechanism, (flat, bounds), 1.0, 1).shape == (5,)


def test_errors_are_measured_on_the_scores_and_not_on_offsets_or_anchors():
    for mechanism, name in (
        (dps.NoisyMax(epsilon=3.0), "offsets"),
        (dps.StandardizedNoisyMax(epsilon=3.0), "anchors"),
    ):
        found = dps.expected_error(mechanism, SCORES, WIDTHS, **{name: PUBLIC_NUMBERS})
        rows = zip(SCORES, WIDTHS, PUBLIC_NUMBERS, strict=True)
        exact = [direct(mechanism, q, d, 2, **{name: public}) for q, d, public in rows]
        assert found == pytest.approx(exact, rel=1e-13)


def test_expected_errors_broadcast_like_probabilities():
    found = dps.expected_error(dps.GEM(epsilon=1.0), SCORES[:, None, :], WIDTHS[:2])
    assert found.shape == (5, 2)
    assert found[3, 1] == pytest.approx(direct(dps.GEM(epsilon=1.0), SCORES[3], WIDTHS[1], 2), rel=1e-13)
    offsets = rng.normal(size=(4, 1, 7))
    wide = dps.expected_error(dps.GEM(epsilon=1.0), SCORES, WIDTHS, offsets=offsets)
    assert wide.shape == (4, 5)
    assert wide[2, 3] == pytest.approx(
        direct(dps.GEM(epsilon=1.0), SCORES[3], WIDTHS[3], 2, offsets=offsets[2, 0]), rel=1e-13
    )


def test_narrow_scores_have_the_errors_of_wide_ones():
    narrow = SCORES.astype(np.float16)
    wide = dps.expected_error(dps.GEM(epsilon=1.0), narrow.astype(float), WIDTHS)
    assert (dps.expected_error(dps.GEM(epsilon=1.0), narrow, WIDTHS) == wide).all()


@pytest.mark.parametrize("name", ["ExponentialMechanism", "PermuteAndFlip", "ReportNoisyMax", "TiltedNoisyMax"])
def test_who_looks_for_a_mechanism_by_another_name_is_told_its_name_here(name):
    with pytest.raises(AttributeError, match=f"{name}.*: it is NoisyMax") as caught:
        getattr(dps, name)
    assert dps.NoisyMax.__name__ in str(caught.value)
    with pytest.raises(AttributeError, match=r"no attribute 'nothing'$"):
        _ = dps.nothing
