"""Memory beyond tensors, as a record measured it: the CUDA context, and what the allocator breaks up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median, stdev

from planner.measured.rates import MeasuredValue, Values
from planner.records.measurement import Measurement

TRAINING_KINDS = ("block", "end_to_end", "verify")
"""Kinds whose tensors are those of training."""
CONTEXT_SD = 0.1
"""Least relative standard deviation of a context (assumed): a job loads other kernels and libraries than the probe."""
FRAGMENTATION_SD = 0.5
"""Least relative standard deviation of fragmentation (assumed): it is that of a third step of one fixed shape, and
grows with steps and shapes."""


def context_bytes(points: Iterable[Measurement]) -> MeasuredValue | None:
    """Device memory of a training process that its allocator does not hold, bytes: median over whole steps."""
    found = [point for point in points if point.kind in TRAINING_KINDS and point.memory.context_bytes]
    return _middle([point.memory.context_bytes or 0.0 for point in found], found, CONTEXT_SD)


def fragmentation_ratios(points: Iterable[Measurement]) -> Values:
    """Reserved beyond allocated memory over allocated memory at the peak of whole steps, by mode: eager, compiled."""
    ratios: Values = {}
    steps = [point for point in points if point.kind in TRAINING_KINDS and point.status == "ok"]
    for mode, is_compiled in (("eager", False), ("compiled", True)):
        found = [
            point
            for point in steps
            if bool(point.setup.compiled) is is_compiled
            and point.memory.reserved_peak_bytes
            and point.memory.allocated_peak_bytes
        ]
        value = _middle([_fragmentation(point) for point in found], found, FRAGMENTATION_SD)
        if value is not None:
            ratios[mode] = value
    return ratios


def _fragmentation(point: Measurement) -> float:
    reserved, allocated = point.memory.reserved_peak_bytes or 0.0, point.memory.allocated_peak_bytes or 1.0
    return max(reserved / allocated - 1.0, 0.0)


def _middle(values: Sequence[float], points: Sequence[Measurement], least_sd: float) -> MeasuredValue | None:
    """The median with the spread of single points, which the next one shares; None without a point."""
    middle = median(values) if values else 0.0
    if middle <= 0:
        return None
    spread = stdev(values) / middle if len(values) > 1 else 0.0
    return MeasuredValue(
        value=middle, relative_sd=max(spread, least_sd), probe_ids=tuple(point.probe_id for point in points)
    )
