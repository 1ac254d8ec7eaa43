"""Energy of a trial, kept running in a hot steady state while a sampler reads the sensor.

```
        settle                 window (≥ 3 s)
 ────|─────────|───────────────────────────────────|──
     ▒▒▒▒▒▒▒▒▒▒█████████ ██████ ███████████ ████████      trial, in batches of about a quarter of a second
     ················································     sampler: every 10 ms
```

Energy per iteration is mean power times the median time of an iteration in the window; this keeps the boundaries of
iterations and of counter ticks apart. On A100 and H100, the power sensor samples only 25 of every 100 ms (Yang, Adamek
and Armour 2023, arXiv:2312.02741). Steps in phase with it would be sampled at the same phases again and again, so such
windows have short random pauses.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from contextlib import nullcontext
from functools import reduce
from operator import or_

import numpy as np

from planner.lazy import dataclass
from planner.records.figures import SLOWED_DOWN_MASK, DeviceState, EnergyUse, PowerDraw
from probes.device.clock import Batch, Clock, CpuClock
from probes.energy.power import PowerReading, power_over
from probes.precisions.interface import PrecisionRecipe
from probes.sensors.interface import Sensor, State, Trace
from probes.sensors.sampler import Sampler
from probes.timing.protocol import host_median_s, run_batches
from probes.timing.statistics import SampleSummary, summarise
from probes.timing.trial import Trial

SETTLE_S = 1.2
"""Seconds before an energy window: longer than the driver's one-second average, which would include earlier work."""
REHEAT_LIMIT_S = 8.0
"""Longest settling of a cooled device: it rests 3 to 25 s while the next step is tracked or compiled."""
NEAR_SOAK_K = 1.0
"""Distance from the end temperature of the heat soak that counts as hot again; NVML reports whole degrees."""
SENSED_S, SENSED_EVERY_S = 0.025, 0.1
"""Seconds for which the power sensor of A100 and H100 samples, and its period (arXiv:2312.02741)."""
UNSEEN_RATIO = 1 / 3
"""Share of a step that the sensor may miss; of a step of 50 ms, in phase with it, it samples half."""
LONGEST_PAUSE_S = 0.02
"""Longest pause after a batch of a quarter of a second: 12 of them shift a window of 3 s by one sensor period. The
device rests for 4 % of such a window, which reads 3 % low. Without pauses, a step of 100 ms with 700 W in one third and
400 W in the rest is read with an error of 22 % (root mean square over 200 simulated windows); with them, 5 %."""
BATCH_FACTORS = (0.7, 1.3)
"""Range of batch lengths, relative to the usual length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A period of sustained work or rest, with the readings taken during it."""

    timing: SampleSummary | None
    """None while idle."""
    phases_s: dict[str, float]
    """Median time by phase."""
    host_s: float | None
    """Median host time to launch one iteration; None if the clock does not report it."""
    power: PowerReading
    states: tuple[State, ...]
    trace: Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRules:
    """Length of a window, and what precedes it."""

    window_s: float
    """Length in seconds, without the settling time."""
    settle_s: float = SETTLE_S
    """Shortest settling time in seconds."""
    reheat_to_c: float | None = None
    """Temperature at the end of the heat soak, to which a cooled device is brought back; None: the device is measured
    as it is."""


def measure_window(
    trial: Trial,
    recipe: PrecisionRecipe,
    clock: Clock,
    sensor: Sensor | None,
    rules: WindowRules,
    *,
    guess_s: float,
    rng: random.Random,
) -> Window:
    """Run a trial through one window and return its times and readings.

    Args:
        trial: a warmed-up trial.
        recipe: activated before the first batch.
        clock: the clock of the device.
        sensor: the sensor of the device; None: only times are measured.
        rules: the rules of the window.
        guess_s: approximate time of an iteration.
        rng: draws lengths of batches and pauses.
    """
    with Sampler(sensor) if sensor else nullcontext() as sampler:
        step_s = _settle(trial, recipe, clock, sensor, rules, guess_s)
        has_field = sensor is not None and "power" not in sensor.missing
        pause_s = LONGEST_PAUSE_S if has_field and meets_the_same_phases(step_s, rules.window_s) else 0.0
        start = time.monotonic()
        batches: list[Batch] = []
        while clock.agree(time.monotonic() < start + rules.window_s):
            # A longer assumed step time makes a batch of fewer steps; this span is so short that one batch ends it.
            batches += run_batches(trial, recipe, clock, 1e-3, step_s * rng.uniform(*BATCH_FACTORS))
            time.sleep(rng.uniform(0.0, pause_s))
        end = time.monotonic()
    return _window(batches, sampler.trace if sampler else Trace(), start, end)


def reheat(trial: Trial, recipe: PrecisionRecipe, clock: Clock, sensor: Sensor | None, target_c: float | None) -> None:
    """Bring a device back to the temperature of its heat soak with a trial, as long as the trial makes it warmer."""
    rules = WindowRules(window_s=0.0, reheat_to_c=target_c)
    _settle(trial, recipe, clock, sensor, rules, _step_s(trial, recipe, clock))


