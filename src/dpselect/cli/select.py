"""``dpselect select``: a private pick or list for each unit, or one pick out of a whole table."""

import argparse

from dpselect.cli.options import (
    UsageError,
    check_output,
    input_path,
    make_list,
    make_mechanism,
    named_options,
    open_payment,
    table_arguments,
)
from dpselect.cli.reporting import output_path, receipt_facts, receipt_lines, report
from dpselect.mechanisms import Mechanism
from dpselect.progress import Meter
from dpselect.release import release_one, release_picks

__all__ = ["run"]


def run(options: argparse.Namespace) -> None:
    """Release and report."""
    mechanism = make_mechanism(options)
    released = mechanism
    if options.count is None and options.short_rows is not None:
        raise UsageError("--short-rows goes with --count: it is about lists")
    if options.count is not None:
        if options.one:
            raise UsageError("--count does not go with --one: picks out of a table in parts are single ones")
        released = make_list(options)
    check_output(options)
    facts, lines = _one(options, mechanism) if options.one else _picks(options, released)
    epsilon: dict[str, object] = {"mechanism": repr(released), "epsilon": released.guarantee.epsilon}
    output = {"output": None if options.output is None else str(options.output)}
    report(options, facts | epsilon | output, lines)


def _picks(options: argparse.Namespace, mechanism: Mechanism) -> tuple[dict[str, object], list[str]]:
    with (
        named_options(),
        open_payment(options) as payment,
        input_path(options) as table,
        output_path(options) as output,
        Meter(quiet=options.quiet) as progress,
    ):
        released = release_picks(
            table,
            mechanism,
            output,
            **table_arguments(options),
            payment=payment,
            overwrite=options.overwrite,
            restart=options.restart
            or table != options.input,  # a copy of the standard input is never the same file
            memory=options.memory,
            progress=progress,
        )
    names = ("units", "picked", "skipped", "problems", "resumed")
    facts = {name: getattr(released, name) for name in names} | {"seconds": round(released.seconds, 3)}
    price = f"ε = {mechanism.guarantee.epsilon:g}"
    what = "pick" if options.count is None else "list"
    several = "" if released.picked == 1 else "s"
    size = "" if options.count is None else f" of {options.count}"
    lines = [f"{released.picked:,} {what}{several}{size} with {price} each, in {released.seconds:.1f} s"]
    if released.resumed:
        lines.append(f"{released.resumed:,} of them come from an earlier run")
    lines += [f"skipped {count:,}: {problem}" for problem, count in released.problems.items()]
    return facts | receipt_facts(released.receipt), lines + receipt_lines(released.receipt)


def _one(options: argparse.Namespace, mechanism: Mechanism) -> tuple[dict[str, object], list[str]]:
    if options.by_position or options.offset or options.on_bad_unit == "skip":
        raise UsageError("--one goes with neither --by-position, --offset nor --on-bad-unit=skip")
    with (
        named_options(),
        open_payment(options) as payment,
        input_path(options) as table,
        output_path(options) as output,
        Meter(quiet=options.quiet) as progress,
    ):
        released = release_one(
            table,
            mechanism,
            output,
            **table_arguments(options),
            payment=payment,
            overwrite=options.overwrite,
            progress=progress,
        )
    facts: dict[str, object] = {"candidates": released.candidates, "seconds": round(released.seconds, 3)}
    price = f"ε = {mechanism.guarantee.epsilon:g}"
    lines = [f"one of {released.candidates:,} candidates with {price}, in {released.seconds:.1f} s"]
    return facts | receipt_facts(released.receipt), lines + receipt_lines(released.receipt)
