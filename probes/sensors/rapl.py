"""CPU packages through Linux's powercap tree (Intel and AMD RAPL): energy only, if it may be read."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from planner.errors import CannotMeasureError
from planner.units import MICRO
from probes.sensors.interface import Reading, State

POWERCAP = Path("/sys/class/powercap")


@dataclass(slots=True, kw_only=True)
class _Zone:
    """One package with its counter, which restarts at 0 after `range_j`."""

    counter: Path
    range_j: float
    last_j: float
    total_j: float = 0.0

    def advance(self) -> float:
        """Return the energy since the sensor was opened."""
        now = _read_uj(self.counter) * MICRO
        step = now - self.last_j
        self.total_j += step if step >= 0 else step + self.range_j
        self.last_j = now
        return self.total_j


class RaplSensor:
    """Energy of all CPU packages together."""

    name = "rapl"
    scope = "package"
    missing: Mapping[str, str] = {
        "power": "RAPL counts energy only",
        "temperature": "RAPL counts energy only",
        "clocks": "RAPL counts energy only",
    }

    def __init__(self, root: Path = POWERCAP, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._zones = [
            _Zone(
                counter=zone / "energy_uj",
                range_j=_read_uj(zone / "max_energy_range_uj") * MICRO,
                last_j=_read_uj(zone / "energy_uj") * MICRO,
            )
            for zone in packages(root)
        ]

    def read(self) -> Reading:
        """See `Sensor.read`."""
        total = sum(zone.advance() for zone in self._zones)
        return Reading(time_s=self._now(), energy_j=total, power_instant_w=None, power_average_w=None)

    def state(self) -> State:
        """Return only the time, because RAPL reports energy only."""
        return State(time_s=self._now())

    def processes(self) -> int | None:
        """Return None, because RAPL reports energy only."""
        return None

    def close(self) -> None:
        """Do nothing, because nothing is held open."""


def packages(root: Path = POWERCAP) -> list[Path]:
    """Return the zones that are whole packages; their sub-zones, core and memory, are part of them.

    Raises:
        CannotMeasureError: the machine has no such zone.
    """
    zones = sorted(zone for zone in root.glob("*-rapl:*") if zone.name.count(":") == 1)
    whole = [zone for zone in zones if _zone_name(zone).startswith("package")]
    if not whole:
        raise CannotMeasureError(
            "this machine shows no CPU energy counter",
            hint="virtual machines hide it; on bare metal load `intel_rapl_common`",
        )
    return whole


def _zone_name(zone: Path) -> str:
    try:
        return (zone / "name").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _read_uj(path: Path) -> float:
    try:
        return float(path.read_text(encoding="ascii"))
    except PermissionError as error:
        raise CannotMeasureError(
            "no permission to read the CPU energy counter", hint=f"sudo chmod a+r {path.parent.parent}/*/energy_uj"
        ) from error
    except (OSError, ValueError) as error:
        raise CannotMeasureError(f"the CPU energy counter cannot be read: {error}") from error
