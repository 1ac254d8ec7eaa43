"""Does FP32 train a task at all, before its instruments and where FP16 fails; do its seeds differ in their batches?"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence

import torch

from planner.errors import UsageError
from planner.measured.skipped_steps import MOST_SKIPPED_RATIO
from probes.numerics.instruments.scaling import loss_scaling
from probes.numerics.instruments.time import Keep, Plain, Slice, count_of
from probes.numerics.tasks.interface import Task
from probes.numerics.training import Place, Run

TRIED_STEPS = 3
"""First steps in FP32, whose losses have to be finite."""
CONTROL_STEPS, CONTROL_LEAST_S = 100, 2.0
"""Steps in FP32, and the least time for them, where FP16 took hardly any: is it FP16, or the task?"""
EXPLODED = 10.0
"""A loss has exploded once it has grown by so many times what it was, or what counts as one nat."""
REMEDY = "look for NaN in its batches, log(0), a division by zero, or too high a learning rate"


class UntrainedError(UsageError):
    """FP32 itself does not train a task, so that nothing found with it says anything of a precision."""


def first_broken_step(task: Task, place: Place) -> int | None:
    """The first of a few steps in FP32 whose loss is not finite, counted from 0; None where all are."""
    run = Run(task, 0, place)
    for step in range(TRIED_STEPS):
        loss, _ = run.one_step()
        if not math.isfinite(loss):
            return step
    return None


def scaled_beside_fp32(task: Task, place: Place, until: Slice, keep: Keep) -> Plain:
    """Loss scaling on a task; where FP16 took hardly a step, FP32 has to train the task for as many.

    Raises:
        UntrainedError: it does not, so that what FP16 skipped says nothing of FP16.
    """
    scaling = loss_scaling(task, place, until, keep)
    usual = next((run for run in scaling["dynamic"] if run["name"] == "usual"), None)
    if usual is None or (usual["late_skipped_step_ratio"] or 0.0) <= MOST_SKIPPED_RATIO > usual["skipped_step_ratio"]:
        return scaling
    steps = min(usual["steps"], CONTROL_STEPS)
    deadline = time.monotonic() + max(until.left_s, CONTROL_LEAST_S)
    control = keep("fp32", lambda: {"why": breakdown(Run(task, 0, place).train(steps, deadline).losses)})
    if control["why"] is not None:
        raise UntrainedError(f"--task: `{task.id}`: FP32 itself does not train it: {control['why']}", hint=REMEDY)
    return scaling


def breakdown(losses: Sequence[float]) -> str | None:
    """How the losses of a run show that nothing was trained; None where they do not."""
    for step, loss in enumerate(losses):
        if not math.isfinite(loss):
            return f"no finite loss from step {step}"
        if loss - losses[0] > EXPLODED * max(abs(losses[0]), 1.0):
            return f"the loss grows from {losses[0]:.3g} to {loss:.3g} in {count_of(step, 'step')}"
    return None


def same_batch(first: object, second: object) -> bool:
    """Whether two batches hold the same, inside tuples, lists and mappings too; what cannot be compared differs."""
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
