"""What commands print: picks on the standard output, facts as JSON or as lines."""

import argparse
import dataclasses
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dpselect.release import Receipt, Released


@contextmanager
def output_path(options: argparse.Namespace) -> Iterator[Path]:
    """Yield where results go. Without ``--output`` that is a temporary file, copied to the standard output."""
    if options.output is not None:
        yield options.output
        return
    with tempfile.TemporaryDirectory(prefix="dpselect-") as directory:
        path = Path(directory) / "output.csv"
        yield path
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def report(options: argparse.Namespace, facts: dict[str, object], lines: list[str]) -> None:
    """Print what happened: as JSON if you asked for it, else in lines."""
    if options.json:
        free = getattr(options, "output", None) is not None or "output" not in options
        print(json.dumps(facts, ensure_ascii=False), file=sys.stdout if free else sys.stderr)
    elif not options.quiet:
        for line in lines:
            print(line, file=sys.stderr)


def receipt_facts(receipt: Receipt | None) -> dict[str, object]:
    """Return what was paid, for programs."""
    return {} if receipt is None else dataclasses.asdict(receipt)


def receipt_lines(receipt: Receipt | None) -> list[str]:
    """Return what was paid, for people."""
    if receipt is None:
        return []
    paid = "charged to" if receipt.charged else "already charged to"
    return [f"{paid} {receipt.population!r}: ε = {receipt.epsilon_spent:g} of {receipt.epsilon_cap:g} spent"]


def released_facts(options: argparse.Namespace, released: Released) -> dict[str, object]:
    """Return what was published, for programs."""
    facts = {name: getattr(released, name) for name in ("units", "picked", "skipped", "problems")}
    facts |= {"seconds": round(released.seconds, 3), "mechanism": repr(released.mechanism)}
    if "reason" in options:
        facts["reason"] = options.reason
    return facts | {"output": None if options.output is None else str(options.output)}


def mechanism_lines(options: argparse.Namespace) -> list[str]:
    """Return which mechanism was used and why, if none was named, for people."""
    return [f"--mechanism {options.mechanism}: {options.reason}"] if "reason" in options else []


def skipped_lines(released: Released) -> list[str]:
    """Return which rules were broken, and how often, for people."""
    return [f"skipped {count:,}: {problem}" for problem, count in released.problems.items()]
