"""Accuracy of a power meter: the same power read over windows of several lengths and by several methods.

The reference is the counter between its ticks over the whole steady trace. `edges` reads the counter at both ends of a
window and divides by its length, as Zeus does; `ticks` is our method; `instant` and `average` are the means of the
driver's power fields.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np

from planner.lazy import dataclass
from probes.energy.power import power_over
from probes.sensors.interface import Reading

LENGTHS_S = (0.5, 1.0, 3.0, 10.0)
METHODS = ("edges", "ticks", "instant", "average")
STRIDE_S = 0.13
"""Seconds between the starts of windows: not a multiple of a counter's period, so that every phase occurs."""
BEFORE_S = 1.0
"""Readings up to this long before a window are kept, since the last of them holds at its start; sensors are read more
often than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterError:
    """Relative errors of one method at one window length, against the reference."""

    method: str
    length_s: float
    windows: int
    median_abs_error: float
    p95_abs_error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterCheck:
    """Accuracy of each method on one steady trace."""

    reference_w: float
    tick_period_s: float
    field_period_s: float | None
    """Median time between changes of the instantaneous field."""
    instant_over_counter: float | None
    """Mean of the instantaneous field over the reference, for the whole trace."""
    average_over_counter: float | None
    errors: tuple[MeterError, ...]


def check_meter(readings: Sequence[Reading], start_s: float, end_s: float) -> MeterCheck | None:
    """Compare the methods on a trace of steady power; return None if its counter does not tick.

    Args:
        readings: in order of time.
        start_s: start of the steady part.
        end_s: end of the steady part.
    """
    whole = power_over(readings, start_s, end_s)
    if whole.source != "counter" or whole.mean_w is None or whole.tick_period_s is None:
        return None
    errors = []
    times = [reading.time_s for reading in readings]
    for length_s in LENGTHS_S:
        starts = np.arange(start_s, end_s - length_s, STRIDE_S)
        windows = [_means(_near(readings, times, t, t + length_s), t, t + length_s) for t in starts.tolist()]
        for method in METHODS:
            wrong = [abs(mean / whole.mean_w - 1.0) for means in windows if (mean := means[method]) is not None]
            if wrong:
                errors.append(
                    MeterError(
                        method=method,
                        length_s=length_s,
                        windows=len(wrong),
                        median_abs_error=float(np.median(wrong)),
                        p95_abs_error=float(np.quantile(wrong, 0.95)),
                    )
                )
    return MeterCheck(
        reference_w=whole.mean_w,
        tick_period_s=whole.tick_period_s,
        field_period_s=_field_period(readings),
        instant_over_counter=_over(whole.instant_mean_w, whole.mean_w),
        average_over_counter=_over(whole.average_mean_w, whole.mean_w),
        errors=tuple(errors),
    )


def _near(readings: Sequence[Reading], times: Sequence[float], start_s: float, end_s: float) -> Sequence[Reading]:
    """Return the readings that a window needs, so that a long trace is not searched for each of its windows."""
    return readings[bisect_left(times, start_s - BEFORE_S) : bisect_right(times, end_s) + 1]


def _means(readings: Sequence[Reading], start_s: float, end_s: float) -> dict[str, float | None]:
    """Return the mean power of one window by each of `METHODS`."""
    power = power_over(readings, start_s, end_s)
    return {
        "edges": _edges(readings, start_s, end_s),
        "ticks": power.mean_w if power.source == "counter" else None,
        "instant": power.instant_mean_w,
        "average": power.average_mean_w,
    }


def _edges(readings: Sequence[Reading], start_s: float, end_s: float) -> float | None:
    """Return the counter at the end minus the counter at the start, over the length."""
    counter = [(r.time_s, r.energy_j) for r in readings if r.energy_j is not None]
    times = [t for t, _ in counter]
    first, last = bisect_right(times, start_s) - 1, bisect_right(times, end_s) - 1
    if first < 0 or last < 0:
        return None
    return (counter[last][1] - counter[first][1]) / (end_s - start_s)


def _field_period(readings: Sequence[Reading]) -> float | None:
    powers = [(r.time_s, r.power_instant_w) for r in readings if r.power_instant_w is not None]
    changes = [t for (_, a), (t, b) in itertools.pairwise(powers) if a != b]
    return float(np.median(np.diff(changes))) if len(changes) > 2 else None


def _over(a: float | None, b: float) -> float | None:
    return a / b if a is not None else None
