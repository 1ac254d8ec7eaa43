"""A step on the made-up GPU: a host that launches, a device that follows in order, and a clock under a power limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tests.planner.measured.layers.synthetic.gpu import SyntheticGpu
from tests.planner.measured.layers.synthetic.single import Kernel

Floats = npt.NDArray[np.float64]

STEPS = 4
"""Steps in a row, of which the last is read: by then the host is as far ahead as it gets."""
HIDDEN = 0.85
"""Part of the shorter of arithmetic and traffic that the longer one hides."""
LOWEST_CLOCK = 0.4
HALVINGS = 10
BURST = 0.5
"""How far from the sustained clock to the full one a device is that was cool or idle a moment ago."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One step at one clock."""

    phases_s: dict[str, float]
    clock_ratio: float
    """Over the full clock."""
    power_w: float
    """Mean over the step."""

    @property
    def total_s(self) -> float:
        """The whole step."""
        return sum(self.phases_s.values())


Phases = dict[str, Sequence[Kernel]]


class Timeline:
    """A step in a row of its like; a graph needs no host."""

    def __init__(self, gpu: SyntheticGpu, phases: Phases, *, graph: bool = False) -> None:
        self._gpu, self._names = gpu, list(phases)
        self._table = np.array([kernel for kernels in phases.values() for kernel in kernels], dtype=np.float64)
        self._ends = np.cumsum([len(kernels) for kernels in phases.values()])
        self._host_s = np.tile(np.zeros(len(self._table)) if graph else self._table[:, 4], STEPS)

    def at(self, clock: float) -> Ran:
        """At a fixed clock over the full one."""
        arithmetic, traffic = self._table[:, 0] / clock, self._table[:, 1]
        longer, shorter = np.maximum(arithmetic, traffic), np.minimum(arithmetic, traffic)
        done = _finished(self._host_s, np.tile(longer + (1.0 - HIDDEN) * shorter + self._gpu.kernel_s, STEPS))
        last = done[-len(self._table) - 1 :]
        seconds = np.diff(np.concatenate([last[:1], last[self._ends]]))
        joules = self._table[:, 2].sum() * clock ** (self._gpu.clock_exponent - 1.0) + self._table[:, 3].sum()
        return Ran(
            phases_s=dict(zip(self._names, (float(s) for s in seconds), strict=True)),
            clock_ratio=clock,
            power_w=self._gpu.idle_w + joules / float(seconds.sum()),
        )

    def sustained(self) -> Ran:
        """At the highest clock that keeps the mean power within the limit."""
        full = self.at(1.0)
        if full.power_w <= self._gpu.limit_w:
            return full
        low, high = LOWEST_CLOCK, 1.0
        for _ in range(HALVINGS):
            clock = 0.5 * (low + high)
            low, high = (low, clock) if self.at(clock).power_w > self._gpu.limit_w else (clock, high)
        return self.at(low)


def _finished(host_s: Floats, device_s: Floats) -> Floats:
    """When each kernel ends: it starts once it is launched and the one before it has ended."""
    launched, busy = np.cumsum(host_s), np.cumsum(device_s)
    return np.asarray(busy + np.maximum.accumulate(launched - (busy - device_s)))


def sustained(gpu: SyntheticGpu, phases: Phases, *, graph: bool = False) -> Ran:
    """A step among its like, hot."""
    return Timeline(gpu, phases, graph=graph).sustained()


def burst(gpu: SyntheticGpu, phases: Phases, *, graph: bool = False) -> Ran:
    """A step among others that let the device rest: between the sustained clock and the full one."""
    timeline = Timeline(gpu, phases, graph=graph)
    held = timeline.sustained().clock_ratio
    return timeline.at(held + BURST * (1.0 - held))