def _step_s(trial: Trial, recipe: PrecisionRecipe, clock: Clock) -> float:
    """Return the time of one step of a warmed-up trial: on a GPU without matrix units for BF16, a canary takes so much
    longer than on Hopper that batches of Hopper's length would take many seconds.
    """
    recipe.activate()
    return min(clock.batch(trial, samples=2, iterations=1).samples_s)  # the first may include what happens only once


def measure_rest(trial: Trial, recipe: PrecisionRecipe, sensor: Sensor, window_s: float) -> Window:
    """Return the window of a trial that gives the device no work, and whose time means nothing."""
    clock, step_s = CpuClock(), 0.05
    with Sampler(sensor) as sampler:
        run_batches(trial, recipe, clock, SETTLE_S, step_s)
        start = time.monotonic()
        run_batches(trial, recipe, clock, window_s, step_s)
        end = time.monotonic()
    return _window([], sampler.trace, start, end)


def _window(batches: Sequence[Batch], trace: Trace, start: float, end: float) -> Window:
    states = tuple(state for state in trace.states if state.time_s >= start)
    names = dict.fromkeys(name for batch in batches for name in batch.phases_s)
    return Window(
        timing=summarise([s for batch in batches for s in batch.samples_s]) if batches else None,
        phases_s={
            name: float(np.median([t for batch in batches for t in batch.phases_s.get(name, ())])) for name in names
        },
        host_s=host_median_s(batches),
        power=power_over(trace.readings, start, end),
        states=states or trace.states,
        trace=trace,
    )


def _settle(
    trial: Trial, recipe: PrecisionRecipe, clock: Clock, sensor: Sensor | None, rules: WindowRules, guess_s: float
) -> float:
    """Run until the device is as hot as after the soak, or stops warming up; return the time of an iteration."""
    began = time.monotonic()
    last_c = _temperature_c(sensor)
    while True:
        batches = run_batches(trial, recipe, clock, rules.settle_s, guess_s)
        now_c = _temperature_c(sensor)
        is_hot = now_c is None or rules.reheat_to_c is None or now_c >= rules.reheat_to_c - NEAR_SOAK_K
        # A trial that draws less than the soak stays cooler: once it stops warming up, it is at its own temperature.
        warms_up = last_c is None or now_c is None or now_c > last_c
        if clock.agree(is_hot or not warms_up or time.monotonic() - began >= REHEAT_LIMIT_S):
            break
        last_c = now_c
    return float(np.median([s for batch in batches for s in batch.samples_s]))


def _temperature_c(sensor: Sensor | None) -> float | None:
    return sensor.state().temperature_c if sensor else None


def meets_the_same_phases(step_s: float, window_s: float) -> bool:
    """Return whether the power sensor, at its own pace, misses too much of a step during a whole window.

    A step shorter than the sensor's sampling time is always sampled completely, and a step of several sensor periods is
    sampled at several phases in any case.
    """
    if step_s > 3 * SENSED_EVERY_S:
        return False
    seen = np.sort(np.arange(0.0, window_s, SENSED_EVERY_S) % step_s)
    between = np.diff(seen, append=seen[0] + step_s)
    return bool(np.maximum(between - SENSED_S, 0.0).sum() > UNSEEN_RATIO * step_s)


def energy_use(power: PowerReading, scope: str, iteration_s: float | None) -> EnergyUse:
    """Return the energy of an iteration that takes `iteration_s`; None: there is no iteration (idle)."""
    return EnergyUse(
        j_per_iteration=None if power.mean_w is None or iteration_s is None else power.mean_w * iteration_s,
        window_s=power.window_s,
        ticks=power.ticks,
        tick_period_s=power.tick_period_s,
        source=power.source,
        quality=power.quality,
        scope=scope,
        reason=power.reason,
    )


def power_draw(power: PowerReading, *, idle: bool = False) -> PowerDraw:
    """Return the power of a window as a record holds it."""
    return PowerDraw(
        mean_w=power.mean_w,
        p95_w=power.p95_w,
        instant_mean_w=power.instant_mean_w,
        average_mean_w=power.average_mean_w,
        idle_w=power.mean_w if idle else None,
    )


def device_state(states: Sequence[State]) -> DeviceState:
    """Return temperatures, clocks and limits over a window as a record holds them; all None without a reading."""
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
        clock_event_mask=reduce(or_, masks) if masks else None,
        power_limit_w=last.power_limit_w,
    )


def slowed_down(states: Sequence[State]) -> bool:
    """Return whether heat or an external brake slowed the device down."""
    return any((state.clock_event_mask or 0) & SLOWED_DOWN_MASK for state in states)


def heat_soak(
    trial: Trial, recipe: PrecisionRecipe, clock: Clock, sensor: Sensor | None, *, limit_s: float = 25.0
) -> float | None:
    """Run a trial until the temperature rises by less than half a degree in five seconds.

    Power rises with temperature, and training runs hot, so everything is measured hot. Return the temperature at the
    end; None if it cannot be read.
    """
    began = time.monotonic()
    last: float | None = None
    step_s = _step_s(trial, recipe, clock)
    while clock.agree(time.monotonic() - began < limit_s):
        run_batches(trial, recipe, clock, 5.0 if sensor else limit_s / 3, step_s)
        now = _temperature_c(sensor)
        is_hot = now is None or (last is not None and now - last < 0.5)
        last = now
        if clock.agree(is_hot):
            break
    return last
