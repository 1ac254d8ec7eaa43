"""Energy of a window: mean power times the time of an iteration, and what the states say about heat and clocks."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("torch")

from planner.records.figures import DeviceState
from probes.device.clock import Batch, CpuClock
from probes.energy import window as windows
from probes.energy.window import (
    SENSED_EVERY_S,
    SENSED_S,
    WindowRules,
    device_state,
    energy_use,
    heat_soak,
    measure_rest,
    measure_window,
    meets_the_same_phases,
    power_draw,
    reheat,
    slowed_down,
)
from probes.precisions import recipe_by_id
from probes.sensors import ReplaySensor
from probes.sensors.interface import Reading, State, Trace
from probes.timing.trial import CallTrial

WATTS = 420.0
FP32 = recipe_by_id("fp32")
STATES = (
    State(time_s=0.0, temperature_c=50.0, sm_clock_hz=1.98e9, clock_event_mask=0, power_limit_w=700.0),
    State(time_s=0.5, temperature_c=61.0, sm_clock_hz=1.5e9, clock_event_mask=4, power_limit_w=700.0),
    State(time_s=1.0, temperature_c=66.0, sm_clock_hz=1.7e9, clock_event_mask=0, power_limit_w=700.0),
)


def sensor() -> ReplaySensor:
    """A counter that ticks every 5 ms at constant power for 60 s (synthetic); who polls it late is that much off."""
    readings = tuple(
        Reading(time_s=i / 200, energy_j=i / 200 * WATTS, power_instant_w=WATTS, power_average_w=WATTS)
        for i in range(12_001)
    )
    began = time.monotonic()
    return ReplaySensor(Trace(readings=readings, states=STATES), now=lambda: time.monotonic() - began)


def test_energy_per_iteration_is_power_times_its_time() -> None:
    trial = CallTrial(call=lambda: time.sleep(2e-3))

    window = measure_window(
        trial, FP32, CpuClock(), sensor(), WindowRules(window_s=1.0), guess_s=2e-3, rng=random.Random(0)
    )

    energy, power = energy_use(window.power, "board", 0.002), power_draw(window.power)
    assert window.timing is not None
    assert window.timing.median_s > 2e-3
    assert power.mean_w == pytest.approx(WATTS, rel=0.02)
    assert power.idle_w is None
    assert energy.j_per_iteration == pytest.approx(power.mean_w * 0.002)
    assert energy.scope == "board"


def test_an_idle_window_has_a_power_and_no_energy_per_iteration() -> None:
    idle = CallTrial(call=lambda: time.sleep(0.01))

    window = measure_rest(idle, FP32, sensor(), 0.5)

    assert window.timing is None
    assert energy_use(window.power, "board", None).j_per_iteration is None
    assert power_draw(window.power, idle=True).idle_w == pytest.approx(WATTS, rel=0.05)


def test_heat_and_clocks_are_summed_up_over_the_window() -> None:
    # STATES: clocks of 1.98, 1.5 and 1.7 GHz; reasons 0, 4 and 0
    assert device_state(STATES) == DeviceState(
        temperature_start_c=50.0,
        temperature_end_c=66.0,
        sm_clock_median_hz=1.7e9,
        sm_clock_min_hz=1.5e9,
        clock_event_mask=4,
        power_limit_w=700.0,
    )
    assert device_state(()) == DeviceState()


@pytest.mark.parametrize(("mask", "slow"), [(0x0, False), (0x4, False), (0x8, True), (0x24, True), (0x80, True)])
def test_a_power_cap_is_normal_and_a_thermal_or_external_brake_is_a_slow_down(mask: int, slow: bool) -> None:
    assert slowed_down([State(time_s=0.0, clock_event_mask=mask)]) is slow


def test_heating_without_a_sensor_takes_its_whole_time() -> None:
    trial = CallTrial(call=lambda: time.sleep(1e-3))
    began = time.monotonic()

    assert heat_soak(trial, FP32, CpuClock(), None, limit_s=0.3) is None
    assert time.monotonic() - began >= 0.09


class Simulated:
    """A device with a time of its own: a clock whose batches move it on, and the temperature that work brings."""

    name, scope = "simulated", "board"

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step_s: float, missing: tuple[str, ...] = ()) -> None:
        self.now_s, self.step_s, self.worked_s = 100.09, step_s, 0.0
        self.missing = dict.fromkeys(missing, "not told")
        self.batches: list[tuple[float, int]] = []
        self.pauses: list[float] = []
        self.temperature: Callable[[float], float] = lambda worked_s: 60.0
        for module in (windows, windows.run_batches):
            times = getattr(module, "time", None) or module.__globals__["time"]
            monkeypatch.setattr(times, "monotonic", lambda: self.now_s)
            monkeypatch.setattr(times, "sleep", self._pause)

    def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now_s += seconds

    def batch(self, trial: object, *, samples: int, iterations: int) -> Batch:
        count = samples * iterations
        self.batches.append((self.now_s, count))
        self.now_s += count * self.step_s
        self.worked_s += count * self.step_s
        return Batch(samples_s=(self.step_s,) * samples, phases_s={}, wall_s=count * self.step_s)

    def synchronize(self) -> None:
        return

    def agree(self, decision: bool) -> bool:
        return decision

    def read(self) -> Reading:
        return Reading(time_s=self.now_s, energy_j=None, power_instant_w=WATTS, power_average_w=None)

    def state(self) -> State:
        return State(time_s=self.now_s, temperature_c=self.temperature(self.worked_s))

    def processes(self) -> int | None:
        return None

    def close(self) -> None:
        return


def run(device: Simulated, soak_c: float | None = None) -> float:
    """One window of 3 s; returns the time before it."""
    began_s = device.now_s
    rules = WindowRules(window_s=3.0, reheat_to_c=soak_c)
    measure_window(
        CallTrial(call=lambda: None), FP32, device, device, rules, guess_s=device.step_s, rng=random.Random(0)
    )
    return device.now_s - began_s - 3.0


@pytest.mark.parametrize(
    ("temperature", "soak_c", "before_s"),
    [
        (lambda worked_s: 70.0, 70.0, 1.2),  # hot already
        (lambda worked_s: 50.0 + min(round(5.0 * worked_s), 20), 70.0, 3.6),  # 69 degrees after 3.7 s
        (lambda worked_s: 60.0, 70.0, 1.2),  # draws less than the soak: as hot as it gets
        (lambda worked_s: 40.0 + round(1.0 * worked_s), 70.0, 8.4),  # not within the limit
        (lambda worked_s: 40.0 + round(5.0 * worked_s), None, 1.2),  # never soaked
    ],
    ids=["hot", "cooled down", "cooler by itself", "too cold", "no soak"],
)
def test_a_device_that_has_cooled_down_is_brought_back_to_its_soak_first(
    monkeypatch: pytest.MonkeyPatch, temperature: Callable[[float], float], soak_c: float | None, before_s: float
) -> None:
    device = Simulated(monkeypatch, step_s=0.01)
    device.temperature = temperature

    # settling goes in pieces of 1.2 s and batches of a quarter of a second, of which the last may go beyond
    assert before_s <= run(device, soak_c) < before_s + 6 * 0.35 + 0.35


@pytest.mark.parametrize(
    ("step_s", "same"),
    [
        (0.02, False),  # seen whole
        (0.1, True),  # in time with the sensor
        (0.1004, True),  # drifts by 12 ms in 3 s
        (0.103, False),  # drifts by 90 ms
        (0.05, True),
        (0.0713, False),
        (0.2, True),  # two phases of 25 ms
        (0.4, False),
    ],
)
def test_steps_in_time_with_the_sensor_are_seen_at_the_same_phases(step_s: float, same: bool) -> None:
    assert meets_the_same_phases(step_s, 3.0) is same


def seen_w(device: Simulated) -> float:
    """What a sensor that looks at 25 of every 100 ms reads of a step with 700 W in its first half and 400 W after."""
    starts = np.array([at_s for at_s, _ in device.batches])
    moments = np.arange(np.ceil(starts[5] / SENSED_EVERY_S), starts[-1] / SENSED_EVERY_S)[:, None] * SENSED_EVERY_S
    moments = (moments + np.linspace(0.0, SENSED_S, 26)).ravel()
    begun = np.searchsorted(starts, moments, side="right") - 1
    phase = (moments - starts[begun]) % device.step_s / device.step_s
    return float(np.mean(np.where(phase < 0.5, 700.0, 400.0)))


def test_pauses_show_the_sensor_the_whole_of_a_step_that_is_in_time_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Simulated(monkeypatch, step_s=0.1)
    run(device)
    monkeypatch.setattr(windows, "LONGEST_PAUSE_S", 0.0)
    unmoved = Simulated(monkeypatch, step_s=0.1)
    run(unmoved)

    # the mean is 550 W
    assert seen_w(unmoved) in (400.0, 700.0)
    assert seen_w(device) == pytest.approx(550.0, rel=0.15)
    assert sum(device.pauses) < 0.05 * 3.0


@pytest.mark.parametrize(("step_s", "missing"), [(0.0713, ()), (0.02, ()), (0.1, ("power",))])
def test_a_window_without_need_has_no_pauses(
    monkeypatch: pytest.MonkeyPatch, step_s: float, missing: tuple[str, ...]
) -> None:
    device = Simulated(monkeypatch, step_s=step_s, missing=missing)

    run(device)

    assert sum(device.pauses) == 0.0


def test_batches_of_a_window_differ_in_length(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Simulated(monkeypatch, step_s=0.01)

    run(device)

    counts = [count for at_s, count in device.batches if at_s > 101.3]
    assert min(counts) >= 18  # 25 is the usual length, over at most 1.3
    assert max(counts) <= 36
    assert len(set(counts)) > 4


def test_a_window_without_a_sensor_has_times_and_no_power() -> None:
    trial = CallTrial(call=lambda: time.sleep(1e-3))
    rules = WindowRules(window_s=0.2, settle_s=0.05)

    window = measure_window(trial, FP32, CpuClock(), None, rules, guess_s=1e-3, rng=random.Random(0))

    assert window.timing is not None
    assert (window.power.source, window.states) == ("none", ())


@pytest.mark.parametrize(
    ("temperature", "end_c", "soaked_s"),
    [
        (lambda worked_s: 40.0 + min(worked_s, 12.0), 52.0, 20.0),  # 45, 50, 52, 52
        (lambda worked_s: 40.0 + worked_s, 65.0, 25.0),  # still rising at the limit
    ],
    ids=["settles", "limit"],
)
def test_a_soak_ends_when_the_temperature_stays_or_at_its_limit(
    monkeypatch: pytest.MonkeyPatch, temperature: Callable[[float], float], end_c: float, soaked_s: float
) -> None:
    device = Simulated(monkeypatch, step_s=2e-3)
    device.temperature = temperature
    began_s = device.now_s

    soak_c = heat_soak(CallTrial(call=lambda: None), FP32, device, device)

    assert soak_c == pytest.approx(end_c, abs=0.5)
    assert device.now_s - began_s == pytest.approx(soaked_s, abs=0.5)


def test_long_steps_do_not_stretch_a_soak_or_a_reheating(monkeypatch: pytest.MonkeyPatch) -> None:
    """An FP32 product of 8192 takes 137 ms at a T4's 8 TFLOP/s, and 1.6 ms in BF16 on an H200."""
    device = Simulated(monkeypatch, step_s=0.137)
    began_s = device.now_s

    heat_soak(CallTrial(call=lambda: None), FP32, device, device)
    soaked_s = device.now_s - began_s
    reheat(CallTrial(call=lambda: None), FP32, device, device, 60.0)

    # two pieces of 5 s until the temperature stays, then one of 1.2 s; a batch of a quarter of a second may go beyond
    assert soaked_s == pytest.approx(10.0, abs=1.0)
    assert device.now_s - began_s - soaked_s == pytest.approx(1.2, abs=0.5)
