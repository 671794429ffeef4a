"""How long a new user waits: ``make bench-start`` measures first calls in a fresh environment with empty caches.

Every time is that of a whole process, from its start to its end. It uses only the standard library, because it
runs before anything is installed.
"""

import contextlib
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import venv
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROUNDS = 5

ROW = (
    "import math, dpselect as dps; scores = [math.sin(i * i) for i in range(1000)]; "
    "widths = [0.01 + i % 17 for i in range(1000)]; mechanism = dps.MECHANISMS[{name!r}](epsilon=1.0); "
    "mechanism.{call}(scores, widths)"
)
BATCH = (
    "import numpy as np, dpselect as dps; scores = np.random.default_rng(0).normal(size=(10_000, 100)); "
    "dps.MECHANISMS[{name!r}](epsilon=1.0).select(scores, np.linspace(0.5, 2.0, 100))"
)
LARGE = (
    "import numpy as np, dpselect as dps; generator = np.random.default_rng(0); "
    "scores = generator.normal(size=(50_000, 500)); mechanism = dps.MECHANISMS[{name!r}](epsilon=1.0); "
    "mechanism.select(scores, generator.uniform(0.1, 1.0, 500))"
)
TABLE = (
    "import numpy as np, dpselect as dps, pyarrow as pa; generator = np.random.default_rng(0); n = 300_000; "
    "numbers = {{'user': np.arange(n) // 30, 'candidate': np.arange(n) % 30, 'score': generator.normal(size=n), "
    "'sensitivity': generator.uniform(0.1, 1.0, n)}}; order = generator.permutation(n); "
    "table = pa.table({{name: column[order] for name, column in numbers.items()}}); "
    "dps.select_table(table, dps.MECHANISMS[{name!r}](epsilon=1.0))"
)
OPENDP = (
    "import math, opendp.prelude as dp; dp.enable_features('contrib'); "
    "space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float); "
    "pick = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=2.0); "
    "pick([math.sin(i * i) for i in range(1000)])"
)
DIFFPRIVLIB = (
    "import math; from diffprivlib.mechanisms import PermuteAndFlip; "
    "PermuteAndFlip(epsilon=1.0, sensitivity=1.0, utility=[math.sin(i * i) for i in range(1000)]).randomise()"
)


class Environment:
    """A virtual environment of its own, with a few packages."""

    def __init__(self, folder: Path, *packages: str) -> None:
        venv.create(folder, with_pip=True)
        self.bin = folder / ("Scripts" if os.name == "nt" else "bin")
        install = [self.bin / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
        subprocess.run(install, check=True)
        self.folder = folder
        self._caches = itertools.count()
        self.run("import numpy")  # compile what pip has not

    @property
    def megabytes(self) -> float:
        """The size of what was installed, without pip."""
        files = (path for path in self.folder.rglob("*") if path.is_file() and not path.is_symlink())
        return sum(path.stat().st_size for path in files if "pip" not in path.parts) / 2**20

    def settings(self) -> dict[str, str]:
        """Return an environment without any setting of this machine, and with an empty cache."""
        names = {"PATH", "SYSTEMROOT", "LANG"}
        own = {name: value for name, value in os.environ.items() if name in names}
        return own | {"HOME": str(self.folder), "DPSELECT_CACHE": str(self.folder / f"cache{next(self._caches)}")}

    def run(self, script: str) -> float:
        """Run a script in a new process with an empty cache; return its time in seconds."""
        return self.time([str(self.bin / "python"), "-c", script])

    def time(self, command: list[str]) -> float:
        """Run a command with an empty cache; return its time in seconds."""
        settings = self.settings()
        start = time.perf_counter()
        subprocess.run(command, check=True, env=settings, stdout=subprocess.DEVNULL, cwd=self.folder)
        return time.perf_counter() - start

    def median(self, script: str) -> float:
        """Return the median time of a few runs."""
        return statistics.median(self.run(script) for _ in range(ROUNDS))


def measure_explorer(environment: Environment) -> float:
    """Return the time from the start of the explorer to the first numbers."""
    command = [str(environment.bin / "dpselect"), "explore", "--no-browser"]
    start = time.perf_counter()
    with _running(command, environment) as server:
        address = server.stdout.readline().split()[1]
        scenarios = json.loads(_ask(f"{address}scenarios.json"))
        first = next(iter(scenarios.values())) if isinstance(scenarios, dict) else scenarios[0]
        body = {name: first[name] for name in ("scores", "sensitivities")}
        answer = json.loads(_ask(f"{address}view", json.dumps(body).encode()))
        assert answer["probabilities"]  # noqa: S101
        return time.perf_counter() - start


def measure_report(folder: Path) -> float:
    """Return the time of a quick report in a new clone, whose kernels and packages are not there yet."""
    clone = folder / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)  # noqa: S607 - as a user calls it
    settings = os.environ | {"DPSELECT_CACHE": str(folder / "kernels")}
    start = time.perf_counter()
    subprocess.run(["make", "paper", "FAST=1"], check=True, env=settings, stdout=subprocess.DEVNULL, cwd=clone)  # noqa: S607
    return time.perf_counter() - start


