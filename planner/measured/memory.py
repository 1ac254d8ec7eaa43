"""Memory beyond tensors, as measured in a record: the CUDA context and the fragmentation of the allocator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median, stdev

from planner.measured.rates import MeasuredValue, Values
from planner.records.measurement import Measurement

TRAINING_KINDS = ("block", "end_to_end", "verify")
"""Kinds of points that hold the tensors of training."""
CONTEXT_SD = 0.1
"""Least relative standard deviation of a context (assumed): a job and a probe load different kernels and libraries."""
FRAGMENTATION_SD = 0.5
"""Least relative standard deviation of fragmentation (assumed). Fragmentation is measured in the third step of one
fixed shape, and grows with the number of steps and shapes."""


def context_bytes(points: Iterable[Measurement]) -> MeasuredValue | None:
    """Device memory in bytes that a training process uses outside its allocator: the median over whole steps."""
    steps = [point for point in points if point.kind in TRAINING_KINDS and point.memory.context_bytes]
    return _middle([point.memory.context_bytes or 0.0 for point in steps], steps, CONTEXT_SD)


def fragmentation_ratios(points: Iterable[Measurement]) -> Values:
    """Reserved minus allocated memory, over allocated memory, at the peak of whole steps, by mode: eager, compiled."""
    ratios: Values = {}
    steps = [point for point in points if point.kind in TRAINING_KINDS and point.status == "ok"]
    for mode, is_compiled in (("eager", False), ("compiled", True)):
        matching = [
            point
            for point in steps
            if bool(point.setup.compiled) is is_compiled
            and point.memory.reserved_peak_bytes
            and point.memory.allocated_peak_bytes
        ]
        value = _middle([_fragmentation(point) for point in matching], matching, FRAGMENTATION_SD)
        if value is not None:
            ratios[mode] = value
    return ratios


def _fragmentation(point: Measurement) -> float:
    reserved, allocated = point.memory.reserved_peak_bytes or 0.0, point.memory.allocated_peak_bytes or 1.0
    return max(reserved / allocated - 1.0, 0.0)


def _middle(values: Sequence[float], points: Sequence[Measurement], least_sd: float) -> MeasuredValue | None:
    """Median with the spread of single points, since a job is one more such point; None if no median is above 0."""
    middle = median(values) if values else 0.0
    if middle <= 0:
        return None
    spread = stdev(values) / middle if len(values) > 1 else 0.0
    return MeasuredValue(
        value=middle, relative_sd=max(spread, least_sd), probe_ids=tuple(point.probe_id for point in points)
    )
