"""Clocks that work sustains when hot and at the power limit, and ratios between clocks.

The time of arithmetic is inversely proportional to the clock; the time of memory traffic does not depend on it. The
clock read for work that ran for seconds is its own. The clock read for a burst may be that of the work before it,
because NVML reports clocks late.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from planner.records.measurement import Measurement

BURST_SD = 0.08
"""Relative standard deviation of the time of a burst whose clock is unknown. One second of BF16 products on an H200
reaches 0.89 to 0.94 of the rate of a burst at the median shape, and 0.81 to 1.04 at the 10th and 90th percentiles of
shapes (docs/kernels.md)."""
LEAST_RATIO = 0.55
"""Least ratio of two clocks of a busy device, lower over higher. Below it, one of them was read while it was idle."""


def median_clock_hz(points: Sequence[Measurement], belongs: Callable[[Measurement], bool]) -> float | None:
    """Median clock of the points that `belongs` accepts and that ran hot for seconds; None if no clock was read."""
    clocks = [
        point.device_state.sm_clock_median_hz
        for point in points
        if point.sampling.regime == "sustained" and point.device_state.sm_clock_median_hz and belongs(point)
    ]
    return float(np.median(clocks)) if clocks else None


def clock_ratio(point: Measurement, sustained_hz: float | None) -> float | None:
    """Clock of a point over the sustained clock of its kind of work; None as in `clock_ratio_of`."""
    return clock_ratio_of(point.device_state.sm_clock_median_hz, sustained_hz)


def clock_ratio_of(clock_hz: float | None, reference_hz: float | None) -> float | None:
    """Ratio of a clock to a reference clock; None if either is unknown or was read while the device was idle."""
    if not clock_hz or not reference_hz:
        return None
    ratio = clock_hz / reference_hz
    return ratio if LEAST_RATIO <= ratio <= 1.0 / LEAST_RATIO else None


def known_sd(point: Measurement, ratio: float | None) -> float | None:
    """Relative standard error of a point's time, with `BURST_SD` added for a GPU burst whose clock ratio is None."""
    sampled_sd = point.time_relative_sd
    return sampled_sd if ratio is not None or not is_burst(point) else float(np.hypot(sampled_sd or 0.0, BURST_SD))


def is_burst(point: Measurement) -> bool:
    """Whether a point ran on a GPU for milliseconds at a time, at a clock that it might not hold."""
    return point.device.kind == "cuda" and point.sampling.regime == "burst"
