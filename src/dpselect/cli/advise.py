"""``dpselect advise``: rank mechanisms from what is public."""

import argparse

from dpselect import rules
from dpselect.advice import advise
from dpselect.cli.options import as_command, as_options, named_options, read_list
from dpselect.cli.reporting import report
from dpselect.errors import UsageError
from dpselect.release import Layout


def run(options: argparse.Namespace) -> None:
    """Rank and report."""
    found = advise(
        _sensitivities(options),
        options.epsilon,
        correlation=options.correlation,
        spread=options.spread,
        power=options.power,
    )
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


def _sensitivities(options: argparse.Namespace) -> list[float] | None:
    if options.sensitivities is not None and options.candidates is not None:
        raise UsageError("give --sensitivities or a table with --candidates, not both")
    if options.sensitivities is not None:
        return read_list("--sensitivities", options.sensitivities)
    if options.candidates is None:
        if options.correlation is not None or options.spread is not None:
            raise UsageError("--correlation and --spread need --sensitivities, or a table with --candidates")
        return None
    with named_options():
        given = Layout(candidate=options.candidate, sensitivity=options.sensitivity, candidates=options.candidates)
        layout, _ = given.open_candidates()
    name = layout.sensitivity
    if not layout.is_joined(name):
        raise UsageError(f"--sensitivity must name a column of --candidates, not {name!r}")
    numbers: list[float] = layout.candidates[name].to_pylist()
    if None in numbers:
        raise ValueError(f"column {name!r} {rules.PRESENT.words}")
    return numbers
