"""A run in a separate process: its memory is measured separately and freed afterwards."""

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from tqdm import tqdm

from experiments.recommender import pipeline
from experiments.recommender.datasets import Run

__all__ = ["execute_alone"]


def execute_alone(run: Run, folder: Path, output: Path) -> Path:
    """Run in a separate process and return the folder of the tables."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as process:
        return process.submit(_execute, run, folder, output).result()


def _execute(run: Run, folder: Path, output: Path) -> Path:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    bar: tqdm[Any]
    with tqdm(total=100, desc=run.title, file=sys.stderr, unit="%", leave=False, disable=None) as bar:
        return pipeline.execute(run, folder, output, _teller(run, bar))


def _end_with_parent() -> None:
    """End this process when its parent ends. Kept results are complete at any time."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _teller(run: Run, bar: "tqdm[Any]") -> Callable[[str, float], None]:
    """Return a function that shows progress: a bar on a terminal, a line for each stage elsewhere."""
    said: set[str] = set()

    def say(stage: str, share: float) -> None:
        if bar.disable:
            if stage not in said:
                said.add(stage)
                print(f"{run.title}: {stage}", file=sys.stderr, flush=True)
            return
        bar.set_postfix_str(stage, refresh=False)
        bar.update(100 * share - bar.n)

    return say
