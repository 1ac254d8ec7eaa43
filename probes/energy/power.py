"""From a trace to power: the energy counter between its own ticks, checked against the power field.

```
energy counter   ▁▁▁▁▂▂▂▂▃▃▃▃▄▄▄▄▅▅▅▅▆▆▆▆▇▇▇▇      ticks every ~100 ms
window              |←───────────────────→|
used                  ↑ first tick     ↑ last tick    power = ΔE between ticks / Δt between ticks
```

Aligning to ticks removes the counter's quantisation; the remaining error is the polling interval at both ends.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.lazy import dataclass
from probes.sensors.interface import Reading

MIN_WINDOW_S = 3.0
"""Shortest window, in seconds, whose energy counts as good."""
MIN_TICKS = 10
AGREEMENT_RATIO = 0.05
"""Largest relative difference between counter and power field that does not count as inconsistent. For two steps on an
H100, whose phases were sampled unevenly, the instantaneous field differed by 6 and 8 %, the averaged field by 0.5 and
2 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerReading:
    """Power over one window."""

    mean_w: float | None
    """Mean power; None: unknown, see `reason`."""
    p95_w: float | None
    instant_mean_w: float | None
    average_mean_w: float | None
    window_s: float
    """Seconds between the ticks used; without a counter, the whole window."""
    ticks: int
    tick_period_s: float | None
    source: str
    """`counter`, `instant` or `none`."""
    quality: str | None
    """`ok`, `inconsistent`, `short` or `single` (only one source); None: unknown."""
    reason: str | None


def power_over(readings: Sequence[Reading], start_s: float, end_s: float) -> PowerReading:
    """Return the mean power between two times of a trace.

    Args:
        readings: in order of time; they may start before the window and end after it.
        start_s: start of the window, on the readings' clock.
        end_s: end of the window, on the readings' clock.
    """
    ticks = [(t, e) for t, e in counter_ticks(readings) if start_s <= t <= end_s]
    instant = _step_mean([(r.time_s, r.power_instant_w) for r in readings], start_s, end_s)
    average = _step_mean([(r.time_s, r.power_average_w) for r in readings], start_s, end_s)
    inside = [r.power_instant_w for r in readings if start_s <= r.time_s <= end_s and r.power_instant_w is not None]
    p95 = float(np.quantile(inside, 0.95)) if inside else None
    period = float(np.median(np.diff([t for t, _ in ticks]))) if len(ticks) > 2 else None
    unknown = PowerReading(
        mean_w=None, p95_w=p95, instant_mean_w=instant, average_mean_w=average, window_s=end_s - start_s,
        ticks=len(ticks), tick_period_s=None, source="none", quality=None,
        reason="neither the energy counter nor the power field could be read",
    )  # fmt: skip
    between_ticks_s = ticks[-1][0] - ticks[0][0] if len(ticks) > 1 else 0.0
    if between_ticks_s > 0:
        counter_w = (ticks[-1][1] - ticks[0][1]) / between_ticks_s
        fields_w = [field_w for field_w in (instant, average) if field_w is not None]
        nearest_w = min(fields_w, key=lambda field_w: abs(counter_w - field_w), default=None)
        quality = _quality(counter_w, nearest_w, end_s - start_s, len(ticks))
        reason = f"counter {counter_w:.0f} W, power field {nearest_w:.0f} W" if quality == "inconsistent" else None
        return replace(
            unknown, mean_w=counter_w, window_s=between_ticks_s, tick_period_s=period, source="counter",
            quality=quality, reason=reason,
        )  # fmt: skip
    if instant is not None:
        why = "the energy counter is missing or does not tick; the mean of the power field is used"
        quality = "single" if end_s - start_s >= MIN_WINDOW_S else "short"
        return replace(unknown, mean_w=instant, source="instant", quality=quality, reason=why)
    return unknown


def counter_ticks(readings: Sequence[Reading]) -> list[tuple[float, float]]:
    """Return time and energy of each reading at which the counter had advanced."""
    counter = [(r.time_s, r.energy_j) for r in readings if r.energy_j is not None]
    return [(t, e) for (_, before), (t, e) in itertools.pairwise(counter) if e != before]


def _quality(counter_w: float, field_w: float | None, window_s: float, ticks: int) -> str:
    if window_s < MIN_WINDOW_S or ticks < MIN_TICKS:
        return "short"
    if field_w is not None and abs(counter_w / field_w - 1.0) > AGREEMENT_RATIO:
        return "inconsistent"
    return "ok" if field_w is not None else "single"


def _step_mean(values: Sequence[tuple[float, float | None]], start_s: float, end_s: float) -> float | None:
    """Return the time-weighted mean of values that each hold until the next one."""
    known = [(t, v) for t, v in values if v is not None]
    total = weight = 0.0
    for i, (t, value) in enumerate(known):
        until = known[i + 1][0] if i + 1 < len(known) else end_s
        span = min(until, end_s) - max(t, start_s)
        if span > 0:
            total, weight = total + value * span, weight + span
    return total / weight if weight > 0 else None
