"""What points are measured with, and what comes of one."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection
from dataclasses import dataclass

from probes.device.clock import Clock
from probes.device.device import Device
from probes.record.figures import Figures
from probes.sensors.interface import Sensor, Trace
from probes.timing.device_gate import DeviceGate
from probes.timing.protocol import Rules
from probes.timing.quiet import Gate
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
    end_s: float = math.inf
    """On `time.monotonic`: no point is begun after it."""

    def gate_of(self, points: Collection[Point]) -> Gate | None:
        """The gate for points that are measured together: what is launch-bound on a GPU minds the host too."""
        if isinstance(self.gate, DeviceGate):
            return self.gate.for_kinds({point.kind for point in points})
        return self.gate
