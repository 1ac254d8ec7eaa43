"""Runs that never were, with a known truth: their logs in a framework's format, read back."""

from __future__ import annotations

import io
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np

from planner.comparison.basis import Given
from planner.comparison.compare import Comparison, compare
from planner.models.catalogue import find_model
from planner.models.shape import ModelShape
from planner.runlog.log import RunLog
from planner.runlog.read import read_log
from planner.training.optimizers import find_optimizer
from planner.training.policies import default_policy
from planner.training.recipe import Recipe
from tests.planner.runlog.writers import BEGIN, megatron_line, text_of

LLAMA: ModelShape = find_model("llama-3-8b")


def recipe_of(model: ModelShape, method: str = "pretrain", seq_len: int = 8192, **more: Any) -> Recipe:
    """What a run of a model trains."""
    return Recipe(
        model=model, policy=default_policy("bf16"), optimizer=find_optimizer("adamw"), method=method, seq_len=seq_len,
        global_batch=128, **more,
    )  # fmt: skip


RECIPE = recipe_of(LLAMA)
TOKENS_PER_GPU = 128 * 8192 / 64
"""Of a step of `writers.LLAMA_8B`."""


def log_of(*blocks: list[str]) -> RunLog:
    """Lines, read back."""
    return read_log(io.BytesIO(text_of(*blocks)), "run.log")


def compared(log: RunLog, given: Given | None = None) -> Comparison:
    """A log without a plan."""
    return compare(log, None, given or Given())


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """The first half of a run, and how long the rest really took."""

    log: RunLog
    rest_s: float


def simulate(seed: int, *, steps: int = 600, stops_per_step: float = 0.0, stop_s: float = 300.0) -> Simulated:
    """Steps of 2 s whose noise lasts (an autocorrelation of 0.5, 4 %), and stops that lose up to 20 steps each."""
    draw = np.random.default_rng(seed)
    noise = np.zeros(steps)
    for step in range(1, steps):
        noise[step] = 0.5 * noise[step - 1] + 0.04 * draw.standard_normal()
    durations = 2.0 * (1.0 + noise)
    half, lines, at, step, half_at = steps // 2, [], BEGIN, 0, None
    while step < steps:
        at += timedelta(seconds=float(durations[step]))
        step += 1
        if half_at is None:
            lines.append(megatron_line(step, steps, float(durations[step - 1]), at))
        if half_at is None and step == half:
            half_at = at
        if draw.random() < stops_per_step:
            at += timedelta(seconds=float(draw.exponential(stop_s)))
            step = max(step - int(draw.integers(0, 20)), 0)
    assert half_at is not None
    return Simulated(log=log_of(lines), rest_s=(at - half_at).total_seconds())
