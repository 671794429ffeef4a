"""The claims ledger: each claim of the paper is a check that reads tables and returns numbers and a verdict.

An experiment lists its claims. :func:`assess` checks them on the experiment's tables as they were written, so every
verdict rests on the files alone. To add a claim, give its experiment one more :class:`Claim`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

import pyarrow as pa

from experiments.tables import Tables

__all__ = [
    "KEPT",
    "READING",
    "Claim",
    "Entry",
    "Finding",
    "Verdict",
    "assess",
    "in_order",
    "judge",
    "markdown",
    "table",
    "totals",
]

LETTERS = "PGTSARBUN"
"""The order: privacy, the mechanisms as a whole, two candidates, scenarios, adaptive choice, real data, bandits,
utility bounds; and what is new here."""


INDEXED = r"(?:[Δq][₁₂](?: ?[<>/−] ?(?=[Δq]))?)+|√\d"
"""Such as Δ₁ < Δ₂."""


class Verdict(StrEnum):
    """The outcome of a check. The words follow "this claim"."""

    HOLDS = "holds"
    IN_PART = "holds in part"
    FAILS = "does not hold"
    SHOWN = "is not judged"
    """It only describes a figure, or rests on substitutes for the data alone."""
    ILLUSTRATED = "holds on our own example"
    """We made the example, so this proves little."""
    OPEN = "needs the full run"
    NEW = "is a new finding"
    """Not a claim of the paper: a finding of this project beside its claims."""


WORDS = MappingProxyType(
    {
        Verdict.HOLDS: "hold",
        Verdict.IN_PART: "hold in part",
        Verdict.FAILS: "do not hold",
        Verdict.SHOWN: "are not judged",
        Verdict.ILLUSTRATED: "hold on our own examples",
        Verdict.OPEN: "need the full run",
        Verdict.NEW: "are new findings",
    }
)
"""The verdicts in the plural."""

READING = (
    "A claim of several parts holds in part if some of them hold. The verdict says what is true of the others.",
    "The paper rarely says for which ε a claim is meant: the verdict says for which it holds.",
    (
        "Real data are judged on clipped scores and on the paper’s datasets, or on the part of them that was "
        "available; a substitute turns no verdict."
    ),
    "The paper’s RNMH is called naive noisy max here. It is not private.",
    (
        "HG(M, M′), the gain from heterogeneity, is the probability that M picks the worse of two candidates, "
        "minus the same for M′: it is positive where M′ is better."
    ),
)
"""How to read the ledger."""
KEPT = (
    "A full `make paper` computes all numbers again, except those on real data: this project contains no data, so "
    "they come from tables that are kept with the code. If you have the data, `make recommender DATA=…` and, for "
    "tuning, `python -m experiments.tuning` compute them again."
)
"""Which numbers can be computed again, and how."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of a check."""

    verdict: Verdict
    measured: str
    """The numbers that the verdict rests on, in one or two sentences."""
    comment: str = ""
    """What fails and why, or how the claim is read where the paper leaves room."""
    scope: str = ""
    """Where the verdict is true, if not everywhere: "for ε ≤ 10", "on substitutes", "at α = √2"."""
    fails: str = ""
    """What is true where the claim, or a part of it, is not. The comment starts with it."""

    @property
    def sentence(self) -> str:
        """What is true where the claim is not: "Fails: the ratio stays bounded."."""
        return f"Fails: {self.fails}." if self.fails else ""

    @property
    def remark(self) -> str:
        """The rest of the comment."""
        return self.comment.removeprefix(self.sentence).strip()

    @property
    def words(self) -> str:
        """The verdict with its scope: "holds for ε ≤ 10"."""
        return f"{self.verdict} {self.scope}".strip()


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One sentence of the paper, or a new finding beside its claims, and how to check it."""

    id: str
    text: str
    """Formulas are LaTeX between dollar signs; so they are in findings."""
    check: Callable[[Tables], Finding]
    """Given the experiment's tables by name."""
    needs_full_run: bool = False
    """Whether the verdict rests on many trials or long runs, so that a fast run leaves it open."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A line of the ledger."""

    claim: Claim
    finding: Finding
    experiment: str
    """The name of the experiment whose figure shows it."""


def judge(
    parts: Mapping[str, bool],
    measured: str,
    comment: str = "",
    *,
    instead: Mapping[str, str] = MappingProxyType({}),
    scope: str = "",
) -> Finding:
    """Return the finding on a claim of several parts. If some of them fail, the comment says which.

    Args:
        parts: Whether each part of the claim holds.
        measured: The numbers.
        comment: What else to say.
        instead: What is true where a part fails. A part that is not named here is repeated as the paper claims it.
        scope: Where the claim holds, if all its parts do.

    Example:
        >>> judge({"grows": True, "no bound": False}, "", instead={"no bound": "it stays below 2"}).comment
        'Fails: it stays below 2.'
    """
    failed = [instead.get(name, f"“{name}”") for name, holds in parts.items() if not holds]
    if not failed:
        return Finding(verdict=Verdict.HOLDS, measured=measured, comment=comment, scope=scope)
    verdict = Verdict.IN_PART if len(failed) < len(parts) else Verdict.FAILS
    found = Finding(verdict=verdict, measured=measured, fails="; ".join(failed))
    return replace(found, comment=f"{found.sentence} {comment}".strip())


