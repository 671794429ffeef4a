"""``dpselect tune``: one private choice of the mechanism that suits all users best."""

import argparse

from dpselect.cli.options import (
    as_command,
    as_options,
    input_path,
    make_layout,
    make_limits,
    named_options,
    open_payment,
    read_list,
)
from dpselect.cli.reporting import receipt_facts, receipt_lines, report
from dpselect.errors import UsageError
from dpselect.release import Tuning, release_choice


def run(options: argparse.Namespace) -> None:
    """Choose, pay and report."""
    tuning = _tuning(options)
    if options.on_bad_unit == "skip":
        raise UsageError("--on-bad-unit skip does not go with tune: the number of users must not depend on scores")
    for role in ("offset", "weight"):
        if getattr(options, role):
            raise UsageError(f"--{role} does not go with tune")
    with named_options(), open_payment(options) as payment, input_path(options) as table:
        released = release_choice(
            table,
            tuning,
            layout=make_layout(options),
            payment=payment,
            limits=make_limits(options),
            progress=False if options.quiet else None,
        )
    found = released.tuned
    facts: dict[str, object] = {
        "mechanism": repr(found.mechanism),
        "options": as_options(found.mechanism),
        "cap": found.cap,
        "users": found.users,
        "tuning_epsilon": found.tuning.epsilon,
        "epsilon_with_picks": found.guarantee.epsilon,
    }
    if not options.json:
        print(found)
        print(as_command(found.mechanism, options.epsilon))
    report(options, facts | receipt_facts(released.receipt), receipt_lines(released.receipt))


def _tuning(options: argparse.Namespace) -> Tuning:
    low, *high = read_list("--cap", options.cap)
    if len(high) > 1:
        raise UsageError("--cap must be one number, or two with a comma between them: the lowest and the highest")
    try:
        tuning = Tuning(
            epsilon=options.epsilon,
            tuning_epsilon=options.tuning_epsilon,
            cap=(low, high[0]) if high else low,
            power=options.power,
        )
        tuning.guarantee  # noqa: B018 - it refuses a bad ε before any work
    except ValueError as error:
        raise UsageError(f"--{error}".replace("tuning_epsilon", "tuning-epsilon")) from None
    return tuning
