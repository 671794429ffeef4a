"""``dpselect audit``: search for the neighbours on which a mechanism loses the most privacy."""

import argparse
import math
import sys

from dpselect.auditing import audit
from dpselect.cli.options import make_mechanism, read_list
from dpselect.cli.reporting import report
from dpselect.errors import UsageError
from dpselect.mechanisms.base import Mechanism
from dpselect.registry import UNSAFE, default_mechanism


def run(options: argparse.Namespace) -> int:
    """Audit and report; return 1 if the mechanism breaks its guarantee."""
    sensitivities = read_list("--sensitivities", options.sensitivities)
    options.mechanism = options.mechanism or default_mechanism(sensitivities=True).name
    found = audit(
        _mechanism(options),
        sensitivities,
        restarts=options.restarts,
        seed=options.seed,
        progress=False if options.quiet or not sys.stderr.isatty() else None,
    )
    facts = {
        "verdict": found.verdict,
        "loss": found.loss if math.isfinite(found.loss) else "infinite",
        "claimed": found.claimed,
        "pairs": found.pairs,
        "candidate": found.candidate,
        "scores": found.scores.tolist(),
        "neighbour": found.neighbour.tolist(),
    }
    if options.json:
        report(options, facts, [])
    else:
        print(found)
    return 1 if found.verdict == "violated" else 0


def _mechanism(options: argparse.Namespace) -> Mechanism:
    if options.mechanism not in UNSAFE:
        return make_mechanism(options)
    try:
        return UNSAFE[options.mechanism](epsilon=options.epsilon, **dict(options.parameter))
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from None
