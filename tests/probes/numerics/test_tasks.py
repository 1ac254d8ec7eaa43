"""Every built-in task: real data, equal seeds, and a loss that falls."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from planner.errors import CannotMeasureError, UsageError
from probes.numerics.tasks import TASKS, USUAL, choose_tasks, find_task, missing_for

torch = pytest.importorskip("torch")

from probes.numerics.training import Run  # noqa: E402 - it needs torch
from tests.probes.numerics.planted import PLACE  # noqa: E402


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_a_task_learns_and_is_the_same_for_the_same_seed(task):
    if missing_for(task.id):
        pytest.skip("scikit-learn is not installed")
    run, same = Run(task, 3, PLACE), Run(task, 3, PLACE)
    first = run.figures([])

    losses = run.train(40).losses

    assert losses[:2] == same.train(2).losses
    assert set(first) == set(task.metrics)
    assert sum(losses[-5:]) / 5 < 0.9 * losses[0]
    assert run.figures([])["loss"] < first["loss"]
    assert task.data is None or task.data()


def test_the_default_tasks_answer_without_scikit_learn():
    chosen = choose_tasks(())

    assert chosen == tuple(name for name in USUAL if not missing_for(name))
    assert {"char-lm", "masked-lm"} <= set(chosen)


def test_a_named_task_that_cannot_be_trained_here_is_refused_with_what_helps():
    assert choose_tasks(["mine:make", "char-lm", "char-lm"]) == ("mine:make", "char-lm")
    with pytest.raises(UsageError, match="unknown task `nope`"):
        choose_tasks(["nope"])
    if find_spec("sklearn") is None:
        with pytest.raises(CannotMeasureError, match="scikit-learn is not installed") as refused:
            choose_tasks(["digits-cnn"])
        assert refused.value.hint == "pip install 'mpplan[numerics]'"
        with pytest.raises(CannotMeasureError, match="scikit-learn"):
            Run(find_task("digits-vit"), 0, PLACE)
    else:
        assert choose_tasks(["digits-cnn"]) == ("digits-cnn",)
