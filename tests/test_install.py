"""The page on installing names every extra, and its walk through PostgreSQL runs as it stands."""

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import pyarrow.csv
import pytest
from postgres import find_programs, run_as

import dpselect as dps

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/guide/install.md").read_text("utf-8")


def test_the_page_names_every_extra_with_what_it_adds_and_a_size():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.* \| \d+ MB \| .*) \|$", PAGE, flags=re.MULTILINE))
    ours = set(re.findall(r"`(\w+)`", PAGE.partition("for work on dpselect itself")[2].partition("##")[0])) - {
        "make"
    }
    assert rows.keys() | ours == extras.keys()
    assert not rows.keys() & ours
    for name, row in rows.items():
        for requirement in extras[name]:
            project = re.match(r"dpselect\[(\w+)\]|([\w-]+)", requirement)
            assert (project[1] or project[2]).lower() in row.lower(), (
                name,
                requirement,
            )


def test_the_first_line_of_the_page_works():
    [command] = re.findall(r'python -c "(.*)"\n', PAGE)
    found = subprocess.run([sys.executable, "-c", command], check=True, capture_output=True, text=True)  # noqa: S603
    assert found.stdout in {"tea\n", "rum\n"}


def test_the_version_of_the_wheel_is_the_present_one():
    assert f"dpselect-{dps.__version__}-py3-none-any.whl" in PAGE


@pytest.mark.services
def test_from_an_empty_server_to_a_charged_release():
    shell = "".join(re.findall(r"```bash\n(.*?)```", PAGE, flags=re.DOTALL))
    [code] = re.findall(r"```py\n(.*?)```", PAGE, flags=re.DOTALL)
    [stop] = re.findall(r"`(pg_ctl [^`]* stop)`", PAGE)
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        programs = Path(folder) / "programs"
        programs.mkdir()
        for name in ("initdb", "pg_ctl"):  # as root they refuse to run
            (programs / name).write_text(
                f'#!/bin/sh\nexec {" ".join(run_as(folder))} {find_programs() / name} "$@"\n'
            )
        (programs / "dpselect").write_text(f'#!/bin/sh\nexec {sys.executable} -m dpselect "$@"\n')
        for program in programs.iterdir():
            program.chmod(0o755)
        again = 'dpselect budget show "$BUDGET" --keys keys --json > spent.json'
        (Path(folder) / "summer.py").write_text(code)
        script = f"set -eu\ntrap '{stop}' EXIT\n{shell}\n{sys.executable} summer.py\n{again}\n"
        path = os.pathsep.join([str(programs), os.environ["PATH"]])
        subprocess.run(["bash", "-c", script], check=True, cwd=folder, env=os.environ | {"PATH": path})  # noqa: S603, S607
        picks = pyarrow.csv.read_csv(Path(folder) / "picks.csv").to_pydict()
        assert picks["user"] == ["ann", "bob"]
        assert set(picks["candidate"]) <= {"tea", "rum"}
        spent = json.loads((Path(folder) / "spent.json").read_text("utf-8"))
        assert spent["populations"][0]["epsilon_spent"] == 3.0
