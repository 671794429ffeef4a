"""Kept results: a later run reuses what an earlier one has computed, even if that one was interrupted.

A task's result is kept under a hash of its label and effort, in a folder named by a hash of all code it can reach:
dpselect, and the modules of the experiments that the task's module imports, directly or indirectly. If any of them
changes, the result is computed again. Code that only draws or reports does not count.
"""

import ast
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

import dpselect
from experiments.experiment import Effort, Experiment, Task
from experiments.files import replacing

__all__ = ["Parts"]

PRESENTATION = frozenset(f"experiments.{name}" for name in ("drawing", "experiment", "ledger"))
"""Modules that tasks import and that compute nothing."""


@dataclass
class Parts:
    """The kept results of one experiment at one effort."""

    directory: Path
    effort: Effort
    drawing: str
    """A hash of the drawing code."""
    reused: int = 0

    @classmethod
    def of(cls, experiment: Experiment, effort: Effort, output: Path) -> "Parts":
        """Return the experiment's kept results, and remove those of older code."""
        home = output / "parts" / experiment.name
        module = getattr(experiment.plan, "func", experiment.plan).__module__
        directory = home / _code_hash(module)
        for old in home.glob("*/"):
            if old != directory:
                shutil.rmtree(old)
        return cls(directory, effort, _code_hash(module, drawing=True))

    def table(self, task: Task) -> pa.Table:
        """Return a task's result, from an earlier run if possible."""
        # The formats of figures change no number.
        key = repr((task.table, task.label, task.inputs, replace(self.effort, description="", formats=())))
        path = self.directory / f"{sha256(key.encode()).hexdigest()[:24]}.parquet"
        if path.exists():
            self.reused += 1
            return parquet.read_table(path)
        table = task.compute()
        with replacing(path) as temporary:
            parquet.write_table(table, temporary)
        return table

    def figure(self, tables: Iterable[Path], pictures: Iterable[Path]) -> "KeptFigure":
        """Return the state of the experiment's figure. Its tables must be written."""
        digest = sha256(self.drawing.encode())
        for table in tables:
            digest.update(table.read_bytes())
        return KeptFigure(self.directory.parent / "figure.txt", digest.hexdigest(), tuple(pictures))


@dataclass(frozen=True)
class KeptFigure:
    """Whether a figure has already been drawn from the same tables by the same code."""

    mark: Path
    digest: str
    pictures: Sequence[Path]

    def is_current(self) -> bool:
        """Return whether the pictures exist and nothing they depend on has changed."""
        known = self.mark.exists() and self.mark.read_text(encoding="utf-8") == self.digest
        return known and all(picture.exists() for picture in self.pictures)

    def remember(self) -> None:
        """Record that the pictures were drawn."""
        with replacing(self.mark) as temporary:
            temporary.write_text(self.digest, encoding="utf-8")


@cache
def _code_hash(module: str, *, drawing: bool = False) -> str:
    library = Path(dpselect.__file__).parent
    packages = ("matplotlib",) if drawing else ("numpy", "numba")
    digest = sha256(repr([version(package) for package in packages]).encode())
    modules = [_file(name) for name in _reachable(module) | (PRESENTATION if drawing else set())]
    for file in sorted([*modules, *(() if drawing else library.rglob("*.py"))]):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:24]


def _reachable(module: str) -> set[str]:
    """Return the module and all modules of the experiments that it imports, directly or indirectly."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(_imports(name))
    return found


@cache
def _imports(module: str) -> Sequence[str]:
    """Return what a module imports directly."""
    found: list[str] = []
    for node in ast.walk(ast.parse(_file(module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "experiments":
            # The imported name may be a module or an attribute of one.
            candidates = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            found.extend(name for name in candidates if _is_computing(name))
    return found


def _is_computing(name: str) -> bool:
    parent = name.rpartition(".")[0]
    return (
        name not in PRESENTATION
        and name != "experiments"
        and (parent == "experiments" or _is_package(parent))
        and find_spec(name) is not None
    )


def _is_package(name: str) -> bool:
    spec = find_spec(name)
    return spec is not None and spec.submodule_search_locations is not None


def _file(module: str) -> Path:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ValueError(f"module {module} has no source file")
    return Path(spec.origin)
