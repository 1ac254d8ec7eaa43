"""Replay: a recorded trace tells again what the sensor told, and everything above it finds the same power."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from probes.energy.power import power_over
from probes.record.writer import RecordWriter, trace_path
from probes.sensors import SENSORS, ReplaySensor
from probes.sensors.interface import Reading, State, Trace
from probes.sensors.sampler import Sampler
from tests.probes.record.traces import read_traces


def ramp(watts: float, seconds: float, ticks_per_s: int = 10) -> Trace:
    """A counter ticking evenly, usually every 100 ms, at constant power, and two states (synthetic)."""
    ticks = (i / ticks_per_s for i in range(round(seconds * ticks_per_s) + 1))
    readings = tuple(
        Reading(time_s=at_s, energy_j=at_s * watts, power_instant_w=watts, power_average_w=watts) for at_s in ticks
    )
    states = (
        State(time_s=0.0, temperature_c=40.0, sm_clock_hz=1.98e9),
        State(time_s=2.0, temperature_c=60.0, sm_clock_hz=1.7e9, clock_event_mask=4, power_limit_w=700.0),
    )
    return Trace(readings=readings, states=states)


def test_replay_tells_what_was_told_last() -> None:
    now = [0.25]
    sensor = ReplaySensor(ramp(500.0, 5.0), now=lambda: now[0])

    assert sensor.read().energy_j == pytest.approx(100.0)  # the tick at 0.2 s
    assert sensor.state().temperature_c == 40.0
    now[0] = 3.0
    assert sensor.read().energy_j == pytest.approx(1500.0)
    assert sensor.state().clock_event_mask == 4
    assert sensor.processes() is None  # not in this trace


def test_a_trace_survives_the_record_and_replays_to_the_same_power(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    writer = RecordWriter(path)
    writer.add_trace("run", "power/bf16", ramp(500.0, 5.0))
    writer.close()

    trace = read_traces(trace_path(path))["power/bf16"]

    assert trace == ramp(500.0, 5.0)
    assert power_over(trace.readings, 0.5, 4.5).mean_w == pytest.approx(500.0)


def test_a_trace_cut_off_costs_only_its_last_line(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    writer = RecordWriter(path)
    writer.add_trace("run", "a", ramp(1.0, 1.0))
    writer.add_trace("run", "b", ramp(2.0, 1.0))
    writer.close()
    traces = trace_path(path)
    traces.write_bytes(traces.read_bytes()[:-40])

    assert list(read_traces(traces)) == ["a"]


def test_the_sampler_hears_a_sensor_while_the_main_thread_works_and_keeps_what_changed() -> None:
    trace = ramp(500.0, 60.0, ticks_per_s=50)  # however late a busy machine polls, it is at most a tick of 20 ms off
    start = time.monotonic()
    sensor = ReplaySensor(trace, now=lambda: time.monotonic() - start)

    with Sampler(sensor) as sampler:
        time.sleep(1.0)

    readings = sampler.trace.readings
    energies = [reading.energy_j for reading in readings[:-1]]
    assert len(energies) == len(set(energies))  # one reading per tick, not one per poll
    assert power_over(readings, 0.0, 1.0).mean_w == pytest.approx(500.0, rel=0.15)
    assert len(sampler.trace.states) >= 2


def test_every_sensor_has_a_name_of_its_own() -> None:
    names = [sensor.name for sensor in SENSORS]

    assert sorted(set(names)) == sorted(names)
    assert names == ["nvml", "rapl", "replay"]


@pytest.mark.parametrize("kind", SENSORS)
def test_every_sensor_reads_states_and_closes(kind: type, tmp_path: Path) -> None:
    from tests.probes.sensors.test_nvml import UUID, StandIn
    from tests.probes.sensors.test_rapl import zone

    if kind.name == "nvml":
        sensor = kind(UUID, nvml=StandIn())
    elif kind.name == "rapl":
        zone(tmp_path, "intel-rapl:0", "package-0", 0)
        sensor = kind(tmp_path)
    else:
        sensor = kind(ramp(1.0, 1.0), now=lambda: 0.5)

    assert sensor.scope in ("board", "module", "package")
    assert sensor.read().energy_j is not None
    assert isinstance(sensor.state(), State)
    sensor.close()
