"""Sensors that are read while something runs. One file per sensor, listed here."""

from __future__ import annotations

from dataclasses import replace

from planner.errors import CannotMeasureError
from planner.lazy import dataclass
from probes.sensors.interface import Sensor
from probes.sensors.nvml import NvmlSensor
from probes.sensors.rapl import RaplSensor
from probes.sensors.replay import ReplaySensor

SENSORS: tuple[type[NvmlSensor] | type[RaplSensor] | type[ReplaySensor], ...] = (NvmlSensor, RaplSensor, ReplaySensor)
"""All sensors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedSensor:
    """The sensor of a device, or why there is none."""

    sensor: Sensor | None
    reason: str | None
    """Why nothing is metered: there is no sensor, or the device reports neither energy nor power; None if it is."""
    hint: str | None = None
    """A remedy."""
    processes: int | None = None
    """Compute processes on the device when the sensor was opened, before this process has a context there."""
    mps_server: bool = False
    """Whether a server of MPS was on the device then, which is not one of `processes`."""
    busy_ratio: float | None = None
    """Share of time in which the device worked then; None if it does not say, or was not asked."""

    @property
    def meters(self) -> bool:
        """Whether energy or power can be read."""
        return self.sensor is not None and not {"energy", "power"} <= set(self.sensor.missing)


def open_sensor(device_kind: str, uuid: str | None, *, before_use: bool = True) -> OpenedSensor:
    """Open a device's sensor: NVML by UUID for a GPU, RAPL for a CPU. Never raises, since no sensor is a result too.

    Args:
        device_kind: `cuda` or `cpu`.
        uuid: UUID of a GPU.
        before_use: whether this process has not used the device yet, so that whatever keeps it busy is someone else's.
    """
    try:
        if device_kind == "cuda":
            if uuid is None:
                return OpenedSensor(sensor=None, reason="this version of torch does not report the GPU's UUID")
            sensor = NvmlSensor(uuid)
            busy_ratio = sensor.busy_ratio() if before_use else None
            opened = OpenedSensor(
                sensor=sensor,
                reason=None,
                processes=sensor.processes(),
                mps_server=sensor.mps_server(),
                busy_ratio=busy_ratio,
            )
            return opened if opened.meters else replace(opened, reason=sensor.missing["energy"])
        return OpenedSensor(sensor=RaplSensor(), reason=None)
    except CannotMeasureError as error:
        return OpenedSensor(sensor=None, reason=error.message, hint=error.hint)
