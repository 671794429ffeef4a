"""``dpselect select``: one private pick for each unit."""

import argparse
import os
import secrets
from contextlib import ExitStack
from pathlib import Path

from dpselect.cli.batches import Run, report
from dpselect.cli.tables import make_mechanism, open_tables
from dpselect.engines.arrow import Selector
from dpselect.engines.distinct import DistinctUnits

__all__ = ["run"]


def run(options: argparse.Namespace) -> None:
    """Pick, publish, report."""
    mechanism = make_mechanism(options)
    scratch = None if options.output is None else options.output.resolve().parent
    with ExitStack() as stack:
        source, layout = open_tables(options, scratch)
        layout.check_schema(source.schema)
        job = Run(options, source, layout, stack)
        key = job.job.key() if options.key_file is None else read_key(options.key_file)
        selector = Selector(mechanism, key, layout=layout)
        if source.units_are_distinct:
            job.compute(lambda batches: map(selector.select, batches))
        else:
            seen = stack.enter_context(DistinctUnits())
            job.compute(
                lambda batches: selector.over(batches, seen),
                lambda done: seen.add(selector.addresses(done.column(layout.unit))),
            )
        job.publish(selector.schema(source.schema))
        facts = job.summary() | {"mechanism": repr(mechanism), "epsilon": mechanism.guarantee.epsilon}
    lines = [f"{facts['picked']:,} picks with ε = {facts['epsilon']:g} each, in {facts['seconds']:.1f} s"]
    if facts["resumed"]:
        lines.append(f"{facts['resumed']:,} of them were there from an earlier run")
    lines += [f"skipped {count:,}: {problem}" for problem, count in facts["problems"].items()]
    report(options, facts, lines)


def read_key(path: Path) -> bytes:
    """Return the key in a file that only its owner can read; make one if there is none."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        if os.name == "posix" and path.stat().st_mode & 0o077:
            raise ValueError(f"the key file {path.name!r} must be readable by its owner only: chmod 600") from None
    else:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(32) + "\n")
    try:
        key = bytes.fromhex(path.read_text("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != 32:
        raise ValueError(f"the key file {path.name!r} must hold 64 hexadecimal digits")
    return key
