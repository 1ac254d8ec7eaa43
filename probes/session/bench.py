"""The equipment with which points are measured, and the result of a point."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection

from planner.lazy import dataclass
from probes.device.canary_clock import CanaryClock
from probes.device.clock import Clock
from probes.device.device import Device
from probes.ranks.clock import TeamClock
from probes.ranks.team import ALONE, Team
from probes.record.figures import Figures
from probes.sensors.interface import Sensor, Trace
from probes.timing.device_gate import DeviceGate
from probes.timing.protocol import Rules
from probes.timing.quiet import Gate
from probes.timing.team_gate import TeamGate
from probes.timing.trial import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class PointResult:
    """Result of a point, with the trace of its energy window."""

    point: Point
    figures: Figures
    trace: Trace | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Everything besides the points that measuring needs."""

    device: Device
    gate: Gate | None
    sensor: Sensor | None
    no_sensor: str | None
    """Why neither energy nor power can be read; None if they can."""
    rng: random.Random
    rules: Callable[[Point], Rules]
    soak_c: float | None = None
    """Temperature of the device at the end of its heat soak; None: not soaked, or not known."""
    clock: Clock | None = None
    """Clock for timing; None: the device's own."""
    team: Team = ALONE
    """The ranks that measure together."""
    canary: CanaryClock | None = None
    """For ranks on a CPU: the fixed product that runs beside their batches."""
    end_s: float = math.inf
    """Time on `time.monotonic` after which no point is begun."""

    def together(self, clock: Clock) -> Clock:
        """Return the clock of all ranks, made from this rank's clock."""
        return TeamClock(clock, self.team, self.canary) if self.team.size > 1 else clock

    def gate_of(self, points: Collection[Point]) -> Gate | None:
        """Return the gate for points measured together; launch-bound points on a GPU also depend on the host."""
        if isinstance(self.gate, DeviceGate | TeamGate):
            return self.gate.for_kinds({point.kind for point in points})
        return self.gate
