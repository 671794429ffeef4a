"""Mutants: the modules that guard money, each with one small mistake, run against their own tests.

    python tests/support/mutants.py                    # all modules below
    python tests/support/mutants.py amounts --every 5  # those with a word in their path; each fifth mutant

Prints the mutants that no test has noticed. Nothing is written: a mutant is imported in place of its module, in a
process that is forked when the libraries are loaded. Tests that start other processes do not see it there.
"""

import argparse
import ast
import contextlib
import copy
import importlib
import os
import signal
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECONDS = 900  # after which a mutant counts as noticed: it runs forever
TESTS = {
    "budget/amounts.py": "budget/test_units.py budget/test_amounts.py",
    "budget/ledger.py": "budget/test_units.py budget/test_amounts.py test_stream_format.py budget/test_ledger.py",
    "budget/records.py": "budget/test_records.py budget/test_units.py test_stream_format.py budget/test_ledger.py",
    "budget/databases.py": "budget/test_databases.py budget/test_ledger.py",
    "budget/fingerprints.py": "release/test_fingerprints.py budget/test_ledger.py",
    "budget/keys.py": "budget/test_keys.py budget/test_ledger.py",
    "release/payment.py": "release/test_fingerprints.py release/test_releases.py release/test_payment.py",
    "release/key_files.py": "release/test_fingerprints.py test_stream_format.py release/test_payment.py",
    "release/releases.py": "release/test_releases.py",
    "accounting/totals.py": "budget/test_amounts.py accounting/test_totals.py",
    "accounting/distributions.py": "accounting/test_distributions.py accounting/test_laplace_domination.py",
}
"""Modules, and the tests that must notice mistakes in them, the quickest first."""

SWAPS: dict[type, type] = {}
for pair in ("Lt LtE", "Gt GtE", "Eq NotEq", "Is IsNot", "In NotIn", "Add Sub", "Mult Div", "And Or"):
    first, second = (getattr(ast, name) for name in pair.split())
    SWAPS |= {first: second, second: first}


def mistakes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what a node may be mistaken for."""
    if isinstance(node, ast.Compare):
        yield _with(node, ops=[SWAPS[type(node.ops[0])](), *node.ops[1:]])
    elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPS:
        yield _with(node, op=SWAPS[type(node.op)]())
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        yield _with(node, value=not node.value if isinstance(node.value, bool) else node.value + 1)
    elif isinstance(node, ast.Name) and node.id in {"min", "max"}:
        yield _with(node, id={"min": "max", "max": "min"}[node.id])
    elif isinstance(node, ast.IfExp):
        yield _with(node, body=node.orelse, orelse=node.body)
    elif isinstance(node, ast.Dict):
        for place in range(len(node.keys)):
            kept = [i for i in range(len(node.keys)) if i != place]
            yield _with(node, keys=[node.keys[i] for i in kept], values=[node.values[i] for i in kept])
    elif isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant)):
        yield ast.Pass()


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    vars(changed).update(fields)
    return changed


def mutants(tree: ast.Module) -> Iterator[str]:
    """Make one mistake after the other in a module, and yield where and what it is."""
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            nodes = value if isinstance(value, list) else [value]
            for place, node in enumerate(nodes) if name not in {"annotation", "returns"} else ():
                for changed in mistakes(node):
                    new = [*nodes[:place], ast.copy_location(changed, node), *nodes[place + 1 :]]
                    setattr(parent, name, new if isinstance(value, list) else new[0])
                    yield f"{node.lineno}: {ast.unparse(node)[:90]!r} → {ast.unparse(changed)[:90]!r}"
                    setattr(parent, name, value)


def pass_tests(path: Path, tree: ast.Module) -> bool:
    """Run the tests of a module with a tree in its place."""
    if not (child := os.fork()):
        with contextlib.suppress(BaseException):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            signal.alarm(SECONDS)
            code, genuine = compile(ast.fix_missing_locations(tree), path, "exec"), SourceFileLoader.get_code
            SourceFileLoader.get_code = lambda self, name: code if Path(self.path) == path else genuine(self, name)
            sys.path.insert(0, str(ROOT / "src"))
            tests = [str(ROOT / "tests" / name) for name in TESTS["/".join(path.parts[-2:])].split()]
            os._exit(pytest.main(["-qx", "-n0", "-pno:cacheprovider", *tests]))
        os._exit(1)
    return os.waitpid(child, 0)[1] == 0


if __name__ == "__main__":
    for library in ("dp_accounting.rdp", "mpmath", "pyarrow.parquet", "scipy.stats"):
        importlib.import_module(library)  # once, and not for each mutant
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", default=[""])
    parser.add_argument("--every", type=int, default=1)
    options = parser.parse_args()
    for name in (name for name in TESTS if any(word in name for word in options.words)):
        path = ROOT / "src" / "dpselect" / name
        tree, count = ast.parse(path.read_text()), 0
        if not pass_tests(path, tree):
            sys.exit(f"{name}: its tests fail without a mistake")
        for number, text in enumerate(mutants(tree)):
            if number % options.every == 0:
                count += 1
                if pass_tests(path, tree):
                    print(f"{name}:{text}", flush=True)
        print(f"{name}: {count} mutants", flush=True)
