"""Windows of training that a tool metered as a whole: windows of Zeus, runs of CodeCarbon."""

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
    """One metered window."""

    name: str
    """Name of the window, as given by the person who metered it."""
    seconds: float
    """Length, positive."""
    gpu_j: float
    """Energy of all GPUs together, positive."""
    gpus: int
    """Number of GPUs that were metered."""


def window_point(role: str, name: str, windows: Sequence[Window], training: Training) -> ImportedPoint:
    """Combine windows of one name into a point with the median of their times and their mean power per GPU.

    Args:
        role: `step` if each window is a training step, otherwise a name for its content.
        name: name of the point.
        windows: at least one, all with the same number of GPUs.
        training: description of the training.
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
