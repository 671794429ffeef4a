"""A Spark cluster of two executors, one of which is killed in the middle of a job. Run as a program.

``python clusters.py FOLDER`` picks from the rows in FOLDER/rows.json and prints the picks as JSON, together with
what the killed executor (a Java process) and the others had computed: a dictionary from rows to picks for each. It
is a program of its own because a process has one cluster only.
"""

import json
import os
import signal
import subprocess
import sys
import zlib
from pathlib import Path

import dpselect as dps

KEY = bytes(range(32))
MECHANISM = dps.HeterogeneousNoisyMax(epsilon=2.0)
NAMES = ["user", "candidate", "score", "sensitivity"]
BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java options for short-lived programs: they halve the time."""


@dps.Mechanism.register
class ExecutorKiller:
    """A mechanism that records its picks, and kills the executor of the first task to reach a third batch."""

    count, least_size, uses_sensitivities, takes = None, 1, True, ()

    def __init__(self, mechanism, folder):
        self.mechanism, self.folder, self.calls = mechanism, str(folder), 0

    @property
    def guarantee(self):
        return self.mechanism.guarantee

    def select(self, scores, sensitivities, *, randomness=None):
        picks = self.mechanism.select(scores, sensitivities, randomness=randomness)
        values, bounds = scores
        if self.calls == 0:
            self.executor = find_executor()  # once for each task, which gets its own copy
        with (Path(self.folder) / f"{self.executor}.picks").open("a") as file:
            for start, end, pick in zip(bounds[:-1], bounds[1:], picks, strict=True):
                file.write(f"{zlib.crc32(values[start:end].tobytes())} {pick}\n")
        self.calls += 1
        if self.calls == 3:
            try:
                (Path(self.folder) / "killed").symlink_to(str(self.executor))  # immediately, and only once
            except FileExistsError:
                return picks
            os.kill(self.executor, signal.SIGKILL)
        return picks


def find_executor():
    """Return the process number of the executor that this Python worker belongs to."""
    process = os.getpid()
    while process > 1:
        command = ["ps", "-ww", "-o", "ppid=,args=", "-p", str(process)]
        parent, _, arguments = subprocess.check_output(command, text=True).strip().partition(" ")  # noqa: S603
        if "CoarseGrainedExecutorBackend" in arguments:
            return process
        process = int(parent)
    raise RuntimeError("this is no worker of an executor")


def make_home(folder):
    """Return a SPARK_HOME with the installed package's programs: the cluster writes logs below it."""
    import pyspark  # noqa: PLC0415 - an extra

    home = folder / "home"
    home.mkdir()
    for part in ("bin", "jars", "sbin"):
        (home / part).symlink_to(Path(pyspark.__file__).parent / part)
    return home


def run(folder):
    os.environ.update(SPARK_HOME=str(make_home(folder)), SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
    from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra

    from dpselect.engines.spark import select  # noqa: PLC0415

    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")  # two executors of one task and 1024 MB each
        .config("spark.ui.enabled", "false")
        .config("spark.executor.memory", "512m")
        .config("spark.driver.extraJavaOptions", BRIEF)
        .config("spark.executor.extraJavaOptions", BRIEF)
        .config("spark.sql.adaptive.enabled", "false")  # would put this few rows into one task
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "3")
        .config("spark.local.dir", f"{folder}/local")
        .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    frame = session.createDataFrame(json.loads((folder / "rows.json").read_text()), NAMES)
    notes = folder / "notes"
    notes.mkdir()
    rows = select(frame, ExecutorKiller(MECHANISM, notes), key=KEY).collect()
    session.stop()
    killed = notes / f"{(notes / 'killed').readlink().name}.picks"
    others = [noted(path) for path in notes.glob("*.picks") if path != killed]
    print(
        json.dumps(
            {
                "picks": {row["user"]: row["candidate"] for row in rows},
                "rows": len(rows),
                "killed": noted(killed),
                "others": {row: pick for each in others for row, pick in each.items()},
            }
        )
    )


def noted(path):
    return dict(line.split() for line in path.read_text().splitlines())


if __name__ == "__main__":
    run(Path(sys.argv[1]))
