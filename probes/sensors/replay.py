"""Recorded traces played back, so that tests and re-analyses read exactly what a real sensor read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping

from probes.sensors.interface import Reading, State, Trace


class ReplaySensor:
    """Returns, at each moment, the latest reading of the recorded sensor."""

    name = "replay"

    def __init__(
        self, trace: Trace, now: Callable[[], float], scope: str = "board", missing: Mapping[str, str] | None = None
    ) -> None:
        """Prepare to play a trace.

        Args:
            trace: at least one reading and one state, in order of time.
            now: the clock of the playback, in the trace's time.
            scope: what the recorded sensor's figures covered.
            missing: what that sensor could not read.
        """
        self.scope = scope
        self.missing: Mapping[str, str] = missing or {}
        self._trace = trace
        self._now = now
        self._reading_times = [entry.time_s for entry in trace.readings]
        self._state_times = [entry.time_s for entry in trace.states]

    def read(self) -> Reading:
        """See `Sensor.read`."""
        now = self._now()
        reading = self._trace.readings[max(bisect_right(self._reading_times, now) - 1, 0)]
        return Reading(
            time_s=now,
            energy_j=reading.energy_j,
            power_instant_w=reading.power_instant_w,
            power_average_w=reading.power_average_w,
        )

    def state(self) -> State:
        """See `Sensor.state`."""
        return self._trace.states[max(bisect_right(self._state_times, self._now()) - 1, 0)]

    def processes(self) -> int | None:
        """See `Sensor.processes`."""
        return self.state().processes

    def close(self) -> None:
        """Do nothing, because nothing is held open."""
