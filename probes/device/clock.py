"""Clocks: the time that iterations of a trial take on the device that runs them.

On a GPU, the region between two CUDA events is timed, with one synchronisation per batch of samples; on a CPU, the
monotonic clock is used. A region holds enough iterations to last at least a millisecond.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Protocol

from planner.lazy import dataclass
from planner.units import MILLI

MIN_REGION_S = 1e-3
"""Shortest timed region, in seconds; in shorter ones, the cost and resolution of the timer matter."""

Mark = Callable[[str], None]
"""Called by a trial at the end of each of its phases, with the phase's name."""


class Runs(Protocol):
    """Something that a clock can time."""

    def step(self, mark: Mark) -> None:
        """Run one iteration, calling `mark` at the end of each phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Samples taken together, in seconds per iteration."""

    samples_s: tuple[float, ...]
    phases_s: dict[str, tuple[float, ...]]
    """By phase: one value per iteration."""
    wall_s: float
    """Host time of the whole batch."""
    canary_ratio: float | None = None
    """Time of the canary beside the batch over its usual time, by which the samples were divided; None: no canary."""
    disturbed: bool = False
    """Whether the canary shows that something else took part of the machine."""
    own_s: tuple[float, ...] = ()
    """With several ranks: this rank's times, where `samples_s` holds those of the slowest rank."""
    host_s: float | None = None
    """Host time to launch one iteration while the device had nothing else to do. None: the call returns only when the
    work is done, or no iteration was launched ahead."""


class Clock(Protocol):
    """Times batches on one kind of device."""

    def batch(self, trial: Runs, *, samples: int, iterations: int) -> Batch:
        """Take `samples` samples of `iterations` iterations each."""

    def synchronize(self) -> None:
        """Wait until the device has done everything it was asked to."""

    def agree(self, decision: bool) -> bool:
        """Return a decision that depends on this process's own time or sensor; with several ranks, that of rank 0."""


def no_mark(_phase: str) -> None:
    """A mark for iterations that are not timed by phase."""


def launched_s(trial: Runs) -> float:
    """Launch one iteration into an empty queue; return the host's time alone, unless the step itself waits."""
    began = time.perf_counter()
    trial.step(no_mark)
    return time.perf_counter() - began


class CpuClock:
    """`time.perf_counter`, or another clock, around work that is done when the call returns."""

    def __init__(self, now: Callable[[], float] | None = None) -> None:
        self._now = now or time.perf_counter

    def synchronize(self) -> None:
        """Return at once, since nothing is pending on a CPU."""

    def agree(self, decision: bool) -> bool:
        """See `Clock.agree`."""
        return decision

    def batch(self, trial: Runs, *, samples: int, iterations: int) -> Batch:
        """See `Clock.batch`."""
        times: list[float] = []
        phases: dict[str, list[float]] = defaultdict(list)
        began = time.perf_counter()
        last = self._now()

        def mark(phase: str) -> None:
            nonlocal last
            now = self._now()
            phases[phase].append(now - last)
            last = now

        for _ in range(samples):
            last = start = self._now()
            for _ in range(iterations):
                trial.step(mark)
            times.append((self._now() - start) / iterations)
        return Batch(
            samples_s=tuple(times),
            phases_s={name: tuple(values) for name, values in phases.items()},
            wall_s=time.perf_counter() - began,
        )


class CudaClock:
    """CUDA events in the stream; the host waits once per batch.

    ```
    host     sync │ launch: untimed, samples 1 2 3 … │ wait for two thirds │ at_work │ sync
    device          ░untimed░███ 1 ███│███ 2 ███│███ 3 ███│ …
    ```

    After the wait that precedes a batch, the device's queue is empty: a step launched then starts while the host is
    only just ahead, unlike in a training loop. One untimed step fills the queue as the work itself fills it. (A
    spinning kernel, `torch.cuda._sleep`, would let launch-bound work run ahead of its own launches.) A single long step
    is timed without an untimed one, which would double its cost, while the host is ahead of it after its first kernels.
    The host's time to launch the untimed step is recorded, because no step is shorter. (A full queue, of about a
    thousand kernels, holds up the host too.)
    """

    def __init__(self, at_work: Callable[[Runs], None] | None = None) -> None:
        """Make a clock.

        Args:
            at_work: called once per batch with the trial while the device is still busy with it; its time is not part
                of any sample.
        """
        self._at_work = at_work

    def synchronize(self) -> None:
        """Wait for the device."""
        import torch

        torch.cuda.synchronize()

    def agree(self, decision: bool) -> bool:
        """See `Clock.agree`."""
        return decision

    def batch(self, trial: Runs, *, samples: int, iterations: int) -> Batch:
        """See `Clock.batch`."""
        import torch

        regions: list[tuple[Any, Any]] = []
        marks: list[tuple[str, Any, Any]] = []
        last: Any = None

        def event() -> Any:
            moment = torch.cuda.Event(enable_timing=True)
            moment.record()
            return moment

        def mark(phase: str) -> None:
            nonlocal last
            now = event()
            marks.append((phase, last, now))
            last = now

        self.synchronize()
        began = time.perf_counter()
        host_s = launched_s(trial) if samples * iterations > 1 else None
        for _ in range(samples):
            last = start = event()
            for _ in range(iterations):
                trial.step(mark)
            regions.append((start, event()))
        if self._at_work is not None:
            if samples > 1:
                regions[2 * samples // 3 - 1][1].synchronize()
            self._at_work(trial)
        self.synchronize()
        wall = time.perf_counter() - began
        phases: dict[str, list[float]] = defaultdict(list)
        for phase, before, after in marks:
            phases[phase].append(before.elapsed_time(after) * MILLI)  # CUDA events are in milliseconds
        return Batch(
            samples_s=tuple(start.elapsed_time(end) * MILLI / iterations for start, end in regions),
            phases_s={name: tuple(values) for name, values in phases.items()},
            wall_s=wall,
            host_s=host_s,
        )
