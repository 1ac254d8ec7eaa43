"""Checks of a task: whether FP32 trains it at all, and whether its seeds train on different batches.

The first is checked before the instruments run, and again if FP16 skipped most steps.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence

import torch

from planner.errors import UsageError
from planner.measured.skipped_steps import MOST_SKIPPED_RATIO
from probes.numerics.instruments.scaling import loss_scaling
from probes.numerics.instruments.time import Keep, Plain, TimeBudget, count_of
from probes.numerics.tasks.interface import Task
from probes.numerics.training import Place, Run

TRIED_STEPS = 3
"""Number of first steps in FP32 whose losses must be finite."""
CONTROL_STEPS, CONTROL_LEAST_S = 100, 2.0
"""Steps in FP32, and the least seconds for them, which show whether FP16 or the task is at fault for skipped steps."""
EXPLODED = 10.0
"""A loss has exploded once it has grown by this many times its first value, which counts as at least 1 (nat)."""
REMEDY = "look for NaN in its batches, log(0), a division by zero, or too high a learning rate"


class UntrainedError(UsageError):
    """FP32 itself does not train a task, so findings on that task say nothing about any precision."""


def first_broken_step(task: Task, place: Place) -> int | None:
    """Return the first of a few FP32 steps, counted from 0, whose loss is not finite; None if all are finite."""
    run = Run(task, 0, place)
    for step in range(TRIED_STEPS):
        loss, _ = run.one_step()
        if not math.isfinite(loss):
            return step
    return None


def loss_scaling_with_fp32_control(task: Task, place: Place, budget: TimeBudget, keep: Keep) -> Plain:
    """Measure loss scaling on a task. If FP16 skipped most steps, FP32 must train the task for as many steps.

    Raises:
        UntrainedError: FP32 does not train it, so the skipped steps say nothing about FP16.
    """
    scaling = loss_scaling(task, place, budget, keep)
    default_run = next((run for run in scaling["dynamic"] if run["name"] == "usual"), None)
    if (
        default_run is None
        or (default_run["late_skipped_step_ratio"] or 0.0) <= MOST_SKIPPED_RATIO > default_run["skipped_step_ratio"]
    ):
        return scaling
    steps = min(default_run["steps"], CONTROL_STEPS)
    deadline = time.monotonic() + max(budget.left_s, CONTROL_LEAST_S)
    control = keep("fp32", lambda: {"why": breakdown(Run(task, 0, place).train(steps, deadline).losses)})
    if control["why"] is not None:
        raise UntrainedError(f"--task: `{task.id}`: FP32 itself does not train it: {control['why']}", hint=REMEDY)
    return scaling


def breakdown(losses: Sequence[float]) -> str | None:
    """Describe how the losses of a run show that nothing was trained; None if they do not."""
    for step, loss in enumerate(losses):
        if not math.isfinite(loss):
            return f"no finite loss from step {step}"
        if loss - losses[0] > EXPLODED * max(abs(losses[0]), 1.0):
            return f"the loss grows from {losses[0]:.3g} to {loss:.3g} in {count_of(step, 'step')}"
    return None


def same_batch(first: object, second: object) -> bool:
    """Return whether two batches, nested ones included, are equal; values that cannot be compared differ."""
    if isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor):
        return first.shape == second.shape and bool(torch.equal(first, second))
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(same_batch(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(same_batch, first, second))
    try:
        return type(first) is type(second) and bool(first == second)
    except (TypeError, ValueError, RuntimeError):
        return False
