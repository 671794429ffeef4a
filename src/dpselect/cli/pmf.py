"""``dpselect pmf``: exact probabilities. Not private."""

import argparse
import sys
from contextlib import ExitStack

from dpselect.cli.batches import Run, report
from dpselect.cli.tables import check_output, make_mechanism, open_tables
from dpselect.engines.arrow import Weigher

__all__ = ["run"]

NOTICE = "dpselect pmf reads scores without paying for it: its output is as private as they are"


def run(options: argparse.Namespace) -> None:
    """Weigh, publish, report."""
    mechanism = make_mechanism(options)
    check_output(options)
    print(NOTICE, file=sys.stderr)
    scratch = None if options.output is None else options.output.resolve().parent
    with ExitStack() as stack:
        source, layout = open_tables(options, scratch)
        layout.check_schema(source.schema)
        job = Run(options, source, layout, stack)
        weigher = Weigher(mechanism, layout=layout)
        job.compute(weigher)
        job.publish(weigher.schema(source.schema))
        facts = job.summary() | {"mechanism": repr(mechanism)}
    lines = [f"probabilities for {facts['picked']:,} {options.unit}s, in {facts['seconds']:.1f} s"]
    lines += [f"skipped {count:,}: {problem}" for problem, count in facts["problems"].items()]
    report(options, facts, lines)
