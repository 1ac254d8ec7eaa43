"""What points are measured with, and what comes of one."""

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
    """What came of a point, with the trace of its energy window."""

    point: Point
    figures: Figures
    trace: Trace | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Everything that measuring needs besides the points."""

    device: Device
    gate: Gate | None
    sensor: Sensor | None
    no_sensor: str | None
    """Why there is no sensor."""
    rng: random.Random
    rules: Callable[[Point], Rules]
    soak_c: float | None = None
    """Temperature of the device at the end of its heat soak; None: not soaked, or not known."""
    clock: Clock | None = None
    """None: the device's own."""
    team: Team = ALONE
    """The ranks that measure together."""
    canary: CanaryClock | None = None
    """Of ranks on a CPU: the fixed work beside their batches."""
    end_s: float = math.inf
    """On `time.monotonic`: no point is begun after it."""

    def together(self, clock: Clock) -> Clock:
        """The clock of all ranks, of which this is this one's."""
        return TeamClock(clock, self.team, self.canary) if self.team.size > 1 else clock

    def gate_of(self, points: Collection[Point]) -> Gate | None:
        """The gate for points that are measured together: what is launch-bound on a GPU minds the host too."""
        if isinstance(self.gate, DeviceGate | TeamGate):
            return self.gate.for_kinds({point.kind for point in points})
        return self.gate
