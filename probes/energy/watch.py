"""Clocks, heat and power of a device while trials are timed on it in turns: what each of them runs at.

A product's rate follows the clock. In turns with others a GPU below its power limit recovers the clock that it would
lose in sustained work, so that a rate is only comparable with another together with the clock it was read at.
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


class Watch:
    """Reads a sensor at the end of each batch of each subject, while the device is still at work on it."""

    def __init__(self, sensor: Sensor, subjects: Iterable[Subject]) -> None:
        self._sensor = sensor
        self._subjects = {id(subject.trial): subject for subject in subjects}
        self._states: dict[int, list[State]] = defaultdict(list)
        self._readings: dict[int, list[Reading]] = defaultdict(list)

    def look(self, trial: Runs) -> None:
        """Read what a trial runs at; not while it is warmed up, in many short batches."""
        if self._subjects[id(trial)].warmup_s:
            self._states[id(trial)].append(self._sensor.state())
            self._readings[id(trial)].append(self._sensor.read())

    def states_of(self, trial: Trial) -> tuple[State, ...]:
        """Clocks and heat while a trial was timed."""
        return tuple(self._states[id(trial)])

    def power_of(self, trial: Trial) -> PowerDraw:
        """Power while a trial was timed, by the power field alone: batches are shorter than what the counter tells."""
        watts = [r.power_instant_w for r in self._readings[id(trial)] if r.power_instant_w is not None]
        return PowerDraw(instant_mean_w=float(np.mean(watts)) if watts else None)


def watched(device: Device, watch: Watch | None) -> Clock:
    """The clock of a device, which lets a watch look at each batch; a CPU has nothing to look at."""
    return CudaClock(watch.look) if watch is not None and device.kind == "cuda" else device.clock
