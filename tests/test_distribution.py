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
from importlib.metadata import files, requires, version
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


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """Install the wheel alone into a fresh environment."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=False)
    install = ["install", "--quiet", "--no-deps", "--no-index", str(built[0])]
    run(sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), *install)
    return folder


def brought_by(line, folder):
    """Link what a line such as ``pip install '.[cli]' pandas`` brings, and nothing else, into a folder.

    The packages are those of this environment, so that the test needs no network.
    """
    extra, others = re.fullmatch(r"pip install '\.\[(\w+)\]'(.*)", line).groups()
    todo, seen = [Requirement(f"dpselect[{extra}]"), *map(Requirement, others.split())], set()
    here = Path(sysconfig.get_path("purelib"))
    while todo:
        wanted = todo.pop()
        if str(wanted) in seen:
            continue
        seen.add(str(wanted))
        if wanted.name == "dpselect":
            lines = [
                *PROJECT["dependencies"],
                *(t for e in wanted.extras for t in PROJECT["optional-dependencies"][e]),
            ]
        else:
            lines = requires(wanted.name) or []
            for top in {file.parts[0] for file in files(wanted.name)} - {"..", "__pycache__"}:
                if not (folder / top).is_symlink():
                    (folder / top).symlink_to(here / top)
        extras = wanted.extras or {""}
        inner = map(Requirement, lines)
        todo += [r for r in inner if r.marker is None or any(r.marker.evaluate({"extra": e}) for e in extras)]
    return folder


@pytest.mark.xdist_group("distribution")
@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_what_follows_an_install_line_runs_in_an_environment_with_what_it_brings(page, installed, tmp_path):
    text = (ROOT / page).read_text("utf-8")
    blocks = re.findall(r"```(console|python)\n(.*?)```", text, flags=re.DOTALL)
    starts = [place for place, (_, block) in enumerate(blocks) if block.startswith("pip install")]
    assert starts[0] == 0
    for start in starts:
        line, *commands = blocks[start][1].splitlines()
        folder = tmp_path / str(start)
        folder.mkdir()
        settings = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        settings |= {"PYTHONPATH": str(brought_by(line, folder)), "PYTHONDONTWRITEBYTECODE": "1"}
        settings["PATH"] = f"{installed / 'bin'}{os.pathsep}{settings['PATH']}"
        run("bash", "-e", "-c", "\n".join(commands), env=settings, cwd=folder)
        code = "".join(block for kind, block in blocks[start + 1 :][:1] if kind == "python")
        done = run(
            "python",
            "-W",
            "error",
            "-c",
            f"import dpselect; print(dpselect.__file__)\n{code}",
            env=settings,
            cwd=folder,
        )
        assert done.stdout.startswith(str(installed))
    if page == "README.md":
        with (tmp_path / "0" / "picks.csv").open(newline="") as file:
            picks = {row["user"]: row["candidate"] for row in csv.DictReader(file)}
        assert set(picks) == {"ann", "bob"}
        assert set(picks.values()) <= {"tea", "rum"}


@pytest.mark.parametrize("package", ["llvmlite", "numba"])
def test_the_compiler_is_within_the_versions_that_are_declared_as_tested(package):
    [wanted] = [Requirement(text) for text in PROJECT["dependencies"] if Requirement(text).name == package]
    assert {limit.operator for limit in wanted.specifier} == {">=", "<"}
    assert wanted.specifier.contains(version(package)), f"test {package} {version(package)}, then raise the cap"


@pytest.mark.parametrize("extra", ["arrow", "cli", "accounting", "postgres"])
def test_an_install_hint_names_an_extra_and_needs_no_index_for_the_package_itself(extra):
    assert extras.install_command(extra) == f"pip install 'dpselect[{extra}]'"
    assert extra in PROJECT["optional-dependencies"]
    wanted = f"dpselect[{extra}]"
    done = run(sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "--no-deps", wanted)
    assert "Requirement already satisfied: dpselect" in done.stdout
