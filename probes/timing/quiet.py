"""Interference: the share of the machine that other processes used while a sample was taken.

A confidence interval says nothing about it: with two other jobs a median "converges" within a few samples on a value
several times too slow. So other load is looked at first, precision second.
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
"""Shortest window that is judged: the kernel counts in ticks of 10 ms, so shorter ones are noise."""

_STAT = Path("/proc/stat")


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuReading:
    """CPU seconds since boot, of the machine and of this process."""

    busy_s: float
    total_s: float
    own_s: float
    wall_s: float


def read_cpu() -> CpuReading | None:
    """CPU time of the machine and of this process so far; None where the system does not report it (not Linux)."""
    try:
        line = _STAT.read_text(encoding="ascii").split("\n", 1)[0].split()
        ticks = [int(part) for part in line[1:9]]
    except (OSError, ValueError):
        return None
    # user nice system idle iowait irq softirq steal: what a hypervisor took for other guests is load as well
    hz = os.sysconf("SC_CLK_TCK")
    own = os.times()
    idle = ticks[3] + ticks[4]
    return CpuReading(
        busy_s=(sum(ticks) - idle) / hz,
        total_s=sum(ticks) / hz,
        own_s=own.user + own.system + own.children_user + own.children_system,
        wall_s=time.monotonic(),
    )


def other_load_ratio(start: CpuReading | None, end: CpuReading | None) -> float | None:
    """Share of all CPUs that other processes used between two readings, 0 to 1; None where it cannot be read."""
    if start is None or end is None or end.total_s <= start.total_s:
        return None
    others = (end.busy_s - start.busy_s) - (end.own_s - start.own_s)
    return min(max(others / (end.total_s - start.total_s), 0.0), 1.0)


class Gate(Protocol):
    """Decides which windows of work were disturbed."""

    window_s: float
    """Shortest window that can be judged."""

    def open(self) -> object:
        """Note the state before a window."""

    def judge(self, start: object) -> float | None:
        """Share of the machine that others used since `open`; None where it cannot be read."""

    def accepts(self, ratio: float | None) -> bool:
        """Whether samples of a window may be trusted."""


class LoadGate:
    """Other load on the CPUs, from the kernel's count of busy time less our own."""

    def __init__(self, accepted_ratio: float = ACCEPTED_RATIO, window_s: float = WINDOW_S) -> None:
        self.accepted_ratio = accepted_ratio
        self.window_s = window_s

    def open(self) -> CpuReading | None:
        """Note the load before a window."""
        return read_cpu()

    def judge(self, start: object) -> float | None:
        """Other load since `start`."""
        return other_load_ratio(start, read_cpu()) if isinstance(start, CpuReading) else None

    def accepts(self, ratio: float | None) -> bool:
        """Whether samples of a window may be trusted. An unknown load is accepted; the record marks it as unknown."""
        return ratio is None or ratio <= self.accepted_ratio
