"""Stretches of training that a tool metered as a whole: windows of Zeus, runs of CodeCarbon."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.imported.formats.power import METERED_SD, STEP_SD, shape_of
from planner.imported.reading import ImportedPoint, Training, statistics_of
from planner.lazy import dataclass
from planner.records.communication import Communication
from planner.records.figures import EnergyUse, PowerDraw, Sampling
from planner.records.work import RunSetup


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One stretch."""

    name: str
    """What it spans, in the words of who metered it."""
    seconds: float
    """Positive."""
    gpu_j: float
    """Energy of all GPUs together, positive."""
    gpus: int
    """GPUs that were metered."""


def window_point(role: str, name: str, windows: Sequence[Window], training: Training) -> ImportedPoint:
    """Windows of one name as one point: the median of their times, their mean power on each GPU.

    Args:
        role: `step` where each window is a step of training, else what it spans.
        name: of the point.
        windows: at least one, all of as many GPUs.
        training: what was trained.
    """
    time = statistics_of([window.seconds for window in windows])
    total_s = sum(window.seconds for window in windows)
    mean_w = sum(window.gpu_j / window.gpus for window in windows) / total_s
    return ImportedPoint(
        name=name,
        kind="training",
        setup=RunSetup(role=role, precision=training.precision),
        shape=shape_of(training),
        communication=Communication(world=windows[0].gpus),
        time=time,
        sampling=Sampling(samples=len(windows), regime="sustained"),
        energy=EnergyUse(
            j_per_iteration=mean_w * (time.median_s or 0.0), window_s=total_s, source="counter", quality="single",
            scope="board",
        ),
        power=PowerDraw(
            mean_w=mean_w, p95_w=float(np.quantile([w.gpu_j / w.gpus / w.seconds for w in windows], 0.95))
        ),
        sd_ratio=STEP_SD,
        power_sd_ratio=METERED_SD,
    )  # fmt: skip
