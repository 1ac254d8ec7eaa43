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
HALVINGS = 14
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


def run_at(gpu: SyntheticGpu, phases: Phases, clock: float, *, graph: bool = False) -> Ran:
    """A step in a row of its like, at a fixed clock; a graph needs no host."""
    table = np.array([kernel for kernels in phases.values() for kernel in kernels], dtype=np.float64)
    ends = np.cumsum([len(kernels) for kernels in phases.values()])
    arithmetic, traffic = table[:, 0] / clock, table[:, 1]
    device_s = np.maximum(arithmetic, traffic) + (1.0 - HIDDEN) * np.minimum(arithmetic, traffic) + gpu.kernel_s
    host_s = np.zeros(len(table)) if graph else table[:, 4]
    done = _finished(np.tile(host_s, STEPS), np.tile(device_s, STEPS))
    last = done[-len(table) - 1 :]
    marks = np.concatenate([last[:1], last[ends]])
    joules = table[:, 2].sum() * clock ** (gpu.clock_exponent - 1.0) + table[:, 3].sum()
    seconds = np.diff(marks)
    return Ran(
        phases_s=dict(zip(phases, (float(s) for s in seconds), strict=True)),
        clock_ratio=clock,
        power_w=gpu.idle_w + joules / float(seconds.sum()),
    )


def _finished(host_s: Floats, device_s: Floats) -> Floats:
    """When each kernel ends: it starts once it is launched and the one before it has ended."""
    launched, busy = np.cumsum(host_s), np.cumsum(device_s)
    return np.asarray(busy + np.maximum.accumulate(launched - (busy - device_s)))


def sustained(gpu: SyntheticGpu, phases: Phases, *, graph: bool = False) -> Ran:
    """A step at the highest clock that keeps the mean power within the limit."""
    full = run_at(gpu, phases, 1.0, graph=graph)
    if full.power_w <= gpu.limit_w:
        return full
    low, high = LOWEST_CLOCK, 1.0
    for _ in range(HALVINGS):
        clock = 0.5 * (low + high)
        if run_at(gpu, phases, clock, graph=graph).power_w > gpu.limit_w:
            high = clock
        else:
            low = clock
    return run_at(gpu, phases, low, graph=graph)


def burst(gpu: SyntheticGpu, phases: Phases, *, graph: bool = False) -> Ran:
    """A step among others that let the device rest: between the sustained clock and the full one."""
    held = sustained(gpu, phases, graph=graph).clock_ratio
    return run_at(gpu, phases, held + BURST * (1.0 - held), graph=graph)
