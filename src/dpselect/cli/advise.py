"""``dpselect advise``: rank mechanisms from what is public."""

import argparse

from dpselect.advice import advise
from dpselect.cli.options import as_command, as_options, read_list
from dpselect.cli.reporting import report
from dpselect.errors import UsageError


def run(options: argparse.Namespace) -> None:
    """Rank and report."""
    if options.sensitivities is None and (options.correlation, options.spread) != (None, None):
        raise UsageError("--correlation and --spread need --sensitivities")
    widths = None if options.sensitivities is None else read_list("--sensitivities", options.sensitivities)
    found = advise(widths, options.epsilon, correlation=options.correlation, spread=options.spread)
    if not options.json:
        print(found)
        print(f"\n{as_command(found.best, options.epsilon)}")
        return
    rows = [
        {"mechanism": repr(row.mechanism), "options": as_options(row.mechanism)}
        | {"error": row.error, "of_random": row.of_random}
        for row in found.ranking
    ]
    facts = {"best": repr(found.best), "options": as_options(found.best), "assumption": found.assumption}
    report(options, facts | {"notes": found.notes, "rows": rows}, [])