@contextlib.contextmanager
def _running(command: list[str], environment: Environment) -> Iterator["subprocess.Popen[str]"]:
    settings = environment.settings()
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=settings, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()


def _ask(address: str, body: bytes | None = None) -> bytes:
    headers = {} if body is None else {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(address, body, headers), timeout=60) as answer:  # noqa: S310
        return answer.read()


def main() -> int:
    """Measure, and print a table."""
    rows: list[tuple[str, str, str, bool | None]] = []

    def report(what: str, goal: str, measured: str, reached: bool | None) -> None:  # noqa: FBT001
        rows.append((what, goal, measured, reached))
        print(f"  {what}: {measured}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as scratch:
        print("Installing dpselect, dpselect[cli], OpenDP and diffprivlib ...", file=sys.stderr, flush=True)
        core = Environment(Path(scratch) / "core", str(ROOT))
        report("core installation", "≤ 350 MB", f"{core.megabytes:.0f} MB", core.megabytes <= 350)
        cli = Environment(Path(scratch) / "cli", f"{ROOT}[cli]")
        peers = Environment(Path(scratch) / "peers", f"{ROOT}[peers]")

        numpy, imported = core.median("import numpy"), core.median("import dpselect")
        report("`import numpy`", "", f"{numpy:.2f} s", None)
        ratio = imported / numpy
        report("`import dpselect`", "≤ 1.3 × NumPy", f"{imported:.2f} s, {ratio:.1f} ×", ratio <= 1.3)
        report("first pick of OpenDP, 1,000 candidates", "", f"{peers.median(OPENDP):.2f} s", None)
        report("first pick of diffprivlib, 1,000 candidates", "", f"{peers.median(DIFFPRIVLIB):.2f} s", None)

        names = json.loads(
            subprocess.run(
                [core.bin / "python", "-c", "import json, dpselect; print(json.dumps(list(dpselect.MECHANISMS)))"],
                check=True,
                capture_output=True,
            ).stdout
        )
        for call in ("select", "pmf"):
            times = {name: core.median(ROW.format(name=name, call=call)) for name in names}
            slowest = max(times, key=times.__getitem__)
            measured = f"{statistics.median(times.values()):.2f} s; slowest {times[slowest]:.2f} s ({slowest})"
            report(
                f"first `{call}` of 1,000 candidates, every mechanism", "≤ 0.6 s", measured, times[slowest] <= 0.6
            )

        table = cli.folder / "scores.csv"
        table.write_text(
            "user,candidate,score,sensitivity\n" + "".join(f"u{i % 20},c{i},{i % 7},1\n" for i in range(200)),
            "utf-8",
        )
        command = [
            str(cli.bin / "dpselect"),
            "select",
            str(table),
            "--epsilon",
            "1",
            "--output",
            str(table.with_name("picks.csv")),
            "--overwrite",
        ]
        cold, warm = cli.time(command), statistics.median(cli.time(command) for _ in range(ROUNDS))
        report("`dpselect select` of a small CSV, first time", "≤ 1.0 s", f"{cold:.2f} s", cold <= 1.0)
        report("`dpselect select` of a small CSV, again", "≤ 0.6 s", f"{warm:.2f} s", warm <= 0.6)
        page = measure_explorer(core)
        report("explorer: first page with numbers", "≤ 2 s", f"{page:.2f} s", page <= 2.0)

        times = {name: core.run(BATCH.format(name=name)) for name in names}
        slowest = max(times, key=times.__getitem__)
        measured = f"{statistics.median(times.values()):.1f} s; slowest {times[slowest]:.1f} s ({slowest})"
        report("first batch of 10,000 × 100, every mechanism", "≤ 8 s", measured, times[slowest] <= 8.0)

        for what, place, script, goals in (
            ("batch of 50,000 × 500", core, LARGE, (8.0, 2.0)),
            ("table of 10,000 users × 30", cli, TABLE, (4.0, 1.0)),
        ):
            for name, goal in zip(("heterogeneous-rnm", "top-share"), goals, strict=True):
                seconds = statistics.median(place.run(script.format(name=name)) for _ in range(3))
                report(f"first {what}, {name}", f"≤ {goal:g} s", f"{seconds:.1f} s", seconds <= goal)

        seconds = measure_report(Path(scratch))
        report(
            "`make paper FAST=1` in a bare clone, with its installation",
            "≤ 100 s",
            f"{seconds:.0f} s",
            seconds <= 100,
        )

    print("| a new user's first … | goal | measured | |\n| --- | --- | --- | --- |")
    for what, goal, measured, reached in rows:
        print(f"| {what} | {goal} | {measured} | {'' if reached is None else '✓' if reached else '✗'} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
