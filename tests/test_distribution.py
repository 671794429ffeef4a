"""Wheel and source distribution: they build, pass an index's checks, and work in a clean environment."""

import csv
import email
import os
import re
import runpy
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from dpselect import extras

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
README = (ROOT / "README.md").read_text("utf-8")
RELATIVE = re.compile(r"\]\((?!https?://|#)")


def prose(text):
    """Return a text without its code."""
    return re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)


def run(*command, **settings):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **settings)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build the source distribution, and the wheel from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT))
    [wheel], [source] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, source


@pytest.fixture(scope="module")
def described(built):
    with zipfile.ZipFile(built[0]) as wheel:
        [name] = [name for name in wheel.namelist() if name.endswith("METADATA")]
        return email.message_from_bytes(wheel.read(name))


@pytest.mark.xdist_group("distribution")
def test_both_pass_the_checks_of_an_index(built):
    run(sys.executable, "-m", "twine", "check", "--strict", *map(str, built))


@pytest.mark.xdist_group("distribution")
def test_the_wheel_holds_the_package_and_the_source_distribution_what_builds_and_tests_it(built):
    with zipfile.ZipFile(built[0]) as wheel:
        names = set(wheel.namelist())
    package = {p.relative_to(ROOT / "src").as_posix() for p in (ROOT / "src").rglob("*") if p.is_file()}
    package = {name for name in package if "__pycache__" not in name}
    assert {name for name in names if not name.split("/")[0].endswith(".dist-info")} == package
    with tarfile.open(built[1]) as source:
        held = {name.partition("/")[2] for name in source.getnames()}
    assert {"pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "tests/test_distribution.py"} <= held


@pytest.mark.xdist_group("distribution")
def test_the_description_for_an_index_has_no_link_that_needs_the_repository(described):
    text = described.get_payload(decode=True).decode()
    assert described["Description-Content-Type"] == "text/markdown"
    assert "dps.select_table(" in text
    assert RELATIVE.search(prose(README))
    assert not RELATIVE.search(prose(text))
    assert re.findall(r"```python\n.*?```", text, re.DOTALL) == re.findall(r"```python\n.*?```", README, re.DOTALL)


def test_links_lead_to_the_repository_once_its_address_is_known():
    pytest.importorskip("hatchling")
    with_links = runpy.run_path(str(ROOT / "hatch_build.py"))["with_links"]
    others = "[others](https://example.org), [below](#below) and `[code](epsilon=1)`.\n```\n[name](epsilon=1)\n```"
    text = f"See [the guide](docs/a.md), ![a picture](docs/b.png), {others}"
    assert with_links(text, "https://example.org/us/") == (
        "See [the guide](https://example.org/us/blob/main/docs/a.md), "
        f"![a picture](https://example.org/us/raw/main/docs/b.png), {others}"
    )
    assert with_links(text, None) == f"See the guide (`docs/a.md`), *a picture*, {others}"


def test_links_of_the_readme_exist():
    paths = re.findall(r"\]\((?!https?://|#)([^)#\s]+)", prose(README))
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.xdist_group("distribution")
def test_the_metadata_are_those_of_the_project(described):
    assert described["License-Expression"] == "Apache-2.0"
    assert described["Requires-Python"] == PROJECT["requires-python"]
    assert set(described.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])
    assert {"Typing :: Typed", "Environment :: Console"} <= set(described.get_all("Classifier"))
    assert not any(name.startswith("License ::") for name in described.get_all("Classifier"))  # it is an expression


@pytest.mark.xdist_group("distribution")
def test_the_wheel_works_in_a_clean_environment(built, tmp_path):
    venv.create(tmp_path / "venv", with_pip=False)
    python = str(tmp_path / "venv" / "bin" / "python")
    install = ["install", "--quiet", "--no-deps", "--no-index", str(built[0])]
    run(sys.executable, "-m", "pip", "--python", python, *install)
    # Dependencies come from here, so that the test needs no network; this directory's own .pth files are not read.
    settings = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    settings |= {"PYTHONPATH": sysconfig.get_path("purelib"), "PYTHONDONTWRITEBYTECODE": "1"}
    example = re.search(r"```python\n(.*?)```", README, flags=re.DOTALL)[1]
    script = f"import dpselect; print(dpselect.__file__)\n{example}"
    done = run(python, "-W", "error", "-c", script, env=settings, cwd=tmp_path)
    assert done.stdout.startswith(str(tmp_path / "venv"))
    command = str(tmp_path / "venv" / "bin" / "dpselect")
    (tmp_path / "scores.csv").write_text("user,candidate,score,sensitivity\nann,tea,0.9,0.1\n")
    run(command, "select", "scores.csv", "--epsilon", "1", "-o", "picks.csv", env=settings, cwd=tmp_path)
    with (tmp_path / "picks.csv").open(newline="") as file:
        assert list(csv.DictReader(file)) == [{"user": "ann", "candidate": "tea"}]


@pytest.mark.parametrize("package", ["llvmlite", "numba"])
def test_the_compiler_is_within_the_versions_that_are_declared_as_tested(package):
    [wanted] = [Requirement(text) for text in PROJECT["dependencies"] if Requirement(text).name == package]
    assert {limit.operator for limit in wanted.specifier} == {">=", "<"}
    assert wanted.specifier.contains(version(package)), f"test {package} {version(package)}, then raise the cap"


@pytest.mark.parametrize("extra", ["arrow", "cli", "accounting", "opendp", "postgres"])
def test_an_install_hint_names_what_the_extra_needs(extra):
    def needed(name):
        for requirement in PROJECT["optional-dependencies"][name]:
            inner = re.fullmatch(r"dpselect\[(.*)\]", requirement)
            yield from needed(inner[1]) if inner else [requirement]

    wanted = [f"'{requirement}'" for requirement in sorted(needed(extra))]
    assert extras.install_command(extra) == " ".join(["pip install", *wanted])
