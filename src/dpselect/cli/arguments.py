"""The options of every command. Nothing here loads the compiler or Arrow, so ``--help`` answers at once."""

import argparse
import json
from pathlib import Path
from typing import NoReturn, TypeAlias

from dpselect._version import __version__
from dpselect.registry import MECHANISMS

Commands: TypeAlias = "argparse._SubParsersAction[_Parser]"  # noqa: SLF001 - it has no other name

LEDGER = "a file, or a URL like postgresql://host/name"

EXAMPLES = """\
examples:
  dpselect select scores.csv --epsilon 4 --output picks.csv
      a row for each user and candidate, with columns user, candidate, score; each score is about that user alone
  dpselect select scores.csv --epsilon 1 --output picks.csv
      the same with a column sensitivity: how far one person can move each score
  dpselect select scores.parquet --epsilon 1 --mechanism gem --sensitivity 0.5 --output picks.parquet
      the same sensitivity for every candidate
  dpselect select scores.parquet --epsilon 1 --candidates items.csv --sensitivity width --output picks.parquet
      sensitivities from a second table, joined by candidate
  dpselect select scores.csv --epsilon 10 --count 10 --output lists.csv
      ten candidates for each user, with ranks; ε = 10 for the whole list
  dpselect select scores/ --epsilon 1 --budget budget.db --population readers --release spring -o picks.parquet
      charged to a budget once, however often you run it
"""

BUDGET_EXAMPLES = """\
examples:
  dpselect budget create budget.db --population readers --epsilon 10
  dpselect select scores.csv --epsilon 1 --budget budget.db --population readers --release spring -o picks.csv
  dpselect budget show budget.db
"""

ADVISE_EXAMPLES = """\
Whose data is in a row of scores? One person's, such as one user's ratings: give ε alone. Many people's, such as
counts or means: also say how far one person can move each score.

examples:
  dpselect advise --epsilon 4
  dpselect advise --epsilon 0.5 --sensitivities 1,0.5,0.1 --correlation 0.8
"""

