"""What commands print: picks on the standard output, facts as JSON or as lines."""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
