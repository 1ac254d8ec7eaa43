"""Interference: the share of the machine that other processes used while a sample was taken.

A confidence interval does not show it: with two other jobs running, a median "converges" within a few samples on a
value several times too slow. Other load is therefore examined first, and precision second.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Protocol

from planner.lazy import dataclass

ACCEPTED_RATIO = 0.05
"""Largest share of the machine that others may use while a sample is taken."""
WINDOW_S = 0.25
"""Shortest window that is judged, in seconds: the kernel counts in ticks of 10 ms, so shorter windows are noise."""

_STAT = Path("/proc/stat")


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuReading:
    """CPU seconds since boot, of the machine and of this process."""

    busy_s: float
    total_s: float
    own_s: float
    wall_s: float


def read_cpu() -> CpuReading | None:
    """Return the machine's and this process's CPU time so far; None if the system does not report it (not Linux)."""
    try:
        line = _STAT.read_text(encoding="ascii").split("\n", 1)[0].split()
        ticks = [int(part) for part in line[1:9]]
    except (OSError, ValueError):
        return None
    # user nice system idle iowait irq softirq steal: time that a hypervisor gave to other guests counts as load too
    hz = os.sysconf("SC_CLK_TCK")
    times = os.times()
    idle = ticks[3] + ticks[4]
    return CpuReading(
        busy_s=(sum(ticks) - idle) / hz,
        total_s=sum(ticks) / hz,
        own_s=times.user + times.system + times.children_user + times.children_system,
        wall_s=time.monotonic(),
    )


def other_load_ratio(start: CpuReading | None, end: CpuReading | None) -> float | None:
    """Return the share of all CPUs that other processes used between two readings, 0 to 1; None if unreadable."""
    if start is None or end is None or end.total_s <= start.total_s:
        return None
    others = (end.busy_s - start.busy_s) - (end.own_s - start.own_s)
    return min(max(others / (end.total_s - start.total_s), 0.0), 1.0)


class Gate(Protocol):
    """Decides which windows of work were disturbed."""

    window_s: float
    """Shortest window that can be judged."""

    def open(self) -> object:
        """Record the state before a window."""

    def judge(self, start: object) -> float | None:
        """Return the share of the machine that others used since `open`; None if it cannot be read."""

    def accepts(self, ratio: float | None) -> bool:
        """Return whether samples of a window can be trusted."""


class LoadGate:
    """Other load on the CPUs: the kernel's busy time minus our own."""

    def __init__(self, accepted_ratio: float = ACCEPTED_RATIO, window_s: float = WINDOW_S) -> None:
        self.accepted_ratio = accepted_ratio
        self.window_s = window_s

    def open(self) -> CpuReading | None:
        """Record the load before a window."""
        return read_cpu()

    def judge(self, start: object) -> float | None:
        """Return the other load since `start`."""
        return other_load_ratio(start, read_cpu()) if isinstance(start, CpuReading) else None

    def accepts(self, ratio: float | None) -> bool:
        """Return whether samples of a window can be trusted. Unknown load is accepted and recorded as unknown."""
        return ratio is None or ratio <= self.accepted_ratio
