"""``dpselect select``: one private pick for each unit."""

import argparse
from contextlib import ExitStack
from typing import Any

from dpselect.cli import one
from dpselect.cli.batches import Run, report
from dpselect.cli.inputs import Inputs
from dpselect.cli.payment import check_budget_options, open_payment
from dpselect.cli.tables import check_output, make_mechanism, open_tables
from dpselect.engines.arrow import PROBLEM, Selector
from dpselect.engines.distinct import DistinctUnits

__all__ = ["run"]


def run(options: argparse.Namespace) -> None:
    """Pick, pay, publish, report."""
    mechanism = make_mechanism(options)
    check_output(options)
    check_budget_options(options)
    if options.one:
        one.run(options, mechanism)
        return
    scratch = None if options.output is None else options.output.resolve().parent
    inputs = Inputs(options)
    with ExitStack() as stack:
        source, layout = open_tables(options, scratch)
        layout.check_schema(source.schema)
        payment = open_payment(options, inputs, mechanism, stack)
        job = Run(options, source, layout, stack)

        def compute(key: bytes) -> Selector:
            selector = Selector(mechanism, key, layout=layout)
            if source.units_are_distinct:
                job.compute(lambda batches: map(selector.select, batches))
                return selector
            with DistinctUnits() as seen:
                job.compute(
                    lambda batches: selector.over(batches, seen),
                    lambda done: seen.add(selector.addresses(picked_units(done, layout.unit))),
                )
            return selector

        selector = payment.pay_for(compute, job.job)
        job.publish(selector.schema(source.schema))
        facts = job.summary() | {"mechanism": repr(mechanism), "epsilon": mechanism.guarantee.epsilon}
        facts |= payment.facts()
        paid = payment.lines()
    lines = [f"{facts['picked']:,} picks with ε = {facts['epsilon']:g} each, in {facts['seconds']:.1f} s"]
    if facts["resumed"]:
        lines.append(f"{facts['resumed']:,} of them were there from an earlier run")
    lines += [f"skipped {count:,}: {problem}" for problem, count in facts["problems"].items()]
    report(options, facts, [*lines, *paid])


def picked_units(results: Any, unit: str) -> Any:  # noqa: ANN401 - Arrow
    """Return the units that got a pick."""
    column = results.column(unit)
    return column.filter(results.column(PROBLEM).is_null()) if PROBLEM in results.schema.names else column
