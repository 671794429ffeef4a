"""``dpselect tune``: one private choice of the mechanism that suits all users best."""

import argparse

from dpselect.cli.options import (
    UsageError,
    as_command,
    as_options,
    input_path,
    named_options,
    open_payment,
    read_list,
    table_arguments,
)
from dpselect.cli.reporting import receipt_facts, receipt_lines, report
from dpselect.pools import default_pool
from dpselect.release import release_choice
from dpselect.tuning import choice_guarantee

__all__ = ["run"]


def run(options: argparse.Namespace) -> None:
    """Choose, pay and report."""
    cap = _cap(options)
    if options.on_bad_unit == "skip":
        raise UsageError("--on-bad-unit skip does not go with tune: the number of users must not depend on scores")
    if options.offset:
        raise UsageError("--offset does not go with tune")
    with named_options(), open_payment(options) as payment, input_path(options) as table:
        released = release_choice(
            table,
            options.epsilon,
            options.tuning_epsilon,
            cap=cap,
            power=options.power,
            **table_arguments(options),
            payment=payment,
            memory=options.memory,
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


def _cap(options: argparse.Namespace) -> float | tuple[float, float]:
    bounds = read_list("--cap", options.cap)
    if len(bounds) > 2:
        raise UsageError("--cap must be one number, or two with a comma between them: the lowest and the highest")
    try:
        choice_guarantee(options.tuning_epsilon)
        default_pool(options.epsilon)
    except ValueError as error:
        raise UsageError(f"--{error}".replace("tuning_epsilon", "tuning-epsilon")) from None
    return bounds[0] if len(bounds) == 1 else (bounds[0], bounds[1])
