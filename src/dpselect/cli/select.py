"""``dpselect select``: a private pick or list for each unit, or out of a whole table."""

import argparse
import dataclasses

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
from dpselect.cli.reporting import output_path, report
from dpselect.errors import UsageError
from dpselect.progress import Meter
from dpselect.release import Released, release


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
    report(options, _facts(options, released), _lines(options, released))


def _facts(options: argparse.Namespace, released: Released) -> dict[str, object]:
    """Return what was published and paid, for programs."""
    return {
        **{name: getattr(released, name) for name in ("units", "picked", "skipped", "problems")},
        "seconds": round(released.seconds, 3),
        "mechanism": repr(released.mechanism),
        **({"reason": options.reason} if "reason" in options else {}),
        "output": None if options.output is None else str(options.output),
        "epsilon": released.mechanism.guarantee.epsilon,
        **(dataclasses.asdict(released.receipt) if released.receipt else {}),
    }


def _lines(options: argparse.Namespace, released: Released) -> list[str]:
    """Return what was published and paid, for people."""
    what = "pick" if options.count is None else "list"
    several = "" if released.picked == 1 else "s"
    size = "" if options.count is None else f" of {options.count}"
    epsilon, receipt = released.mechanism.guarantee.epsilon, released.receipt
    lines = [f"--mechanism {options.mechanism}: {options.reason}"] if "reason" in options else []
    lines += [f"{released.picked:,} {what}{several}{size} with ε = {epsilon:g} each, in {released.seconds:.1f} s"]
    lines += [f"skipped {count:,}: {problem}" for problem, count in released.problems.items()]
    if receipt is not None:
        paid = "charged to" if receipt.charged else "already charged to"
        spent = f"ε = {receipt.epsilon_spent:g} of {receipt.epsilon_cap:g} spent"
        lines.append(f"{paid} {receipt.population!r}: {spent}")
    return lines
