"""Interference on a GPU: other processes on the device, and a host too busy to launch kernels in time."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from dataclasses import replace

from probes.sensors.nvml import QUIET_RATIO
from probes.timing.quiet import WINDOW_S, CpuReading, Gate, other_load_ratio, read_cpu

LAUNCH_BOUND_KINDS = ("launch", "memory_op", "block", "end_to_end", "parallel_step", "verify")
"""Points whose kernels are launched one by one, so that a busy host slows them down. Products are replayed from a
graph, and optimizers are a few long kernels."""
ACCEPTED_HOST_RATIO = 0.25
"""Largest share of the host's CPUs that others may use while launch-bound points are timed (assumed). Below it, a host
with 4 cores or more always has a free core for the two launching threads, forward and backward."""
CORES_FOR_HELPER = 4
"""From so many cores on, the process that tracks memory disturbs nothing: it keeps one of them busy."""
_BUSY_HOST_RATIO = 0.99
"""Ratio of a fully busy host; 1 means that another process is on the device."""


def in_use(others: int, busy_ratio: float, mps_server: bool = False) -> str | None:
    """Return a note about what else uses a GPU before the probe does, or could; None if nothing is known to.

    Args:
        others: compute processes that NVML lists, without a server of MPS.
        busy_ratio: share of time in which the GPU worked.
        mps_server: whether NVML lists a server of MPS.
    """
    if others:
        who = "another process uses" if others == 1 else f"{others} other processes use"
        return f"{who} the GPU; nothing measured now can be trusted"
    server = "a server of CUDA's Multi-Process Service (MPS)"
    if busy_ratio <= QUIET_RATIO:
        return f"{server} without clients is on the GPU; it is not counted as another process" if mps_server else None
    listed = f"{server} is the only process listed" if mps_server else "no compute process is listed"
    return (
        f"the GPU was {busy_ratio:.0%} busy before the probe used it, although {listed}: a desktop "
        "draws on it, or a process of another container or of Windows uses it"
    )


class DeviceGate:
    """Detects other processes on a GPU by counting them, since utilisation does not distinguish our work from theirs.

    The host's other load is reported as well, and gates points that depend on the host (`for_kinds`).
    """

    window_s = WINDOW_S
    """Counting takes milliseconds in which the device rests, so it is not done after each batch."""

    def __init__(
        self,
        processes: Callable[[], int | None],
        host: Callable[[], CpuReading | None] = read_cpu,
        *,
        helper_s: Callable[[], float] = lambda: 0.0,
        before: int | None = None,
    ) -> None:
        """Make the gate of a device.

        Args:
            processes: returns the number of compute processes on the device, without ours if it can be identified; None
                if the device does not report them.
            host: returns the host's CPU time so far.
            helper_s: returns the CPU seconds so far of a process of ours that `host` does not count as ours.
            before: the count before our own process had a context on the device; None: count now.
        """
        self._processes = processes
        self._host, self._helper_s = host, helper_s
        self._others = processes() if before is None else before
        self._expected: int | None = None

    @property
    def others(self) -> int:
        """Number of processes that were there before ours."""
        return self._others or 0

    def open(self) -> object:
        """Note the host's load. The first time, count processes again: some systems hide a process from itself."""
        if self._expected is None:
            self._expected = self._processes()
        return self._read_host()

    def judge(self, start: object) -> float | None:
        """Return 1 if another process is or was on the device, else the host's other load, below 1; None: unknown."""
        now = self._processes()
        if now is not None and self._expected is not None and (self.others or now > self._expected):
            return 1.0
        load = other_load_ratio(start, self._read_host()) if isinstance(start, CpuReading) else None
        return None if load is None else min(load, _BUSY_HOST_RATIO)

    def accepts(self, ratio: float | None) -> bool:
        """See `Gate.accepts`. Work that the device does alone does not depend on the host."""
        return ratio is None or ratio < 1.0

    def _read_host(self) -> CpuReading | None:
        reading = self._host()
        if reading is None or (os.cpu_count() or 1) < CORES_FOR_HELPER:
            return reading
        return replace(reading, own_s=reading.own_s + self._helper_s())

    def for_kinds(self, kinds: Collection[str]) -> Gate:
        """Return the gate for points of these kinds that are measured together."""
        return HostGate(self) if any(kind in LAUNCH_BOUND_KINDS for kind in kinds) else self


class HostGate:
    """The gate of a GPU for work that depends on the host."""

    window_s = WINDOW_S

    def __init__(self, device: DeviceGate) -> None:
        self._device = device

    def open(self) -> object:
        """See `Gate.open`."""
        return self._device.open()

    def judge(self, start: object) -> float | None:
        """See `DeviceGate.judge`."""
        return self._device.judge(start)

    def accepts(self, ratio: float | None) -> bool:
        """See `Gate.accepts`."""
        return ratio is None or ratio <= ACCEPTED_HOST_RATIO
