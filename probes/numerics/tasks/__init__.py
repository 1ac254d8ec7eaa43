"""Tasks to train. The built-in tasks are listed here; none of them downloads anything."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from planner.errors import CannotMeasureError, UsageError
from probes.numerics.tasks.digits import DIGITS_CNN, DIGITS_VIT
from probes.numerics.tasks.interface import Task
from probes.numerics.tasks.texts import CHAR_LM, CHAR_MOE, MASKED_LM

TASKS: tuple[Task, ...] = (CHAR_LM, DIGITS_CNN, DIGITS_VIT, MASKED_LM, CHAR_MOE)
"""All built-in tasks, in the order of their use."""
USUAL = ("char-lm", "digits-cnn", "masked-lm")
"""Trained if no task is named; those whose package is missing are left out, and the answer says so."""


def choose_tasks(names: Iterable[str]) -> tuple[str, ...]:
    """Return ids of tasks, built in or `module:factory`; without names, the usual ones that can be trained here.

    Raises:
        UsageError: a name is not a task.
        CannotMeasureError: the package that a named task needs is missing.
    """
    asked = tuple(dict.fromkeys(name.strip() for name in names if name.strip()))
    by_id = {task.id: task for task in TASKS}
    for name in asked:
        if ":" in name:
            continue
        if name not in by_id:
            raise UsageError(
                f"unknown task `{name}`", hint=f"use one of {', '.join(by_id)}, or your own as `module:factory`"
            )
        if (needs := by_id[name].needs) is not None and find_spec(needs) is None:
            raise CannotMeasureError(
                f"scikit-learn is not installed, and the task `{name}` needs it", hint="pip install 'mpplan[numerics]'"
            )
    return asked or tuple(name for name in USUAL if not missing_for(name))


def missing_for(name: str) -> str | None:
    """Return the package that a built-in task lacks here; None if it lacks none."""
    needs = {task.id: task.needs for task in TASKS}.get(name)
    return needs if needs is not None and find_spec(needs) is None else None


def find_task(name: str) -> Task:
    """Return the task of this name; the user's own task is imported.

    Raises:
        UsageError: the user's module or factory cannot be used.
    """
    if ":" in name:
        from probes.numerics.tasks.own import own_task

        return own_task(name)
    return {task.id: task for task in TASKS}[name]
