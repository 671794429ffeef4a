"""The report: one HTML page that contains everything and loads nothing."""

import base64
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

import dpselect as dps
from experiments.experiment import Effort, Experiment, Listing, Numbers
from experiments.files import replacing
from experiments.ledger import WORDS, Entry, totals
from experiments.mechanisms import STYLES
from experiments.scenarios import SEED

__all__ = ["Section", "commit", "provenance", "write"]

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, kw_only=True)
class Section:
    """One experiment in the report."""

    experiment: Experiment
    image: bytes
    """The figure, as SVG."""
    listings: Sequence[Listing | Numbers]
    entries: Sequence[Entry]
    """The claims that the experiment decides."""
    files: Sequence[str]
    """The files that hold the figure and its numbers, relative to the report."""

    @property
    def source(self) -> str:
        """The figure as the address of an image.

        Not inline: the identifiers of two matplotlib figures on one page would clash.
        """
        return f"data:image/svg+xml;base64,{base64.b64encode(self.image).decode()}"


def write(path: Path, sections: Sequence[Section], entries: Sequence[Entry], origin: Mapping[str, str]) -> None:
    """Write the report. ``path`` is either complete or untouched."""
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = _number
    page = environment.get_template("report.html.jinja").render(
        sections=sections,
        entries=entries,
        totals=totals(entries),
        words=WORDS,
        figures={section.experiment.name: place for place, section in enumerate(sections, start=1)},
        styles=STYLES,
        provenance=origin,
    )
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def provenance(effort: Effort, seconds: float, *, steps: int, reused: int) -> dict[str, str]:
    """Return what produced the report: enough to reproduce it, and nothing about this machine."""
    return {
        "dpselect": dps.__version__,
        "commit": commit(),
        "Python": platform.python_version(),
        **{package: version(package) for package in ("numpy", "numba", "matplotlib")},
        "effort": effort.description,
        "seed": str(SEED),
        "duration": f"{seconds:.1f} s" + (f", with {reused} of {steps} steps from earlier runs" if reused else ""),
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    }


def _number(value: float) -> str:
    """Write a number with three decimals, or a very small one with its exponent."""
    return f"{value:.3f}" if value == 0 or abs(value) >= 5e-4 else f"{value:.0e}"


def commit() -> str:
    """Return the current commit, and whether anything has changed since."""
    # A copy unpacked inside another repository must not show that repository's commit.
    if not (HERE.parent / ".git").exists():
        return "unknown (not a git checkout)"
    try:
        head = _git("rev-parse", "HEAD")
        # New files count too; git describe --dirty would miss them.
        return f"{head} with local changes" if _git("status", "--porcelain", "src", "experiments") else head
    except (OSError, subprocess.CalledProcessError):
        return "unknown (git did not answer)"


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(HERE.parent), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603
