"""``dpselect budget``: populations, caps, and what was spent."""

import argparse
import dataclasses

from dpselect.budget import Ledger, Statement
from dpselect.cli.reporting import report
from dpselect.guarantees import ANY_SCORES, SAME_DIRECTION, WITHIN_SENSITIVITIES

RELATIONS = {"any": ANY_SCORES, "within": WITHIN_SENSITIVITIES, "same-direction": SAME_DIRECTION}


def run(options: argparse.Namespace) -> None:
    """Create a population, or show some."""
    if options.action == "create":
        with Ledger.create(options.ledger, keys=options.keys) as ledger:
            relation = RELATIONS[options.neighbours]
            ledger.add_population(
                options.population, epsilon=options.epsilon, delta=options.delta, neighbours=relation
            )
            statement = ledger.statement(options.population)
        report(options, _facts(statement), _lines(statement))
        return
    with Ledger.open(options.ledger, keys=options.keys) as ledger:
        names = [options.population] if options.population else ledger.populations()
        statements = [ledger.statement(name) for name in names]
    lines = [line for statement in statements for line in _lines(statement)]
    if options.json:
        report(options, {"populations": [_facts(statement) for statement in statements]}, lines)
    else:
        print("\n".join(lines or ["no populations"]))


def _facts(statement: Statement) -> dict[str, object]:
    releases = [
        {f.name: getattr(r, f.name) for f in dataclasses.fields(r) if f.name not in {"guarantee", "key", "charged"}}
        | {"epsilon": r.guarantee.epsilon}
        for r in statement.releases
    ]
    return {
        "population": statement.population,
        "epsilon_cap": statement.epsilon_cap,
        "delta_cap": statement.delta_cap,
        "neighbours": statement.neighbours,
        "epsilon_spent": statement.epsilon_spent,
        "releases": releases,
    }


def _lines(statement: Statement) -> list[str]:
    cap = f"ε = {statement.epsilon_spent:g} of {statement.epsilon_cap:g}"
    share = f" at δ = {statement.delta_cap:g}" if statement.delta_cap else ""
    count = len(statement.releases)
    lines = [f"{statement.population}: {cap} is spent{share}, in {count} release{'s' * (count != 1)}"]
    lines.append(f"  for {statement.neighbours}")
    for release in statement.releases:
        times = f" × {release.units_per_person}" if release.units_per_person > 1 else ""
        what = f": {release.what}" if release.what else ""
        line = f"  {release.made}  {release.name}  ε = {release.guarantee.epsilon:g}{times}  by {release.who}{what}"
        lines += [line, f"      {release.mechanism}, key {release.key_id}"]
    return lines
