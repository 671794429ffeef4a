"""The command line: ``dpselect select scores.csv --epsilon 1 --output picks.csv``.

Exit codes: 0 done, 1 an audit found a violation, 2 wrong usage, 3 bad input, 4 refused by the budget or because a
key was used before, 5 the system failed (disk full, no permission, a library is missing), 70 a mistake of the
program, 130 interrupted. Picks are written to a temporary name and appear under their own when all are there.
"""

import importlib
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from dpselect.cli.arguments import build_parser

__all__ = ["main"]

COMPILED = {"select", "pmf", "advise", "tune", "audit"}
"""Commands that need compiled kernels."""

DONE, USAGE, BAD_INPUT, REFUSED, SYSTEM, MISTAKE, INTERRUPTED = 0, 2, 3, 4, 5, 70, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    parser = build_parser()
    options = parser.parse_args(arguments)
    if getattr(options, "threads", None):
        os.environ["DPSELECT_THREADS"] = str(options.threads)
    before = signal.signal(signal.SIGTERM, _interrupt)
    command = importlib.import_module(f"dpselect.cli.{options.command}")  # only now: --help needs no arrays
    try:
        if options.command in COMPILED and not (options.quiet or options.json):
            importlib.import_module("dpselect.cli.progress").announce_compilation()
        code: int = command.run(options) or DONE
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _fail("interrupted: the same command goes on where it stopped", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads what is left to flush
        return SYSTEM
    except OSError as error:
        return _fail(f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""), SYSTEM)
    except ModuleNotFoundError as error:
        return _fail(str(error), SYSTEM)
    except ValueError as error:
        return _fail(_words(error), getattr(error, "exit_code", BAD_INPUT))
    except Exception as error:
        if os.environ.get("DPSELECT_DEBUG"):
            raise
        return _fail(_mistake(error), MISTAKE)
    finally:
        signal.signal(signal.SIGTERM, before)
    return code


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _words(error: ValueError) -> str:
    """Return the error's words if they are ours; a library's might quote what it cannot read."""
    ours = type(error) is ValueError or type(error).__module__.startswith("dpselect.")
    return str(error) if ours else f"the input cannot be read ({type(error).__name__})"


def _mistake(error: Exception) -> str:
    """Say what went wrong and where, but not the error's own words: these might quote what is private."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"a mistake of the program: {type(error).__name__} in {Path(frame.filename).name}, line {frame.lineno}; "
        "please report it (DPSELECT_DEBUG=1 shows more, which may be private)"
    )


def _fail(message: str, code: int) -> int:
    print(f"dpselect: {message}", file=sys.stderr)
    return code
