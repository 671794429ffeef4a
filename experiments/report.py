"""The report: one HTML page that contains everything and loads nothing."""

import base64
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

import dpselect as dps
from experiments.experiment import Effort, Experiment, Listing, Numbers
from experiments.files import replacing
from experiments.ledger import KEPT, READING, WORDS, Entry, totals
from experiments.mechanisms import STYLES
from experiments.recommender.overview import NAME as OVERVIEW
from experiments.scenarios import SEED
from experiments.summary import COUNTERPARTS, PAPER_FIGURES, summarise
from experiments.tables import Tables

__all__ = ["Section", "chapters", "commit", "provenance", "write"]

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, kw_only=True)
class Section:
    """One experiment in the report."""

    experiment: Experiment
    tables: Tables
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

    @property
    def width(self) -> float:
        """The figure's width in points."""
        found = re.search(rb'viewBox="0 0 ([0-9.]+) ', self.image)
        if found is None:
            raise ValueError(f"the figure of {self.experiment.name} has no viewBox")
        return float(found[1])

    @property
    def in_paper(self) -> str:
        """Which figures of the paper it reproduces."""
        numbers = PAPER_FIGURES.get(self.experiment.name, ())
        return f"The paper’s figure{'s' * (len(numbers) > 1)} {' and '.join(map(str, numbers))}" if numbers else ""


def chapters(sections: Sequence[Section]) -> dict[str, list[Section]]:
    """Return the sections by chapter: the paper's figures in its order, what decides its other claims, the rest.

    The overview is in no chapter: it comes before them.
    """
    order = list(PAPER_FIGURES)
    drawn = [section for section in sections if section.in_paper]
    others = [section for section in sections if not section.in_paper and section.experiment.name != OVERVIEW]
    found = {
        "The paper’s figures": sorted(drawn, key=lambda section: order.index(section.experiment.name)),
        "The paper’s other claims": [section for section in others if section.entries],
        "Beyond the paper": [section for section in others if not section.entries],
    }
    return {title: part for title, part in found.items() if part}


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
    environment.filters["code"] = _code
    environment.filters["formulas"] = _formulas
    parts = chapters(sections)
    overview = [section for section in sections if section.experiment.name == OVERVIEW]
    in_order = [*overview, *(section for part in parts.values() for section in part)]
    page = environment.get_template("report.html.jinja").render(
        chapters=parts,
        overview=overview,
        summary=summarise({section.experiment.name: section.tables for section in sections}, entries),
        counterparts=COUNTERPARTS,
        entries=entries,
        totals=totals(entries),
        words=WORDS,
        reading=READING,
        kept=KEPT,
        figures={section.experiment.name: place for place, section in enumerate(in_order, start=1)},
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


def _code(text: str) -> Markup:
    """Write what is between backticks as code."""
    return Markup(re.sub(r"`([^`]*)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped


def _formulas(text: str) -> Markup:
    r"""Write what is between dollar signs with indices and exponents, and without LaTeX's backslashes.

    Example:
        >>> _formulas(r"at most $\max_j e^{−ε/4}$ <")
        Markup('at most max<sub>j</sub> e<sup>−ε/4</sup> &lt;')
    """

    def written(found: re.Match[str]) -> str:
        formula = re.sub(
            r"\\([a-z]+ ?|[{}])", lambda command: {"{": "❴", "}": "❵"}.get(command[1], command[1]), found[1]
        )
        for mark, tag in (("_", "sub"), ("^", "sup")):
            formula = re.sub(rf"\{mark}(?:{{([^}}]*)}}|(.))", rf"<{tag}>\1\2</{tag}>", formula)
        return formula.replace("❴", "{").replace("❵", "}")

    return Markup(re.sub(r"\$([^$]+)\$", written, str(escape(text))))  # noqa: S704 - escaped


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
