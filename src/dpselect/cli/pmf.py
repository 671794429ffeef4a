"""``dpselect pmf``: exact probabilities. Not private."""

import argparse
import sys

from dpselect.cli.options import check_output, input_path, make_mechanism, named_options, table_arguments
from dpselect.cli.reporting import output_path, report
from dpselect.progress import Meter
from dpselect.release import write_pmf

__all__ = ["run"]

NOTICE = "dpselect pmf reads scores without paying for it: its output is as private as they are"


def run(options: argparse.Namespace) -> None:
    """Compute, publish, report."""
    mechanism = make_mechanism(options)
    check_output(options)
    print(NOTICE, file=sys.stderr)
    with (
        named_options(),
        input_path(options) as table,
        output_path(options) as output,
        Meter(quiet=options.quiet) as progress,
    ):
        written = write_pmf(
            table,
            mechanism,
            output,
            **table_arguments(options),
            restart=options.restart or table != options.input,
            memory=options.memory,
            progress=progress,
        )
    facts: dict[str, object] = {
        n: getattr(written, n) for n in ("units", "picked", "skipped", "problems", "resumed")
    }
    facts |= {"seconds": round(written.seconds, 3), "mechanism": repr(mechanism)}
    facts["output"] = None if options.output is None else str(options.output)
    lines = [f"probabilities for {written.picked:,} {options.unit}s, in {written.seconds:.1f} s"]
    lines += [f"skipped {count:,}: {problem}" for problem, count in written.problems.items()]
    report(options, facts, lines)
