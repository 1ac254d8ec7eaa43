"""What a device runs at while trials take turns: each trial's own clock and power, without its warm-up."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from planner.records.figures import PowerDraw
from probes.device.clock import CpuClock, CudaClock
from probes.energy.monitor import DeviceMonitor, monitored_clock
from probes.precisions import recipe_by_id
from probes.sensors import ReplaySensor
from probes.sensors.interface import Reading, State, Trace
from probes.timing.protocol import Subject
from tests.probes.build import CPU, H200, NamedTrial


def moment(at_s: float, watts: float | None, clock_hz: float) -> tuple[Reading, State]:
    reading = Reading(time_s=at_s, energy_j=None, power_instant_w=watts, power_average_w=None)
    return reading, State(time_s=at_s, sm_clock_hz=clock_hz)


MOMENTS = (moment(0.0, 300.0, 1.98e9), moment(1.0, 500.0, 1.7e9), moment(2.0, 700.0, 1.4e9), moment(3.0, None, 1.3e9))
TRACE = Trace(readings=tuple(r for r, _ in MOMENTS), states=tuple(s for _, s in MOMENTS))


class Watched:
    """Two trials under one monitor, at a time that the test sets."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.subjects = [Subject(trial=NamedTrial(name), recipe=recipe_by_id("fp32")) for name in "ab"]
        self.monitor = DeviceMonitor(ReplaySensor(TRACE, now=lambda: self.now_s), self.subjects)
        self.first, self.second = (subject.trial for subject in self.subjects)

    def look(self, trial: object, at_s: float) -> None:
        self.now_s = at_s
        self.monitor.sample(trial)


def test_each_trial_has_what_was_read_during_its_own_batches() -> None:
    seen = Watched()
    for subject in seen.subjects:
        subject.warmup_s = 0.1

    seen.look(seen.first, 0.0)
    seen.look(seen.second, 1.0)
    seen.look(seen.first, 2.0)

    assert [state.sm_clock_hz for state in seen.monitor.states_of(seen.first)] == [1.98e9, 1.4e9]
    assert seen.monitor.power_of(seen.first) == PowerDraw(instant_mean_w=500.0)  # of 300 and 700 W
    assert seen.monitor.power_of(seen.second) == PowerDraw(instant_mean_w=500.0)


def test_nothing_is_read_while_a_trial_is_warmed_up() -> None:
    seen = Watched()

    seen.look(seen.first, 0.0)
    seen.subjects[0].warmup_s = 0.1
    seen.look(seen.first, 2.0)

    assert [state.sm_clock_hz for state in seen.monitor.states_of(seen.first)] == [1.4e9]


def test_power_that_is_not_told_is_unknown() -> None:
    seen = Watched()
    seen.subjects[0].warmup_s = 0.1

    seen.look(seen.first, 3.0)

    assert seen.monitor.power_of(seen.first) == PowerDraw()
    assert len(seen.monitor.states_of(seen.first)) == 1


def test_only_a_gpu_is_watched() -> None:
    monitor = Watched().monitor

    assert isinstance(monitored_clock(H200, monitor), CudaClock)
    assert isinstance(monitored_clock(H200, None), CudaClock)
    assert isinstance(monitored_clock(CPU, monitor), CpuClock)
