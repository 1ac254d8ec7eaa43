"""Energy of a trial: kept running in the hot steady state while a sampler reads the sensor.

```
        settle                 window (≥ 3 s)
 ────|─────────|───────────────────────────────────|──
     ▒▒▒▒▒▒▒▒▒▒████████████████████████████████████      trial, in batches of a quarter of a second
     ················································     sampler: every 10 ms
```

Energy per iteration is mean power times the median time of an iteration in the window, which keeps the boundaries of
iterations and of counter ticks apart.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.records.figures import DeviceState, EnergyUse, PowerDraw
from probes.device.clock import Clock
from probes.energy.power import PowerReading, power_over
from probes.precisions.interface import PrecisionRecipe
from probes.sensors.interface import Sensor, State, Trace
from probes.sensors.sampler import Sampler
from probes.timing.protocol import run_steadily
from probes.timing.statistics import SampleSummary, summarise
from probes.timing.trial import Trial

SETTLE_S = 1.2
"""Before a window: longer than the driver's one-second average, which else still holds what ran before."""
SLOWDOWN_MASK = 0x8 | 0x20 | 0x40 | 0x80
"""Clock event reasons that mean a forced slow-down; 0x4, the power cap, is normal under sustained load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One energy window."""

    timing: SampleSummary | None
    """None while idle."""
    power: PowerReading
    states: tuple[State, ...]
    trace: Trace


def measure_window(
    trial: Trial,
    recipe: PrecisionRecipe,
    clock: Clock,
    sensor: Sensor,
    *,
    window_s: float,
    guess_s: float,
    idle: bool = False,
) -> Window:
    """Run a trial through one window.

    Args:
        trial: warmed up.
        recipe: set before the first batch.
        clock: of the device.
        sensor: of the device.
        window_s: length of the window; the settling time comes on top.
        guess_s: about how long an iteration takes.
        idle: True where the trial is to rest, so that its time means nothing.
    """
    with Sampler(sensor) as sampler:
        run_steadily(trial, recipe, clock, SETTLE_S, guess_s)
        start = time.monotonic()
        batches = run_steadily(trial, recipe, clock, window_s, guess_s)
        end = time.monotonic()
    trace = sampler.trace
    states = tuple(state for state in trace.states if state.time_s >= start)
    return Window(
        timing=None if idle else summarise([s for batch in batches for s in batch.samples_s]),
        power=power_over(trace.readings, start, end),
        states=states or trace.states,
        trace=trace,
    )


def energy_use(power: PowerReading, scope: str, iteration_s: float | None) -> EnergyUse:
    """Energy of an iteration that takes `iteration_s`; None: there is no iteration (idle)."""
    known = power.mean_w is not None and iteration_s is not None
    return EnergyUse(
        j_per_iteration=power.mean_w * iteration_s if known else None,  # type: ignore[operator]
        window_s=power.window_s,
        ticks=power.ticks,
        tick_period_s=power.tick_period_s,
        source=power.source,
        quality=power.quality,
        scope=scope,
        reason=power.reason,
    )


def power_draw(power: PowerReading, *, idle: bool = False) -> PowerDraw:
    """The power of a window, as a record holds it."""
    return PowerDraw(
        mean_w=power.mean_w,
        p95_w=power.p95_w,
        instant_mean_w=power.instant_mean_w,
        average_mean_w=power.average_mean_w,
        idle_w=power.mean_w if idle else None,
    )


def device_state(states: Sequence[State]) -> DeviceState:
    """Temperatures, clocks and limits over a window, as a record holds them; all None without a reading."""
    if not states:
        return DeviceState()
    clocks = [state.sm_clock_hz for state in states if state.sm_clock_hz is not None]
    masks = [state.clock_event_mask for state in states if state.clock_event_mask is not None]
    last = states[-1]
    return DeviceState(
        temperature_start_c=states[0].temperature_c,
        temperature_end_c=last.temperature_c,
        memory_temperature_c=last.memory_temperature_c,
        sm_clock_median_hz=float(np.median(clocks)) if clocks else None,
        sm_clock_min_hz=min(clocks) if clocks else None,
        memory_clock_hz=last.memory_clock_hz,
        clock_event_mask=int(np.bitwise_or.reduce(masks)) if masks else None,
        power_limit_w=last.power_limit_w,
    )


def slowed_down(states: Sequence[State]) -> bool:
    """Whether heat or an external brake slowed the device down."""
    return any((state.clock_event_mask or 0) & SLOWDOWN_MASK for state in states)


def heat_soak(
    trial: Trial, recipe: PrecisionRecipe, clock: Clock, sensor: Sensor | None, *, limit_s: float = 25.0
) -> float:
    """Run a trial until the temperature rises by less than half a degree in five seconds; returns the seconds it took.

    Power rises with temperature, and training runs hot, so everything is measured hot.
    """
    began = time.monotonic()
    last: float | None = None
    while time.monotonic() - began < limit_s:
        run_steadily(trial, recipe, clock, 5.0 if sensor else limit_s / 3, 2e-3)
        now = sensor.state().temperature_c if sensor else None
        if now is None or (last is not None and now - last < 0.5):
            break
        last = now
    return time.monotonic() - began
