"""The layout of the tests: they mirror the sources, and share code only through tests/support."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROOT = TESTS.parent
SUPPORT = TESTS / "support"

ACROSS = {
    *(
        "test_bad_input",
        "test_citation",
        "test_contract",
        "test_documentation",
        "test_house",
        "test_install",
        "test_package",
        "test_peers",
    ),
    *(
        "test_distribution",
        "test_recorded_picks",
        "test_repository",
        "test_site",
        "test_startup",
        "test_statistics",
        "test_stream_format",
    ),
}
"""Tests of the package as a whole."""

MODULES = sorted(path for path in TESTS.rglob("test_*.py") if SUPPORT not in path.parents)


def source_of(path):
    """Return the folder whose modules a test module is about."""
    folder = path.parent.relative_to(TESTS)
    return ROOT / folder if folder.parts[:1] == ("experiments",) else ROOT / "src" / "dpselect" / folder


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(TESTS)))
def test_a_test_module_has_a_place_in_the_sources(path):
    assert source_of(path).is_dir()
    if path.parent == TESTS and path.stem not in ACROSS:
        name = path.stem.removeprefix("test_")
        assert (source_of(path) / f"{name}.py").exists() or (source_of(path) / name).is_dir()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(TESTS)))
def test_a_test_module_imports_no_other_test_module(path):
    tree = ast.parse(path.read_text("utf-8"))
    imported = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    imported += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not [name for name in imported if name.rpartition(".")[2].startswith("test_")]


def test_every_package_of_the_sources_has_tests():
    packages = {path.parent.name for path in (ROOT / "src" / "dpselect").glob("*/__init__.py")}
    assert packages <= {path.parent.name for path in MODULES} | {path.parent.parent.name for path in MODULES}
