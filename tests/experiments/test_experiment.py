"""Every experiment is complete."""

import pytest

from experiments.experiment import FAST
from experiments.synthetic import EXPERIMENTS


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_labels_are_unique_and_texts_are_there(experiment):
    plan = experiment.plan(FAST)
    assert len({(task.table, task.label) for task in plan}) == len(plan)
    assert experiment.caption.endswith((".", "!"))
    assert experiment.description
    assert experiment.notes
