"""``dpselect audit``: look for violations of a claim in a mechanism, or in any selector that can be imported."""

import argparse
import math
from typing import Any

from dpselect.auditing import check
from dpselect.cli.options import load_object, make_mechanism, read_list
from dpselect.cli.reporting import report
from dpselect.errors import UsageError
from dpselect.registry import UNSAFE, default_mechanism


def run(options: argparse.Namespace) -> int:
    """Check and report; return 1 if the selector breaks its promise, or breaks down."""
    widths = read_list("--sensitivities", options.sensitivities)
    found = check(_selector(options), widths, epsilon=options.epsilon, draws=options.draws)
    facts: dict[str, Any] = {
        **{name: getattr(found, name) for name in ("verdict", "claimed", "pairs", "draws", "tried", "notes")},
        "broken": [f"{text}{where}" for text, where in found.broken.items()],
    }
    if found.worst is not None:
        facts["loss"] = found.worst.loss if math.isfinite(found.worst.loss) else "infinite"
        facts["candidate"] = found.worst.candidate
        facts |= {name: getattr(found.worst, name).tolist() for name in ("scores", "neighbour", "sensitivities")}
    if options.json:
        report(options, facts, [])
    else:
        print(found)
    return 0 if found.verdict == "no violation found" else 1


def _selector(options: argparse.Namespace) -> Any:  # noqa: ANN401 - anyone's
    if options.selector is not None:
        if options.mechanism is not None:
            raise UsageError("--mechanism does not go with a selector of your own; leave one out")
        loaded = load_object(options.selector)
        return loaded(options.epsilon) if isinstance(loaded, type) else loaded
    options.mechanism = options.mechanism or default_mechanism(sensitivities=True)[0].name
    if options.mechanism not in UNSAFE:
        return make_mechanism(options)
    try:
        return UNSAFE[options.mechanism](epsilon=options.epsilon, **dict(options.parameter))
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from None
