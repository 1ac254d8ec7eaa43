"""Clock, temperature and power of a device while trials are timed on it in turns.

A product's rate follows the clock. In turns with others, a GPU below its power limit recovers the clock that it would
lose in sustained work, so rates can be compared only together with the clocks at which they were measured.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from planner.records.figures import PowerDraw
from probes.device.clock import Clock, CudaClock, Runs
from probes.device.device import Device
from probes.sensors.interface import Reading, Sensor, State
from probes.timing.protocol import Subject
from probes.timing.trial import Trial


class DeviceMonitor:
    """Reads a sensor at the end of each batch of each subject, while the device is still working on it."""

    def __init__(self, sensor: Sensor, subjects: Iterable[Subject]) -> None:
        self._sensor = sensor
        self._subjects = {id(subject.trial): subject for subject in subjects}
        self._states: dict[int, list[State]] = defaultdict(list)
        self._readings: dict[int, list[Reading]] = defaultdict(list)

    def sample(self, trial: Runs) -> None:
        """Read the device's state for a trial, except during its warm-up, which has many short batches."""
        if self._subjects[id(trial)].warmup_s:
            self._states[id(trial)].append(self._sensor.state())
            self._readings[id(trial)].append(self._sensor.read())

    def states_of(self, trial: Trial) -> tuple[State, ...]:
        """Return clocks and temperatures while a trial was timed."""
        return tuple(self._states[id(trial)])

    def power_of(self, trial: Trial) -> PowerDraw:
        """Return the power while a trial was timed, from the power field: batches are too short for the counter."""
        watts = [r.power_instant_w for r in self._readings[id(trial)] if r.power_instant_w is not None]
        return PowerDraw(instant_mean_w=float(np.mean(watts)) if watts else None)


def monitored_clock(device: Device, monitor: DeviceMonitor | None) -> Clock:
    """Return a device's clock, which lets a monitor read at each batch; on a CPU there is nothing to read."""
    return CudaClock(monitor.sample) if monitor is not None and device.kind == "cuda" else device.clock
