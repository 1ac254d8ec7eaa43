"""A task before its instruments: does FP32 train it at all, and do its seeds differ in their batches?"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch

from probes.numerics.tasks.interface import Task
from probes.numerics.training import Place, Run

TRIED_STEPS = 3
"""Of FP32, whose losses have to be finite."""


def first_broken_step(task: Task, place: Place) -> int | None:
    """The first of a few steps in FP32 whose loss is not finite, counted from 0; None where all are."""
    run = Run(task, 0, place)
    for step in range(TRIED_STEPS):
        loss, _ = run.one_step()
        if not math.isfinite(loss):
            return step
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
