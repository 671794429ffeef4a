"""Starting up: small calls compile nothing; kernels are compiled once, announced, and kept where that is safe."""

import os
import re
import shutil
import subprocess
import sys
import time
from ast import literal_eval
from itertools import chain
from pathlib import Path

import pytest

import dpselect
from dpselect.kernels import caches

SOURCE = Path(dpselect.__file__).parent
SCRIPT = """
import logging, numpy as np, dpselect as dps
compiled = []
logging.getLogger("dpselect").setLevel("INFO")
logging.getLogger("dpselect").addFilter(lambda record: compiled.append(record.getMessage()))
from dpselect.kernels import caches
print(dps.__file__)
print(caches.cache_directory())
scores = np.broadcast_to([0.0, 1.0, 2.0], (200, 3))
print(*dps.Uniform().select(scores, 1.0, randomness=dps.Randomness.seeded(5)))
print(compiled)
"""
SMALL = """
import sys, dpselect as dps
assert 0 <= dps.GEM(epsilon=1.0).select([0.0, 1.0, 2.0], [1.0, 0.5, 0.25]) < 3
assert abs(dps.GEM(epsilon=1.0).pmf([0.0, 1.0, 2.0], [1.0, 0.5, 0.25]).sum() - 1) < 1e-12
print("numba" in sys.modules)
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


def start(package, home, script=SCRIPT, warnings="error", prefix=(), **settings):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "PYTHON"))}
    environment |= {"PYTHONPATH": str(package.parent), "XDG_CACHE_HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= settings
    command = [*prefix, sys.executable, "-W", warnings, "-c", script]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)  # noqa: S603


def finish(process, package, warnings=""):
    """Return the directory of the cached kernels, the picks, and what was compiled, without reminders."""
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert warnings in errors
    assert warnings or not errors
    file, directory, picks, compiled = output.splitlines()
    assert Path(file).parent == package
    return directory, picks, [line for line in literal_eval(compiled) if not line.startswith("still ")]


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
    directories, picks, compiled = zip(*(finish(process, copied) for process in processes), strict=True)
    [directory] = set(directories)
    assert set(picks) == {expected_picks()}
    [message] = chain.from_iterable(compiled)  # one of them has compiled it, the others have waited
    assert re.fullmatch(r"compiling samplers\.uniform\.select_rows for about [1-9] s, only this time", message)
    assert Path(directory).parent == copied / "kernels" / "__pycache__"
    assert not (tmp_path / "home").exists()
    kept = times(directory)
    assert any(path.suffix == ".nbi" for path in kept)
    assert finish(start(copied, tmp_path / "home"), copied) == (directory, expected_picks(), [])
    assert times(directory) == kept


def test_kept_kernels_are_loaded_without_most_of_the_compiler_and_find_what_they_need():
    """A process ends at once if a kernel calls what is not there."""
    script = """
import sys, numpy as np, dpselect as dps
for mechanism in (dps.HeterogeneousNoisyMax(1.0), dps.NoisyMax(1.0)):
    mechanism.select(np.zeros((200, 100)), np.linspace(1.0, 2.0, 100))
print("numba.core" in sys.modules, "numba.np.arraymath" in sys.modules)
dps.compile()
dps.compile(dps.NoisyMax(1.0, noise="laplace"), dps.TopK(dps.GEM(1.0), 2))
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DPSELECT")}
    for compiles in (True, False):
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=600, env=environment
        )
        assert compiles or (done.stdout, done.stderr) == ("True False\n", "")


def test_a_lock_that_is_never_released_is_waited_for_only_so_long(copied, tmp_path):
    hold = (
        "import fcntl, time\nfrom pathlib import Path\nfrom dpselect.kernels import caches, compiler\n"
        "from dpselect.kernels.samplers import uniform\n"
        "compiler.LONGEST_WAIT, compiler.seconds_said = 1.0, lambda _: 0.1\n"
        "held = (caches.cache_directory() / f'{caches.index_name(uniform.select_rows.function)}.lock').open('w')\n"
        "fcntl.flock(held, fcntl.LOCK_EX)\n"
    )
    output, _ = start(copied, tmp_path / "home", hold + SCRIPT).communicate(timeout=300)
    *_, picks, compiled = output.splitlines()
    assert picks == expected_picks()
    assert literal_eval(compiled) == [
        "still compiling samplers.uniform.select_rows, here or in another process",
        "compiling samplers.uniform.select_rows for about 0.1 s, only this time",
    ]


