"""The command line: ``dpselect select scores.csv --epsilon 1 --output picks.csv``.

Exit codes: 0 done, 1 an audit found a violation, 2 wrong usage, 3 bad input, 4 refused by the budget or because a
key was used before, 5 the system failed (disk full, no permission, a library is missing), 70 internal error, 130
interrupted. The commands parse options and print; the library does the work.
"""

import importlib
import logging
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from dpselect.cli.arguments import build_parser
from dpselect.extras import from_extra

__all__ = ["main"]

DONE, BAD_INPUT, SYSTEM, INTERNAL_ERROR, INTERRUPTED = 0, 3, 5, 70, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] in (["help"], ["version"]):  # what people try first
        words = [*words[1:], f"--{words[0]}"]
    options = build_parser().parse_args(words)
    if getattr(options, "threads", None):
        os.environ["DPSELECT_THREADS"] = str(options.threads)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with from_extra("cli"):
            command = importlib.import_module(f"dpselect.cli.{options.command}")  # only now: --help needs no arrays
        if getattr(options, "quiet", False) or getattr(options, "json", False):
            logging.getLogger("dpselect").disabled = True  # also silences what would go to the terminal
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # all is loaded: from here on, clean up
        code: int = command.run(options) or DONE
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _fail("interrupted; run the same command again", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads what is left to flush
        return SYSTEM
    except ValueError as error:
        return _fail(_words(error), getattr(error, "exit_code", BAD_INPUT))
    except OSError as error:
        return _fail(f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""), SYSTEM)
    except ModuleNotFoundError as error:
        return _fail(str(error), SYSTEM)
    except Exception as error:
        if os.environ.get("DPSELECT_DEBUG"):
            raise
        return _fail(_internal(error), INTERNAL_ERROR)
    finally:
        signal.signal(signal.SIGTERM, before)
    return code


def _words(error: ValueError) -> str:
    """Return the error's words if they are ours; a library's might quote what it cannot read."""
    ours = type(error) is ValueError or type(error).__module__.startswith("dpselect.")
    return str(error) if ours else f"the input cannot be read ({type(error).__name__})"


def _internal(error: Exception) -> str:
    """Say what went wrong and where, but not in the error's own words: these might quote what is private."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"internal error: {type(error).__name__} in {Path(frame.filename).name}, line {frame.lineno}; "
        "please report it (DPSELECT_DEBUG=1 shows more, which may be private)"
    )


def _fail(message: str, code: int) -> int:
    print(f"dpselect: {message}", file=sys.stderr)
    return code
