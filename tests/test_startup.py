"""Starting up: compiled kernels are cached where that is safe, and any number of processes may start at once."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dpselect
from dpselect.kernels import compilation

SOURCE = Path(dpselect.__file__).parent
SCRIPT = """
import numpy as np, dpselect as dps
from dpselect.kernels import compilation
print(dps.__file__)
print(compilation.cache_directory())
scores = np.broadcast_to([0.0, 1.0, 2.0], (200, 3))
print(*dps.Uniform().select(scores, 1.0, randomness=dps.Randomness.seeded(5)))
"""
FORBID = """
import importlib.util
import os
from pathlib import Path
genuine = Path.mkdir
def mkdir(self, *arguments, **settings):
    if {forbidden}:
        raise PermissionError(13, "Permission denied", str(self))
    return genuine(self, *arguments, **settings)
Path.mkdir = mkdir
"""


@pytest.fixture
def copied(tmp_path):
    """Copy the package without compiled code."""
    target = tmp_path / "site" / "dpselect"
    shutil.copytree(SOURCE, target, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def start(package, home, script=SCRIPT):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "PYTHON"))}
    environment |= {"PYTHONPATH": str(package.parent), "XDG_CACHE_HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-W", "error", "-c", script]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)  # noqa: S603


def finish(process, package):
    """Return the directory of the cached kernels, and the picks."""
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert errors == ""
    file, directory, picks = output.splitlines()
    assert Path(file).parent == package
    return directory, picks


def expected_picks():
    """Return this process's picks: those of another installation of the same sources."""
    import numpy as np  # noqa: PLC0415

    scores = np.broadcast_to([0.0, 1.0, 2.0], (200, 3))
    mechanism, seed = dpselect.Uniform(), dpselect.Randomness.seeded(5)
    return " ".join(str(pick) for pick in mechanism.select(scores, 1.0, randomness=seed))


def times(directory):
    return {path: path.stat().st_mtime_ns for path in Path(directory).rglob("*") if path.is_file()}


def test_several_processes_may_start_at_once_without_compiled_kernels(copied, tmp_path):
    processes = [start(copied, tmp_path / "home") for _ in range(4)]
    [(directory, picks)] = {finish(process, copied) for process in processes}
    assert picks == expected_picks()
    assert Path(directory).parent == copied / "kernels" / "__pycache__"
    assert not (tmp_path / "home").exists()
    kept = times(directory)
    assert any(path.suffix == ".nbi" for path in kept)
    assert finish(start(copied, tmp_path / "home"), copied) == (directory, picks)
    assert times(directory) == kept  # the later process has compiled nothing


def test_kernels_beside_read_only_sources_are_kept_in_the_users_cache(copied, tmp_path):
    forbid = FORBID.format(forbidden="'__pycache__' in self.parts")
    directory, picks = finish(start(copied, tmp_path / "home", forbid + SCRIPT), copied)
    assert Path(directory).parent == tmp_path / "home" / "dpselect"
    assert list(Path(directory).rglob("*.nbi"))
    assert picks == expected_picks()
    assert not (copied / "kernels" / "__pycache__").exists()


def test_kernels_are_compiled_without_being_kept_where_nothing_can_be_written(copied, tmp_path):
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    forbid = FORBID.format(forbidden="'__pycache__' in self.parts")
    directory, picks = finish(start(copied, in_the_way / "home", forbid + SCRIPT), copied)
    assert directory == "None"
    assert picks == expected_picks()
    assert not list(tmp_path.rglob("*.nbi"))


def directory_of(monkeypatch, package, home):
    monkeypatch.setattr(compilation, "__file__", str(package / "kernels" / "compilation.py"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    return compilation.cache_directory.__wrapped__()


def test_a_change_to_any_kernel_starts_a_new_cache(copied, tmp_path, monkeypatch):
    first = directory_of(monkeypatch, copied, tmp_path)
    assert directory_of(monkeypatch, copied, tmp_path) == first
    names = {first}
    for source in sorted((copied / "kernels").glob("*.py")):
        source.write_bytes(source.read_bytes() + b"\n")
        names.add(directory_of(monkeypatch, copied, tmp_path))
    (copied / "kernels" / "gaps.py").rename(copied / "kernels" / "chasms.py")
    names.add(directory_of(monkeypatch, copied, tmp_path))
    assert len(names) == len(list((copied / "kernels").glob("*.py"))) + 2
    (copied / "candidates.py").write_text("")
    assert directory_of(monkeypatch, copied, tmp_path) in names


def test_a_directory_that_cannot_be_written_to_is_passed_over(copied, tmp_path, monkeypatch):
    beside = directory_of(monkeypatch, copied, tmp_path / "home")
    assert beside.parent == copied / "kernels" / "__pycache__"
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != beside)
    assert directory_of(monkeypatch, copied, tmp_path / "home") == tmp_path / "home" / "dpselect" / beside.name
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    assert directory_of(monkeypatch, copied, tmp_path / "home") is None


def test_a_relative_or_missing_cache_setting_falls_back_to_the_home_directory(copied, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(os, "access", lambda path, _: "__pycache__" not in Path(path).parts)
    assert directory_of(monkeypatch, copied, "").parent == tmp_path / ".cache" / "dpselect"


def test_a_user_without_a_home_directory_can_select(copied, tmp_path, monkeypatch):
    def nobody(_):
        raise KeyError("no such user")

    kept = directory_of(monkeypatch, copied, tmp_path)
    monkeypatch.setattr("pwd.getpwuid", nobody)
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert compilation.cache_directory.__wrapped__() == kept
    kept.chmod(0o500)
    monkeypatch.setattr("os.access", lambda *_: False)
    assert compilation.cache_directory.__wrapped__() is None


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_directory_that_others_can_write_to_is_passed_over(copied, tmp_path, monkeypatch, mode):
    kept = directory_of(monkeypatch, copied, tmp_path)
    kept.chmod(mode)
    assert directory_of(monkeypatch, copied, tmp_path).parent == tmp_path / "dpselect"
