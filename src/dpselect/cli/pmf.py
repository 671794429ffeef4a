"""``dpselect pmf``: exact probabilities. Not private."""

import argparse
import sys

from dpselect.cli.options import input_path, make_layout, make_limits, make_mechanism, named_options, with_mechanism
from dpselect.cli.reporting import mechanism_lines, output_path, released_facts, report, skipped_lines
from dpselect.progress import Meter
from dpselect.release import write_pmf

__all__ = ["run"]

NOTICE = "not private: the result reveals the scores"


def run(options: argparse.Namespace) -> None:
    """Compute, publish, report."""
    print(NOTICE, file=sys.stderr)
    with (
        named_options(),
        input_path(options) as table,
        output_path(options) as output,
        Meter(quiet=options.quiet) as progress,
    ):
        layout, limits = make_layout(options), make_limits(options)
        options = with_mechanism(options, table)
        mechanism = make_mechanism(options)
        written = write_pmf(table, mechanism, output, layout=layout, limits=limits, progress=progress)
    line = f"probabilities for {written.picked:,} {options.unit}s, in {written.seconds:.1f} s"
    report(options, released_facts(options, written), [*mechanism_lines(options), line, *skipped_lines(written)])
