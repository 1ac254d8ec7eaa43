"""The clock that work holds, hot and at the power limit, and how far another one is from it.

Arithmetic takes time inversely to the clock; memory traffic does not. The clock of work that ran for seconds is its
own; that of a burst may be another's, since NVML tells it late.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from planner.records.measurement import Measurement

BURST_SD = 0.08
"""Relative standard deviation of a burst whose clock is unknown. A second of BF16 products on an H200 reaches 0.89 to
0.94 of a burst at the median, 0.81 to 1.04 at the 10th and 90th percentile of shapes (docs/kernels.md)."""
LEAST_RATIO = 0.55
"""Of two clocks of a busy device, the lower over the higher; below, one of them was read at rest."""


def median_clock_hz(points: Sequence[Measurement], belongs: Callable[[Measurement], bool]) -> float | None:
    """Median clock of those points that belong and ran hot for seconds; None where none was read."""
    clocks = [
        point.device_state.sm_clock_median_hz
        for point in points
        if point.sampling.regime == "sustained" and point.device_state.sm_clock_median_hz and belongs(point)
    ]
    return float(np.median(clocks)) if clocks else None


def clock_ratio(point: Measurement, sustained_hz: float | None) -> float | None:
    """Clock of a point over the sustained clock of its kind of work; None where either is unknown."""
    return clock_ratio_of(point.device_state.sm_clock_median_hz, sustained_hz)


def clock_ratio_of(clock_hz: float | None, reference_hz: float | None) -> float | None:
    """One clock over another; None where one is unknown or was read at rest."""
    if not clock_hz or not reference_hz:
        return None
    ratio = clock_hz / reference_hz
    return ratio if LEAST_RATIO <= ratio <= 1.0 / LEAST_RATIO else None


def known_sd(point: Measurement, ratio: float | None) -> float | None:
    """Relative standard error of a point's time; larger for a burst on a GPU whose clock is unknown."""
    own = point.time_relative_sd
    return own if ratio is not None or not is_burst(point) else float(np.hypot(own or 0.0, BURST_SD))


def is_burst(point: Measurement) -> bool:
    """Whether a point ran on a GPU for milliseconds at a time, at a clock that it might not hold."""
    return point.device.kind == "cuda" and point.sampling.regime == "burst"
