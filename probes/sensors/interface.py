"""Sensor readings: fast readings of energy and power, slower ones of temperatures and clocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Energy and power at one moment; None where the device does not report them."""

    time_s: float
    """Time on the monotonic clock."""
    energy_j: float | None
    """Running total; its start is arbitrary."""
    power_instant_w: float | None
    power_average_w: float | None
    """Mean over the driver's own window (one second on recent GPUs)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Temperatures, clocks and limits at one moment; None where the device does not report them."""

    time_s: float
    temperature_c: float | None = None
    memory_temperature_c: float | None = None
    sm_clock_hz: float | None = None
    memory_clock_hz: float | None = None
    clock_event_mask: int | None = None
    """Mask of NVML's clock event reasons."""
    power_limit_w: float | None = None
    """Enforced limit, whoever set it."""
    processes: int | None = None
    """Other compute processes on the device. Ours is left out if it is listed under its own id (not in a container)."""
    process_bytes: float | None = None
    """Device memory that this process holds: from its own entry, else the growth of the device's use since the sensor
    was opened, which is before a context exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The readings of a sensor during one window."""

    readings: tuple[Reading, ...] = ()
    states: tuple[State, ...] = ()


class Sensor(Protocol):
    """Reads one device. Reading never changes a setting of the device."""

    name: str
    """Name in the registry: nvml, rapl or replay."""
    scope: str
    """What the figures cover: `board`, `module` or `package`."""

    @property
    def missing(self) -> Mapping[str, str]:
        """Figures that cannot be read, with the reason: keys `energy`, `power`, `temperature`, `clocks`."""

    def read(self) -> Reading:
        """Return the present energy and power."""

    def state(self) -> State:
        """Return the present temperatures, clocks and limits."""

    def processes(self) -> int | None:
        """Return the `processes` of `state` alone, since they are needed more often."""

    def close(self) -> None:
        """Release the device."""
