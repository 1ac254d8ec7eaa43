"""Energy of a window: mean power times the time of an iteration, and what the states say about heat and clocks."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("torch")

from planner.records.figures import DeviceState
from probes.device.clock import CpuClock
from probes.energy.window import device_state, energy_use, heat_soak, measure_window, power_draw, slowed_down
from probes.precisions import recipe_by_id
from probes.sensors import ReplaySensor
from probes.sensors.interface import Reading, State, Trace
from probes.timing.trial import CallTrial

WATTS = 420.0
STATES = (
    State(time_s=0.0, temperature_c=50.0, sm_clock_hz=1.98e9, clock_event_mask=0, power_limit_w=700.0),
    State(time_s=0.5, temperature_c=61.0, sm_clock_hz=1.5e9, clock_event_mask=4, power_limit_w=700.0),
    State(time_s=1.0, temperature_c=66.0, sm_clock_hz=1.7e9, clock_event_mask=0, power_limit_w=700.0),
)


def sensor() -> ReplaySensor:
    """A counter that ticks every 20 ms at constant power for 20 s (synthetic)."""
    readings = tuple(
        Reading(time_s=i / 50, energy_j=i / 50 * WATTS, power_instant_w=WATTS, power_average_w=WATTS)
        for i in range(1001)
    )
    began = time.monotonic()
    return ReplaySensor(Trace(readings=readings, states=STATES), now=lambda: time.monotonic() - began)


def test_energy_per_iteration_is_power_times_its_time() -> None:
    trial = CallTrial(call=lambda: time.sleep(2e-3))

    window = measure_window(trial, recipe_by_id("fp32"), CpuClock(), sensor(), window_s=1.0, guess_s=2e-3)

    energy, power = energy_use(window.power, "board", 0.002), power_draw(window.power)
    assert window.timing is not None
    assert window.timing.median_s > 2e-3
    assert power.mean_w == pytest.approx(WATTS, rel=0.02)
    assert power.idle_w is None
    assert energy.j_per_iteration == pytest.approx(power.mean_w * 0.002)
    assert energy.scope == "board"


def test_an_idle_window_has_a_power_and_no_energy_per_iteration() -> None:
    idle = CallTrial(call=lambda: time.sleep(0.01))

    window = measure_window(idle, recipe_by_id("fp32"), CpuClock(), sensor(), window_s=0.5, guess_s=0.01, idle=True)

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

    assert heat_soak(trial, recipe_by_id("fp32"), CpuClock(), None, limit_s=0.3) >= 0.09
