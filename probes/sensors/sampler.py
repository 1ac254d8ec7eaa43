"""A thread that polls a sensor while the main thread works, and keeps the readings that changed."""

from __future__ import annotations

import threading
from types import TracebackType

from probes.sensors.interface import Reading, Sensor, State, Trace

POLL_S = 0.01
"""Time between readings of energy and power."""
STATE_S = 0.25
"""Time between readings of temperatures and clocks, which take longer."""


class Sampler:
    """Polls within a `with` block; `trace` holds the readings so far, even while polling continues."""

    def __init__(self, sensor: Sensor, poll_s: float = POLL_S) -> None:
        self._sensor = sensor
        self._poll_s = poll_s
        self._readings: list[Reading] = []
        self._states: list[State] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="sampler", daemon=True)

    def __enter__(self) -> Sampler:
        self._states.append(self._sensor.state())
        self._readings.append(self._sensor.read())
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(timeout=5.0)
        self._readings.append(self._sensor.read())
        self._states.append(self._sensor.state())

    @property
    def trace(self) -> Trace:
        """The readings so far."""
        return Trace(readings=tuple(self._readings), states=tuple(self._states))

    def _poll(self) -> None:
        next_state = self._readings[-1].time_s + STATE_S
        while not self._stop.wait(self._poll_s):
            now = self._sensor.read()
            if _differs(now, self._readings[-1]):
                self._readings.append(now)
            if now.time_s >= next_state:
                self._states.append(self._sensor.state())
                next_state = now.time_s + STATE_S


def _differs(new: Reading, old: Reading) -> bool:
    return (new.energy_j, new.power_instant_w, new.power_average_w) != (
        old.energy_j,
        old.power_instant_w,
        old.power_average_w,
    )
