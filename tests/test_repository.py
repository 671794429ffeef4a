"""The make targets, scripts and Python versions that contributors and CI use must exist."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WORKFLOW = (ROOT / ".github/workflows/ci.yml").read_text("utf-8")
HOOKS = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
TARGETS = set(re.search(r"^\.PHONY: (.*)$", MAKEFILE, flags=re.MULTILINE)[1].split())

CALLERS = [
    *(".ci/run", ".github/workflows/ci.yml", ".pre-commit-config.yaml"),
    *(".github/PULL_REQUEST_TEMPLATE.md", "README.md", "CONTRIBUTING.md", "RELEASING.md"),
]


def make_targets(text):
    """Return the word after ``make`` at the start of a line, after a colon or after a backtick."""
    return set(re.findall(r"(?:^\s*|: |`)make ([a-z-]+)", text, flags=re.MULTILINE))


@pytest.mark.parametrize("name", CALLERS)
def test_only_make_targets_that_exist_are_called(name):
    assert make_targets((ROOT / name).read_text("utf-8")) <= TARGETS


def test_ci_checks_and_tests():
    assert {"check", "test"} <= make_targets((ROOT / ".ci/run").read_text("utf-8"))


def test_the_workflow_runs_the_script_that_ci_runs():
    commands = re.findall(r"^\s+run: (.*)$", WORKFLOW, flags=re.MULTILINE)
    assert ".ci/run" in commands
    assert os.access(ROOT / ".ci/run", os.X_OK)


def test_the_hooks_run_make_check_and_download_nothing():
    entries = re.findall(r"^\s+entry: (.*)$", HOOKS, flags=re.MULTILINE)
    assert entries[-1] == "make check"
    assert set(re.findall(r"- repo: (.*)$", HOOKS, flags=re.MULTILINE)) == {"local"}


def test_the_workflow_covers_every_version_of_python_that_the_package_claims_to_support():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    claimed = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    tested = re.findall(r'"(3\.\d+)"', re.search(r"python: \[(.*)\]", WORKFLOW)[1])
    assert tested == claimed
    assert project["requires-python"] == f">={claimed[0]}"


def test_make_help_shows_every_target_once():
    command = ["make", "--no-print-directory", "help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603
    shown = [line.split()[1] for line in done.stdout.splitlines()]
    assert sorted(shown) == sorted(TARGETS)
