"""Advice on the command line agrees with itself, and its options can be pasted."""

import json
import os

import pytest

import dpselect as dps
from dpselect.advice import advise
from dpselect.cli import main
from dpselect.cli.arguments import build_parser
from dpselect.cli.options import as_options, make_mechanism
from dpselect.pools import default_pool


@pytest.mark.parametrize(
    "mechanism", [*default_pool(0.7), dps.NoisyMax(0.7, monotone=True, noise="gumbel")], ids=repr
)
def test_the_options_of_a_mechanism_can_be_pasted(mechanism):
    epsilon = ["--epsilon", "0.7"]
    options = build_parser().parse_args(["select", "scores.csv", *epsilon, *as_options(mechanism).split()])
    assert make_mechanism(options) == mechanism


@pytest.mark.parametrize(
    ("epsilon", "correlation"),
    [(0.1, None), (0.1, 0.3), (1 / 3, -0.9), (1.0, None), (1.0, 0.9), (5.0, -0.3), (20.0, 0.0), (20.0, None)],
)
def test_advice_agrees_with_itself(epsilon, correlation, capsys):
    widths = [0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0]
    stated = [] if correlation is None else [f"--correlation={correlation}"]
    command = ["advise", "--epsilon", repr(epsilon), "--sensitivities", ",".join(map(str, widths)), *stated]
    assert main(command) == 0
    shown = capsys.readouterr().out
    found = advise(widths, epsilon, correlation=correlation)
    pasted = build_parser().parse_args(shown.splitlines()[-1].split()[1:])
    assert make_mechanism(pasted) == found.best
    errors = {row.mechanism: row.error for row in found.ranking}
    for line in shown.splitlines():
        if line.startswith("(") and " mechanisms: " in line:
            table = shown.split("\n\n")[1].splitlines()
            assert line == f"({len(table) - 2} of {len(errors)} mechanisms: the default and the best)"
    if correlation is not None:
        assert errors[found.best] <= 1.01 * min(errors.values())
    else:
        best = next(row for row in found.ranking if row.mechanism == found.best)
        assert not [row for row in found.ranking if row.error < 0.99 * best.error and row.worst < best.worst]


def test_advice_in_json_has_the_options_of_every_mechanism(capsys):
    assert main(["advise", "--epsilon", "1", "--sensitivities", "1,0.5", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["options"] in {row["options"] for row in facts["rows"]}
    assert os.linesep not in facts["options"]


def test_without_sensitivities_a_row_is_one_persons(capsys):
    assert main(["advise", "--epsilon", "4"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Use top share")
    pasted = build_parser().parse_args(shown.splitlines()[-1].split()[1:])
    assert make_mechanism(pasted) == dps.TopShare(4.0)
    assert main(["advise", "--epsilon", "4", "--correlation", "0.5"]) == 2
    assert "--correlation and --spread need --sensitivities" in capsys.readouterr().err
