"""The command line: ``python -m experiments``."""

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.accounting import MANY_PICKS
from experiments.audits import AUDITS
from experiments.bandit import EXPERIMENTS as BANDIT
from experiments.default import EXPERIMENTS as DEFAULT
from experiments.experiment import FAST, FULL
from experiments.files import replacing
from experiments.heuristic import HEURISTIC
from experiments.recommender.sections import EXPERIMENTS as RECOMMENDER
from experiments.runner import run
from experiments.synthetic import EXPERIMENTS as SYNTHETIC
from experiments.tuning import TUNING

__all__ = ["EXPERIMENTS", "copy_pictures", "main"]

EXPERIMENTS = (*SYNTHETIC, HEURISTIC, *DEFAULT, AUDITS, MANY_PICKS, TUNING, *RECOMMENDER, *BANDIT)
"""In the order of the report."""

PICTURES = {"scenarios.png": "default-scenarios.png"}
"""The pictures of the documentation, and the figure that each one shows."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the report and print its path."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description="Reproduce the paper: one self-contained HTML report, its figures and its tables.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("output"),
        metavar="DIRECTORY",
        help="the directory for report.html, figures/ and tables/; created if missing (default: output)",
    )
    parser.add_argument(
        "--only",
        action="append",
        choices=[experiment.name for experiment in EXPERIMENTS],
        metavar="FIGURE",
        help="compute and draw only this figure, in excerpt.html; repeat for more (see --list)",
    )
    parser.add_argument("--list", action="store_true", help="list the names of the figures and exit")
    parser.add_argument("--fast", action="store_true", help=f"compute on a coarser grid ({FAST.description})")
    parser.add_argument(
        "--pictures",
        type=Path,
        metavar="DIRECTORY",
        help="also copy the documentation's figures to this directory (docs/images)",
    )
    parser.add_argument(
        "--ledger",
        type=Path,
        metavar="FILE",
        help="also copy the claims ledger to this Markdown file (docs/claims.md)",
    )
    options = parser.parse_args(arguments)
    if options.list:
        for experiment in EXPERIMENTS:
            print(f"{experiment.name:28}{experiment.title}")
        return 0
    chosen = [experiment for experiment in EXPERIMENTS if not options.only or experiment.name in options.only]
    for name in ("pictures", "ledger"):
        if getattr(options, name) is not None and options.only:
            parser.error(f"argument --{name}: needs all figures; leave out --only")
    if options.pictures is not None and options.fast:
        parser.error("argument --pictures: a fast run draws no PNG; leave out --fast")
    for name in ("output", "pictures"):
        _make_directory(parser, name, getattr(options, name))
    try:
        page = "excerpt.html" if options.only else "report.html"
        report = run(chosen, FAST if options.fast else FULL, options.output, page=page)
    except KeyboardInterrupt:
        print("\nInterrupted; the report was not written. Run again to resume.", file=sys.stderr)
        return 130
    if options.pictures is not None:
        copy_pictures(options.output / "figures", options.pictures)
    if options.ledger is not None:
        with replacing(options.ledger) as temporary:
            shutil.copyfile(options.output / "claims.md", temporary)
    print(f"Report: {report}")
    return 0


def copy_pictures(figures: Path, pictures: Path) -> None:
    """Copy the documentation's figures, under their names there."""
    for picture, figure in PICTURES.items():
        with replacing(pictures / picture) as temporary:
            shutil.copyfile(figures / figure, temporary)


def _make_directory(parser: argparse.ArgumentParser, name: str, path: Path | None) -> None:
    """Create an output directory, and refuse an unusable one before any work is done."""
    if path is None:
        return
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"argument --{name}: cannot create the directory {path}: {error.strerror}")
    if not os.access(path, os.W_OK):
        parser.error(f"argument --{name}: the directory {path} is not writable")


if __name__ == "__main__":
    sys.exit(main())
