"""Sensor readings: fast ones of energy and power, slower ones of temperatures and clocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from planner.lazy import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Energy and power at one moment; None where the device does not report them."""

    time_s: float
    """Monotonic clock."""
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
    """NVML's clock event reasons."""
    power_limit_w: float | None = None
    """Enforced limit, whoever set it."""
    processes: int | None = None
    """Compute processes on the device; ours is left out where it goes by its own number (not in a container)."""
    process_bytes: float | None = None
    """Device memory that this process holds: of its own entry, else what the device's use has grown by since the sensor
    was opened, which is before there is a context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The readings of a sensor during one window."""

    readings: tuple[Reading, ...] = ()
    states: tuple[State, ...] = ()


class Sensor(Protocol):
    """Reads one device. Reading never changes a setting of the device."""

    name: str
    """Member of the registry: nvml, rapl, replay."""
    scope: str
    """What the figures include: `board`, `module` or `package`."""

    @property
    def missing(self) -> Mapping[str, str]:
        """What cannot be read, with the reason: keys `energy`, `power`, `temperature`, `clocks`."""

    def read(self) -> Reading:
        """Energy and power now."""

    def state(self) -> State:
        """Temperatures, clocks and limits now."""

    def processes(self) -> int | None:
        """Of `state`, the processes alone, which are asked for more often."""

    def close(self) -> None:
        """Release the device."""
