"""``dpselect select``: a private pick or list for each unit, or out of a whole table."""

import argparse

from dpselect.cli.options import (
    input_path,
    make_layout,
    make_limits,
    make_list,
    make_mechanism,
    named_options,
    open_payment,
    with_mechanism,
)
from dpselect.cli.reporting import (
    mechanism_lines,
    output_path,
    receipt_facts,
    receipt_lines,
    released_facts,
    report,
    skipped_lines,
)
from dpselect.errors import UsageError
from dpselect.progress import Meter
from dpselect.release import release


def run(options: argparse.Namespace) -> None:
    """Release and report."""
    if options.count is None and options.short_rows is not None:
        raise UsageError("--short-rows goes with --count: it is about lists")
    with (
        named_options(),
        open_payment(options) as payment,
        input_path(options) as table,
        output_path(options) as output,
        Meter(quiet=options.quiet) as progress,
    ):
        layout, limits = make_layout(options), make_limits(options)
        options = with_mechanism(options, table)
        mechanism = make_mechanism(options) if options.count is None else make_list(options)
        released = release(
            table, mechanism, output, layout=layout, payment=payment, limits=limits, progress=progress
        )
    epsilon = mechanism.guarantee.epsilon
    facts = released_facts(options, released) | {"epsilon": epsilon} | receipt_facts(released.receipt)
    what = "pick" if options.count is None else "list"
    several = "" if released.picked == 1 else "s"
    size = "" if options.count is None else f" of {options.count}"
    line = f"{released.picked:,} {what}{several}{size} with ε = {epsilon:g} each, in {released.seconds:.1f} s"
    report(
        options,
        facts,
        [*mechanism_lines(options), line, *skipped_lines(released), *receipt_lines(released.receipt)],
    )
