"""Kept results: reused, resumed and forgotten."""

from dataclasses import replace

import pyarrow as pa
import pytest
from matplotlib.figure import Figure

from experiments import parts, runner
from experiments.experiment import FAST, FULL, Experiment, Task
from experiments.parts import Parts
from experiments.tables import read


def draw(data):
    figure = Figure()
    figure.subplots().plot(data["numbers"]["number"])
    return figure


class Lab:
    """An experiment of three steps that counts what it computes, and may be interrupted."""

    def __init__(self, interrupted_at=None):
        self.computed, self.interrupted_at = [], interrupted_at

    def step(self, number):
        if number == self.interrupted_at:
            raise KeyboardInterrupt
        self.computed.append(number)
        return pa.table({"number": [number]})

    def plan(self, _effort):
        return [
            Task(label=str(number), table="numbers", compute=lambda number=number: self.step(number))
            for number in range(3)
        ]

    def experiment(self):
        return Experiment(name="lab", title="Lab", caption="", description="", notes={}, plan=self.plan, draw=draw)


def numbers(directory):
    return read(directory / "tables" / "lab-numbers.csv")["number"].to_pylist()


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path):
    first, second = Lab(interrupted_at=2), Lab()
    with pytest.raises(KeyboardInterrupt):
        runner.run([first.experiment()], FAST, tmp_path)
    assert not (tmp_path / "report.html").exists()
    assert not (tmp_path / "tables").exists()
    runner.run([second.experiment()], FAST, tmp_path)
    assert (first.computed, second.computed) == ([0, 1], [2])
    assert numbers(tmp_path) == [0, 1, 2]
    assert "2 of 3 steps from earlier runs" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_second_run_computes_and_draws_nothing(tmp_path):
    runner.run([Lab().experiment()], FAST, tmp_path)
    drawn = (tmp_path / "figures" / "lab.svg").stat().st_mtime_ns
    again = Lab()
    runner.run([again.experiment()], FAST, tmp_path)
    assert again.computed == []
    assert (tmp_path / "figures" / "lab.svg").stat().st_mtime_ns == drawn


def test_a_missing_picture_is_drawn_again(tmp_path):
    runner.run([Lab().experiment()], FAST, tmp_path)
    (tmp_path / "figures" / "lab.svg").unlink()
    runner.run([Lab().experiment()], FAST, tmp_path)
    assert (tmp_path / "figures" / "lab.svg").exists()


def test_no_picture_of_other_tables_is_left_behind(tmp_path):
    for effort in (FULL, FAST):
        runner.run([Lab().experiment()], effort, tmp_path)
        drawn = {path.suffix[1:] for path in (tmp_path / "figures").iterdir()}
        assert drawn == set(effort.formats)


def test_another_effort_is_another_result_and_both_are_kept(tmp_path):
    labs = [Lab() for _ in range(3)]
    for lab, effort in zip(labs, (FAST, FULL, FAST), strict=True):
        runner.run([lab.experiment()], effort, tmp_path)
    assert [len(lab.computed) for lab in labs] == [3, 3, 0]


def test_more_formats_are_drawn_from_what_is_kept(tmp_path):
    labs = [Lab(), Lab()]
    for lab, formats in zip(labs, (("svg",), FULL.formats), strict=True):
        runner.run([lab.experiment()], replace(FAST, formats=formats), tmp_path)
    assert [len(lab.computed) for lab in labs] == [3, 0]
    assert {path.suffix[1:] for path in (tmp_path / "figures").iterdir()} == set(FULL.formats)


def test_changed_code_computes_again_and_forgets_what_the_old_code_found(tmp_path, monkeypatch):
    runner.run([Lab().experiment()], FAST, tmp_path)
    monkeypatch.setattr(parts, "_code_hash", lambda *_, **__: "other")
    again = Lab()
    runner.run([again.experiment()], FAST, tmp_path)
    assert again.computed == [0, 1, 2]
    assert [path.name for path in (tmp_path / "parts" / "lab").glob("*/")] == ["other"]


def test_tasks_that_would_share_a_result_are_refused(tmp_path):
    lab = Lab()
    experiment = lab.experiment()
    task = Task(label="same", table="numbers", compute=lambda: pa.table({"number": [1]}))
    object.__setattr__(experiment, "plan", lambda _: [task, task])
    with pytest.raises(ValueError, match="must differ in table or label"):
        runner.run([experiment], FAST, tmp_path)


def test_a_task_depends_on_its_own_module_and_on_what_that_imports_but_not_on_how_it_is_drawn():
    reached = parts._reachable("experiments.synthetic.layouts")
    assert {
        "experiments.synthetic.layouts",
        "experiments.synthetic.layout_search",
        "experiments.scenarios",
        "experiments.mechanisms",
        "experiments.trials",
    } <= reached
    assert not reached & {"experiments.drawing", "experiments.report", "experiments.synthetic.tilts"}


def test_what_a_task_depends_on_besides_code_is_part_of_its_name(tmp_path):
    kept = Parts(tmp_path, FAST, "drawing")
    for inputs, expected in (("a", 1), ("b", 2), ("a", 1)):
        task = Task(label="t", table="t", compute=lambda n=expected: pa.table({"n": [n]}), inputs=inputs)
        assert kept.table(task)["n"].to_pylist() == [expected]
    assert kept.reused == 1