def test_kernels_beside_read_only_sources_are_kept_in_the_users_cache(copied, tmp_path):
    forbid = FORBID.format(forbidden="'__pycache__' in self.parts")
    directory, picks, _ = finish(start(copied, tmp_path / "home", forbid + SCRIPT), copied)
    assert Path(directory).parent == tmp_path / "home" / "dpselect"
    assert list(Path(directory).rglob("*.nbi"))
    assert picks == expected_picks()
    assert not (copied / "kernels" / "__pycache__").exists()


def test_kernels_are_compiled_without_being_kept_where_nothing_can_be_written(copied, tmp_path):
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    forbid = FORBID.format(forbidden="'__pycache__' in self.parts")
    process = start(copied, in_the_way / "home", forbid + SCRIPT, warnings="default")
    directory, picks, [message] = finish(
        process, copied, warnings="RuntimeWarning: compiled kernels cannot be kept"
    )
    assert directory == "None"
    assert picks == expected_picks()
    assert message.endswith("in every process")
    assert not list(tmp_path.rglob("*.nbi"))


def test_a_small_call_compiles_nothing_and_needs_no_directory(copied, tmp_path):
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    output, errors = start(copied, in_the_way / "home", SMALL).communicate(timeout=300)
    assert (output, errors) == ("False\n", "")
    assert not list(copied.rglob("kernels-*"))


def test_a_directory_can_be_named(copied, tmp_path):
    named = {"DPSELECT_CACHE": str(tmp_path / "named")}
    directory, _, compiled = finish(start(copied, tmp_path / "home", **named), copied)
    assert Path(directory).parent == tmp_path / "named"
    assert len(compiled) == 1
    assert finish(start(copied, tmp_path / "home", **named), copied)[2] == []
    assert not list(copied.rglob("*.nbi"))


@pytest.mark.skipif(os.name == "nt", reason="permissions")
def test_kernels_compiled_into_a_read_only_image_are_loaded_by_users_without_a_home(copied, tmp_path):
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    ahead = "import dpselect as dps\ndps.compile('uniform')"
    output, errors = start(copied, tmp_path / "home", ahead).communicate(timeout=300)
    assert output == ""
    assert all(re.match("dpselect: (still )?compiling ", line) for line in errors.splitlines())
    tree = [copied.parent, *copied.parent.rglob("*")]
    for path in tree:
        path.chmod(path.stat().st_mode & ~0o222)
    root = hasattr(os, "getuid") and os.getuid() == 0
    powerless = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if root else []  # root may write anywhere
    if root and not shutil.which("setpriv"):
        pytest.skip("nothing is read-only for root")
    try:
        process = start(copied, in_the_way / "cache", SCRIPT, prefix=powerless, HOME=str(in_the_way))
        directory, picks, compiled = finish(process, copied)
    finally:
        for path in tree:
            path.chmod(path.stat().st_mode | 0o200)
    assert (directory, picks, compiled) == ("None", expected_picks(), [])


def cache_directory():
    """Return the directory as a process that has just started finds it."""
    caches.digest.cache_clear()
    caches.directories.cache_clear()
    return caches.cache_directory()


@pytest.fixture(autouse=True)
def found_anew():
    yield
    caches.digest.cache_clear()
    caches.directories.cache_clear()


def directory_of(monkeypatch, package, home):
    monkeypatch.setattr(caches, "__file__", str(package / "kernels" / "caches.py"))
    monkeypatch.setattr(caches, "LOADED", time.time() + 1)
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    return cache_directory()


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
    assert cache_directory() == kept
    kept.chmod(0o500)
    monkeypatch.setattr("os.access", lambda *_: False)
    assert cache_directory() is None


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_directory_that_others_can_write_to_is_passed_over(copied, tmp_path, monkeypatch, mode):
    kept = directory_of(monkeypatch, copied, tmp_path)
    kept.chmod(mode)
    assert directory_of(monkeypatch, copied, tmp_path).parent == tmp_path / "dpselect"
