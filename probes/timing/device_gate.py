"""Interference on a GPU: other processes on the device, and a host too busy to launch kernels in time."""

from __future__ import annotations

from collections.abc import Callable, Collection

from probes.timing.quiet import WINDOW_S, CpuReading, Gate, other_load_ratio, read_cpu

LAUNCH_BOUND_KINDS = ("launch", "memory_op", "block", "end_to_end", "parallel_step", "verify")
"""Points whose kernels are launched one by one, so that a host with other work slows them down. Products are replayed
from a graph, and optimizers are a few long kernels."""
ACCEPTED_HOST_RATIO = 0.25
"""Largest share of the host's CPUs that others may use while launch-bound points are timed (assumed): below it there is
always a free core for the two threads that launch, forward and backward, on a host of 4 cores or more."""
_BUSY_HOST_RATIO = 0.99
"""A host that is busy all over; 1 stands for another process on the device."""


class DeviceGate:
    """Other processes on a GPU. Utilisation does not distinguish our work from theirs, so processes are counted.

    The host's other load is reported beside them, and gates what depends on the host (`for_kinds`).
    """

    window_s = WINDOW_S
    """Counting takes milliseconds, in which the device rests: not after each batch."""

    def __init__(
        self,
        processes: Callable[[], int | None],
        host: Callable[[], CpuReading | None] = read_cpu,
        *,
        before: int | None = None,
    ) -> None:
        """Make the gate of a device.

        Args:
            processes: how many compute processes the device has, ours left out where it can be identified; None where
                the device does not report them.
            host: CPU time of the host so far.
            before: the count before our own process had a context on the device; None: now.
        """
        self._processes = processes
        self._host = host
        self._others = processes() if before is None else before
        self._expected: int | None = None

    @property
    def others(self) -> int:
        """Processes that were there before ours."""
        return self._others or 0

    def open(self) -> object:
        """Count again the first time, now that ours is there; some systems do not show a process to itself."""
        if self._expected is None:
            self._expected = self._processes()
        return self._host()

    def judge(self, start: object) -> float | None:
        """1 where another process is or was on the device; else the host's other load, below 1; None where unknown."""
        now = self._processes()
        if now is not None and self._expected is not None and (self.others or now > self._expected):
            return 1.0
        load = other_load_ratio(start, self._host()) if isinstance(start, CpuReading) else None
        return None if load is None else min(load, _BUSY_HOST_RATIO)

    def accepts(self, ratio: float | None) -> bool:
        """See `Gate.accepts`. Work that the device does alone does not mind the host."""
        return ratio is None or ratio < 1.0

    def for_kinds(self, kinds: Collection[str]) -> Gate:
        """The gate for points of these kinds, measured together."""
        return HostGate(self) if any(kind in LAUNCH_BOUND_KINDS for kind in kinds) else self


class HostGate:
    """The gate of a GPU for work that waits for the host."""

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