AUDIT_EXAMPLES = """\
examples:
  dpselect audit --mechanism gem --epsilon 1 --sensitivities 1,0.5,0.1
  dpselect audit --mechanism rnmh --epsilon 1 --sensitivities 1,0.5,0.1
      the naive heterogeneous noisy max, which is not private: exit code 1, and a witness
  dpselect audit own:pick --epsilon 1 --sensitivities 1,0.5,0.1
      the function pick(scores, sensitivities) of own.py, which returns a position; or a mechanism, a class of
      mechanisms, an object with select
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say what is wrong first, and where to read on."""
        self.exit(2, f"dpselect: {message}\n`{self.prog} --help` lists the options.\n")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = _Parser(
        prog="dpselect",
        description="One private pick per user from a table of scores of any size. Whose data is in a row of "
        "scores? One person's (a user's ratings): a table of scores is enough, and top share is used. Many "
        "people's (counts, means): also say how far one person can move each score (--sensitivity), and "
        "heterogeneous noisy max is used. `dpselect advise` says more.",
        epilog="exit codes: 0 done, 1 an audit found a violation, 2 wrong usage, 3 bad input, 4 refused by the "
        "budget or because a key was used before, 5 system, 70 internal error, 130 interrupted",
    )
    parser.add_argument("--version", action="version", version=f"dpselect {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_select(commands)
    _add_budget(commands)
    _add_advise(commands)
    _add_audit(commands)
    explore = _command(
        commands, "explore", "Open a page on this machine that shows how often each mechanism finds the best."
    )
    explore.add_argument("--port", type=int, default=0, help="the port (default: a free one)")
    explore.add_argument("--no-browser", action="store_true", help="print the address and open no browser")
    ahead = _command(commands, "compile", "Compile ahead what large tables need, and keep it on disk.")
    ahead.add_argument(
        "mechanisms", nargs="*", metavar="MECHANISM", help=f"{', '.join(MECHANISMS)} (default: all of them)"
    )
    return parser


def _command(commands: Commands, name: str, summary: str, epilog: str | None = None) -> _Parser:
    return commands.add_parser(
        name, help=summary, description=summary, formatter_class=argparse.RawDescriptionHelpFormatter, epilog=epilog
    )


def _add_select(commands: Commands) -> None:
    summary = "Pick one candidate for each user, or a list of them, privately."
    parser = _command(commands, "select", summary, epilog=EXAMPLES)
    _add_input(parser)
    parser.add_argument(
        "--one",
        action="store_true",
        help="make one pick, or one list, out of the whole table, which has a row for each candidate and no users",
    )
    _add_mechanism(parser)
    parser.add_argument(
        "--count",
        type=_positive_integer,
        metavar="N",
        help="make a list of N picks for each user, with a column of ranks; --epsilon is then for the whole list",
    )
    parser.add_argument(
        "--short-rows",
        choices=["refuse", "pad"],
        help="with --count, what to do with users who have fewer candidates: refuse (default), or shorter lists",
    )
    output = parser.add_argument_group("output")
    output.add_argument(
        "--output",
        "-o",
        type=Path,
        metavar="FILE",
        help="where picks go: .parquet, .csv or .arrow (default: CSV on the standard output)",
    )
    _add_reporting(output)
    output.add_argument(
        "--overwrite",
        action="store_true",
        help="replace an output that exists; without --key-file or --budget that is a release that costs ε again",
    )
    _add_payment(parser)


def _add_payment(parser: argparse.ArgumentParser) -> None:
    keys = parser.add_argument_group("randomness (by default a fresh key that is forgotten)")
    keys.add_argument(
        "--key-file",
        type=Path,
        metavar="FILE",
        help="a secret key for one release, made if there is none; the same inputs give the same picks again, "
        "and other inputs are refused (FILE.used records what the key was used for)",
    )
    budget = parser.add_argument_group("budget (you pay for the release before it is written; see dpselect budget)")
    budget.add_argument("--budget", metavar="LEDGER", help=LEDGER)
    budget.add_argument("--population", metavar="NAME", help="whose budget is charged")
    budget.add_argument(
        "--release",
        metavar="NAME",
        help="your name for this release; run again with the same inputs, it costs nothing",
    )
    budget.add_argument(
        "--units-per-person",
        type=_positive_integer,
        default=1,
        metavar="N",
        help="how many users' scores one person's data can change (default: 1)",
    )
    budget.add_argument("--what", default="", metavar="TEXT", help="what the release is for")
    _add_keys(budget)


def _add_keys(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--keys", type=Path, metavar="FOLDER", help="where keys are kept (default, for a file: LEDGER.keys)"
    )


def _add_budget(commands: Commands) -> None:
    summary = "Keep a privacy budget for a population. It cannot be overspent."
    parser = _command(commands, "budget", summary, epilog=BUDGET_EXAMPLES)
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    create = _command(actions, "create", "Add a population with a cap, and make the ledger if there is none.")
    create.add_argument("ledger", help=LEDGER)
    create.add_argument("--population", required=True, metavar="NAME")
    create.add_argument("--epsilon", type=float, required=True, help="the cap for all releases together")
    create.add_argument("--delta", type=float, default=0.0, help="the δ for all releases together (default: 0)")
    create.add_argument(
        "--neighbours",
        choices=["any", "within", "same-direction"],
        default="within",
        help="the pairs of scores that the cap protects: any two, those within the sensitivities (default), or "
        "only those that also all move in the same direction; releases that protect fewer pairs are refused",
    )
    show = _command(
        actions, "show", "Show each release (who, when, what it cost) and how much of the budget is spent."
    )
    show.add_argument("ledger", help=LEDGER)
    show.add_argument("--population", metavar="NAME", help="(default: all)")
    for action in (create, show):
        _add_keys(action)
        _add_reporting(action)


def _add_advise(commands: Commands) -> None:
    summary = "Say which mechanism to use, from public information. Reads no scores, costs nothing."
    parser = _command(commands, "advise", summary, epilog=ADVISE_EXAMPLES)
    parser.add_argument("--epsilon", type=float, required=True, help="the privacy budget of one pick")
    parser.add_argument("--sensitivities", metavar="LIST", help="one for each candidate, with commas: 1,0.5,2")
    parser.add_argument(
        "--correlation",
        type=float,
        metavar="R",
        help="the correlation of scores and sensitivities that you expect, from -1 to 1",
    )
    parser.add_argument(
        "--spread", type=float, metavar="S", help="how far scores spread (default: mean sensitivity)"
    )
    _add_reporting(parser)


def _add_audit(commands: Commands) -> None:
    summary = "Look for violations of ε-DP in a mechanism, or in your own selector. Reads no data."
    parser = _command(commands, "audit", summary, epilog=AUDIT_EXAMPLES)
    parser.add_argument("selector", nargs="?", metavar="MODULE:NAME", help="what to check, if it is your own")
    _add_mechanism(parser)
    parser.add_argument(
        "--sensitivities", required=True, metavar="LIST", help="one for each candidate, with commas: 1,0.5,2"
    )
    parser.add_argument(
        "--draws",
        type=_positive_integer,
        default=50_000,
        metavar="N",
        help="without probabilities, how many picks to draw from each side of the worst pairs (default: 50000)",
    )
    _add_reporting(parser)


def _add_input(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "input", type=Path, help="CSV, Parquet, a folder of Parquet files, or Arrow IPC; - is the standard input"
    )
    parser.add_argument(
        "--format", choices=["csv", "parquet", "arrow"], help="the format, if the file's name does not say it"
    )
    text = parser.add_argument_group("CSV, also that of --candidates (detected where unambiguous)")
    text.add_argument("--delimiter", metavar="CHARACTER", help="what is between two fields, such as ';'")
    text.add_argument("--encoding", metavar="NAME", help="such as latin-1, cp1252 or utf-16 (default: utf-8)")
    text.add_argument("--decimal", choices=[".", ","], help="the decimal mark of numbers (default: a point)")
    _add_columns(parser.add_argument_group("columns"))
    limits = parser.add_argument_group("limits")
    limits.add_argument(
        "--threads",
        type=_positive_integer,
        metavar="N",
        help="how many threads to use (default: one for each processor)",
    )
    limits.add_argument(
        "--memory",
        default="1GB",
        metavar="SIZE",
        help="memory for sorting tables with a row for each candidate (default: 1GB)",
    )
    limits.add_argument("--batch-candidates", type=_positive_integer, metavar="N", help=argparse.SUPPRESS)


def _add_columns(columns: argparse._ArgumentGroup) -> None:
    _add_column(columns, "unit", "users", "user")
    _add_column(columns, "candidate", "candidates")
    _add_column(columns, "score", "scores")
    columns.add_argument(
        "--sensitivity",
        metavar="COLUMN|NUMBER",
        help="a column of the table or of --candidates, or one number for all (default: the column sensitivity, if "
        "there is one); not needed if each user's row is about that user alone",
    )
    columns.add_argument("--offset", metavar="COLUMN", help="public offsets, for mechanisms that take them")
    columns.add_argument("--weight", metavar="COLUMN", help="public weights, for mechanisms that take them")
    columns.add_argument(
        "--candidates", type=Path, metavar="FILE", help="a second table, with the public numbers of each candidate"
    )
    columns.add_argument(
        "--by-position",
        action="store_true",
        help="use this if there is no column of candidates: the n-th score of a list is for row n of --candidates",
    )
    columns.add_argument(
        "--on-bad-unit",
        choices=["raise", "skip"],
        default="raise",
        help="stop at the first user whose rows break a rule (default), or leave such users out and count them",
    )


def _add_column(parser: argparse._ActionsContainer, role: str, content: str, default: str | None = None) -> None:
    name = default or role
    parser.add_argument(
        f"--{role}", default=name, metavar="COLUMN", help=f"the column of {content} (default: {name})"
    )


def _add_mechanism(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("mechanism")
    group.add_argument("--epsilon", type=float, required=True, help="the privacy budget of one pick")
    group.add_argument(
        "--mechanism",
        metavar="NAME",
        help=f"{', '.join(MECHANISMS)} (default: heterogeneous-rnm if there are sensitivities, else top-share, for "
        "rows that are each about one person); or MODULE:NAME, your own, or what makes it from ε",
    )
    group.add_argument(
        "--share",
        dest="parameter",
        action="append",
        default=[],
        type=lambda text: _parameter(f"share={text}"),
        metavar="SHARE",
        help="with top-share, the share of the weights that counts as the best",
    )
    group.add_argument(
        "--parameter",
        action="append",
        default=[],
        type=_parameter,
        metavar="NAME=VALUE",
        help="another field of the mechanism, such as tilt=2 or keep=0,0.25; repeat it for several",
    )


def _add_reporting(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--json", action="store_true", help="report as JSON, on the standard output unless the results go there"
    )
    parser.add_argument("--quiet", "-q", action="store_true", help="show no progress and no report")


def _positive_integer(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"must be a whole number, at least 1, got {text!r}")
    return int(text)


def _parameter(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"must look like tilt=2, not {text!r}")
    try:
        return name, json.loads(f"[{value}]" if "," in value and value[:1] not in "([" else value)
    except ValueError:
        return name, value
