"""Time that the host takes to launch a step of eager code, which is a lower bound of the step time.

Every operation passes through Python, autograd and the dispatcher before its kernel is queued. The time for this is a
property of the machine, so all steps of a record are evidence for it, whatever they compute. An implementation may need
more per kernel (FP8 operands are wrapped in objects); its own steps show how much more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from planner.lazy import dataclass
from planner.measured.kernels import COMPUTE, HIGH, usable
from planner.measured.layers.workloads import PointWork, work_of
from planner.measured.rates import HostTime, MeasuredRates
from planner.records.measurement import Measurement

COMPILED_KERNELS = (10.0, 20.0)
"""Approximate number of kernels of a compiled layer, forward and backward."""
EAGER_CAST_KERNELS, COMPILED_CAST_KERNELS = 8.0, 2.0
"""Number of kernels of one cast to FP8, in eager and in compiled code."""
END_AND_UPDATE_KERNELS = 60.0
"""Approximate number of kernels of embedding, output layer, loss and update in one step of eager code. Plans count
them without the update."""
OPERATION_LAUNCH_RATIO = 4.0
"""Host time of an operation, with dispatch and autograd, over that of a bare kernel launch. It is used if a record does
not hold the host time of operations. Measured: 4.6 on the host of an H100, at most 4.1 on that of an H200
(docs/probing.md)."""
STEPS = ("end_to_end", "verify")
"""Kinds of points that are whole steps of a library's models, like the steps that are predicted."""
SCALE_SD, SAMPLE_SD = 0.3, 0.2
"""Assumed standard deviations of the logarithm: of implementations about the line of their record, and of one sample of
a machine's host time."""
MOST_STEPS = 120
"""Most steps that a line is fitted to, since every pair of them is tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """The kernels of one step and the host time that their launches took."""

    kernels: float
    """Approximate number of kernels."""
    host_s: float
    """Time that the host took to launch them."""


def layer_kernels(work: PointWork, recipe: str) -> tuple[float, float]:
    """Approximate number of kernels of the layers, forward and backward."""
    per_layer = COMPILED_KERNELS if work.compiled else work.eager_kernels
    forward, backward = (work.layers * count for count in per_layer)
    if COMPUTE.get(recipe, recipe) in HIGH:
        cast = COMPILED_CAST_KERNELS if work.compiled else EAGER_CAST_KERNELS
        casts = cast * sum(product.count for product in work.products if product.low)
        forward, backward = forward + 2.0 * casts, backward + 4.0 * casts
    return forward, backward + (forward if work.recompute else 0.0)


def step_kernels(work: PointWork, recipe: str) -> float:
    """Approximate number of kernels of a whole step."""
    return sum(layer_kernels(work, recipe)) + END_AND_UPDATE_KERNELS


def launched(point: Measurement, work: PointWork) -> Launched | None:
    """Kernels and host time of a point; None if the record does not hold its host time.

    The host time is at most the step time, because in a sequence of steps the host launches one step per step time.
    """
    host_s, whole_s = point.time.host_median_s, point.time.median_s
    if host_s is None:
        return None
    return Launched(kernels=step_kernels(work, point.setup.recipe or ""), host_s=min(host_s, whole_s or host_s))


def with_host(rates: MeasuredRates, points: Sequence[Measurement]) -> MeasuredRates:
    """Add the host time of a record to its rates, for predictions of steps."""
    return replace(rates, host=host_line(points))


def host_line(points: Sequence[Measurement]) -> HostTime | None:
    """Fit the host time of eager 16-bit and 32-bit steps to their number of kernels; None if a record holds none."""
    steps = [
        step
        for kind in STEPS
        for point in usable(points, kind)
        if COMPUTE.get(point.setup.recipe or "", "") not in HIGH
        and not point.setup.compiled
        and (work := work_of(point)) is not None
        and (step := launched(point, work)) is not None
    ]
    return _least_absolute(steps[-MOST_STEPS:]) if steps else None


def _least_absolute(steps: Sequence[Launched]) -> HostTime:
    """Fit the line with the least sum of absolute log errors, so that a delayed host counts only as one outlier.

    Such a line passes through two of the points (exactly for relative errors, nearly for logarithms). The search
    therefore tries all pairs of points, and each point together with the origin.
    """
    counts = np.array([step.kernels for step in steps])
    seconds = np.array([step.host_s for step in steps])
    first, second = np.triu_indices(len(steps), k=1)
    distinct = counts[first] != counts[second]
    first, second = first[distinct], second[distinct]
    launch_s = (seconds[first] - seconds[second]) / (counts[first] - counts[second])
    step_s = seconds[first] - launch_s * counts[first]
    launch_s, step_s = np.append(launch_s, seconds / counts), np.append(step_s, np.zeros(len(steps)))
    is_time = (launch_s >= 0.0) & (step_s >= 0.0)
    launch_s, step_s = launch_s[is_time], step_s[is_time]
    errors = np.abs(np.log((step_s[:, None] + launch_s[:, None] * counts) / seconds)).sum(axis=1)
    best = int(np.argmin(errors))
    return HostTime(step_s=float(step_s[best]), launch_s=float(launch_s[best]))


def host_time(own_steps: Iterable[Launched | None], longest_launch_s: float, rates: MeasuredRates) -> HostTime:
    """Host time for steps of one implementation.

    Args:
        own_steps: steps of the implementation; None for a step whose host time is unknown.
        longest_launch_s: upper bound of the time of one launch, since no step was shorter than all of its launches.
        rates: rates of the same record.
    """
    steps = [step for step in own_steps if step is not None]
    line = rates.host or (_least_absolute(steps) if steps else None)
    if line is None:
        bare_s = rates.launch_s.value if rates.launch_s else 0.0
        return HostTime(step_s=0.0, launch_s=min(OPERATION_LAUNCH_RATIO * bare_s, longest_launch_s))
    logs = [np.log(step.host_s / line.seconds(step.kernels)) for step in steps]
    weight = len(logs) / (len(logs) + (SAMPLE_SD / SCALE_SD) ** 2)
    scale = float(np.exp(weight * np.median(logs))) if logs else 1.0
    return HostTime(step_s=scale * line.step_s, launch_s=scale * line.launch_s)
