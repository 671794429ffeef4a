"""The package as a whole: its names, its imports, its documentation."""

import inspect
import subprocess
import sys
from importlib import metadata, resources

import pytest

import dpselect as dps
from dpselect.extras import install_command

PUBLIC = {
    *(
        "HeterogeneousNoisyMax",
        "NoisyMax",
        "GEM",
        "ModifiedGEM",
        "RandomStopping",
        "CombinedGEM",
    ),
    *("RandomizedResponse", "Uniform", "unsafe", "MECHANISMS", "Mechanism", "Guarantee", "Randomness"),
    *("expected_error", "probability_of_best"),
    *("TopShare", "lists", "select_list"),
    *("TopK", "accounting", "auditing", "correlation", "__version__"),
    *("advice", "pools", "select_table", "tuning"),
}


def test_the_public_names_are_exactly_these_and_no_more_than_thirty():
    assert set(dps.__all__) == PUBLIC
    assert len(PUBLIC) == len(dps.__all__) <= 30
    for name in dps.__all__:
        assert hasattr(dps, name)
    assert sorted(dps.unsafe.__all__) == ["NaiveHeterogeneousNoisyMax"]


def test_importing_loads_neither_the_compiler_nor_any_heavy_library():
    script = (
        "import sys, dpselect; "
        "heavy = {'numba', 'llvmlite', 'scipy', 'matplotlib', 'pyarrow', 'pandas', 'mpmath', 'dp_accounting', "
        "'opendp', 'tqdm', 'http', 'polars', 'duckdb'}; "
        "print(sorted(heavy & {name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "[]"


def test_a_pick_from_arrays_does_not_load_arrow():
    script = (
        "import sys, dpselect as dps; dps.GEM(epsilon=1.0).select([1.0, 2.0], 1.0); print('pyarrow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "False"


WITHOUT = "import sys\nfor name in ('pyarrow', 'scipy', 'tqdm', 'duckdb'):\n    sys.modules[name] = None\n"


def test_every_mechanism_picks_where_only_numpy_and_the_compiler_are_installed():
    script = WITHOUT + (
        "import dpselect as dps\n"
        "for name, make in dps.MECHANISMS.items():\n"
        "    mechanism = make(epsilon=1.0)\n"
        "    assert 0 <= mechanism.select([0.0, 1.0, 2.0], [1.0, 0.5, 0.25]) < 3\n"
        "    assert abs(mechanism.pmf([0.0, 1.0, 2.0], [1.0, 0.5, 0.25]).sum() - 1) < 1e-12\n"
        "dps.auditing.audit(dps.GEM(epsilon=1.0), [1.0, 2.0], restarts=2)\n"
        "print(len(dps.MECHANISMS))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(len(dps.MECHANISMS))


@pytest.mark.parametrize("module", ["dpselect.engines.arrow", "dpselect.tables.stored", "dpselect.release"])
def test_tables_say_how_to_install_arrow(module):
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", f"{WITHOUT}import {module}"], capture_output=True, text=True, check=False
    )
    assert "this needs pyarrow, which is not installed: pip install 'dpselect[arrow]'" in done.stderr


def test_the_command_line_says_how_to_install_what_it_needs():
    script = f"{WITHOUT}from dpselect.cli import main\nsys.exit(main(['select', 'scores.csv', '--epsilon', '1']))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 5
    assert done.stderr == ("dpselect: this needs pyarrow, which is not installed: pip install 'dpselect[cli]'\n")


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


@pytest.mark.parametrize("name", ["ExponentialMechanism", "PermuteAndFlip", "ReportNoisyMax", "TiltedNoisyMax"])
def test_other_names_of_mechanisms_raise_an_error_with_the_name_to_use(name):
    with pytest.raises(AttributeError, match=f"{name}.*: it is NoisyMax") as caught:
        getattr(dps, name)
    assert dps.NoisyMax.__name__ in str(caught.value)
    with pytest.raises(AttributeError, match=r"no attribute 'nothing'$"):
        _ = dps.nothing


@pytest.mark.parametrize(
    ("library", "extra", "call"),
    [
        ("dp_accounting", "accounting", "accounting.total_guarantee([promise] * 2, delta=1e-6)"),
        ("dp_accounting", "accounting", "accounting.to_pld(promise)"),
    ],
)
def test_a_missing_library_raises_an_error_with_the_extra_to_install(library, extra, call):
    script = (
        f"import sys; sys.modules[{library!r}] = None\n"
        "import dpselect as dps; from dpselect import accounting\n"
        f"promise = dps.GEM(epsilon=1.0).guarantee\n"
        f"try:\n    {call}\nexcept ModuleNotFoundError as missing:\n    print(missing)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert install_command(extra) in done.stdout
    assert library in done.stdout