def assess(name: str, claims: Sequence[Claim], tables: Tables, *, full: bool) -> list[Entry]:
    """Check an experiment's claims on its tables. Some verdicts stay open unless the tables are a full run's."""
    return [
        Entry(claim=claim, finding=_finding(claim, claim.check(tables), full=full), experiment=name)
        for claim in claims
    ]


def _finding(claim: Claim, found: Finding, *, full: bool) -> Finding:
    if full or not claim.needs_full_run:
        return found
    comment = "A rough estimate: this run has too few trials or steps for a verdict."
    return Finding(verdict=Verdict.OPEN, measured=found.measured, comment=comment)


def in_order(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries in the paper's order. A claim that appears twice is an error."""
    ids = [entry.claim.id for entry in entries]
    twice = sorted({id_ for id_ in ids if ids.count(id_) > 1})
    if twice:
        raise ValueError(f"exactly one experiment must check each claim; several check {', '.join(twice)}")
    return sorted(entries, key=lambda entry: _place(entry.claim.id))


def totals(entries: Sequence[Entry]) -> dict[Verdict, int]:
    """Return how many claims have each verdict. Rare verdicts are counted only if there are any."""
    counts = {verdict: sum(entry.finding.verdict is verdict for entry in entries) for verdict in Verdict}
    usual = {Verdict.HOLDS, Verdict.IN_PART, Verdict.FAILS}
    return {verdict: count for verdict, count in counts.items() if count or verdict in usual}


def table(entries: Sequence[Entry]) -> pa.Table:
    """Return the ledger as a table."""
    return pa.table(
        {
            "id": [entry.claim.id for entry in entries],
            "claim": [entry.claim.text for entry in entries],
            "measured": [entry.finding.measured for entry in entries],
            "verdict": [str(entry.finding.verdict) for entry in entries],
            "scope": [entry.finding.scope for entry in entries],
            "comment": [entry.finding.comment for entry in entries],
            "figure": [entry.experiment for entry in entries],
        }
    )


def markdown(entries: Sequence[Entry], origin: Mapping[str, str]) -> str:
    """Return the ledger as a Markdown page, given the report's provenance."""
    counts = totals(entries).items()
    scoped = sum(entry.finding.verdict is Verdict.HOLDS and bool(entry.finding.scope) for entry in entries)
    lines = [
        "# The paper's claims",
        "",
        "`make paper` writes this page. The figures behind it are in `output/report.html`.",
        f"This run was {origin['effort']}. It took {origin['duration']}.",
        "",
        *(f"- {sentence}" for sentence in (*READING, KEPT)),
        "",
        f"{', '.join(f'**{count}** {verdict if count == 1 else WORDS[verdict]}' for verdict, count in counts)}.",
        f"Of those that hold, {scoped} hold in the stated range of ε, or on the stated layouts or data.",
        "",
        "| id | claim | verdict | measured | figure |",
        "| --- | --- | --- | --- | --- |",
    ]
    for entry in entries:
        remark = f" *{_escaped(entry.finding.remark)}*" if entry.finding.remark else ""
        cells = (
            entry.claim.id,
            _escaped(entry.claim.text),
            " ".join([f"**{entry.finding.verdict}**", *map(_escaped, filter(None, _qualified(entry.finding)))]),
            _escaped(entry.finding.measured) + remark,
            f"`{entry.experiment}`",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _qualified(finding: Finding) -> tuple[str, str]:
    """Return where a verdict holds, and what is true where the claim fails, as they follow the verdict."""
    return (f"{finding.scope}." if finding.scope and finding.fails else finding.scope, finding.sentence)


def _escaped(text: str) -> str:
    """Escape what has a meaning in Markdown: a bar would end the cell, an underscore start emphasis.

    What is between dollar signs is a formula, and stays. Indices and roots that are not become formulas.
    """
    text = re.sub(
        r"(\$[^$]+\$)|" + INDEXED, lambda found: found[1] or f"${found[0]}$".replace("√", r"\sqrt "), text
    )
    parts = re.split(r"(\$[^$]+\$)", text)
    return "".join(part if part.startswith("$") else re.sub(r"([\\|*_<\[`])", r"\\\1", part) for part in parts)


def _place(id_: str) -> tuple[int, int]:
    found = re.fullmatch(rf"([{LETTERS}])(\d+)", id_)
    if found is None:
        raise ValueError(f"a claim's id must be a letter of {LETTERS} and a number, got {id_!r}")
    return LETTERS.index(found[1]), int(found[2])
