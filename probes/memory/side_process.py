"""Peak memory of many steps, tracked in a separate process while the GPU measures.

Tracking fake tensors takes the host seconds per model, during which a GPU would rest and cool down. The other process
keeps one thread busy. Its fake tensors belong to the GPU, so it holds a context there, but it runs nothing on it.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Protocol

from planner.lazy import dataclass
from probes.device.device import Device
from probes.device.faults import cleaned
from probes.memory.tracker import Tracked, track
from probes.models.cases import ModelCase
from probes.precisions import recipe_by_id
from probes.workloads.end_to_end import build_model_trial

RESULT_LIMIT_S = 60.0
"""Longest wait for one result, in seconds; the largest model takes about 12 s (estimated for 28 layers in FP8)."""
END_LIMIT_S = 5.0
PR_SET_PDEATHSIG = 1
"""Option of `prctl` (linux/prctl.h): the signal that a process gets when its parent ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedCase:
    """One step whose memory is tracked."""

    model: ModelCase
    recipe_id: str


class TrackingError(Exception):
    """Tracking the memory of a step failed, or its process did."""


class Tracker(Protocol):
    """Tracks the peak memory of steps."""

    def start(self, cases: Sequence[TrackedCase]) -> None:
        """Start to track cases, in the order in which their results are wanted."""

    def result(self, case: TrackedCase) -> Tracked:
        """Wait for the peak of a case and return it.

        Raises:
            Exception: a kernel has no rules for fake tensors, or the tracking failed otherwise.
        """

    def processes(self) -> int:
        """Return the number of tracker processes that may have a context on the device now."""

    def cpu_s(self) -> float:
        """Return the CPU seconds so far of a tracker process; 0 once it has ended, or if they cannot be read."""

    def close(self) -> None:
        """End all tracking."""


def open_tracker(device: Device, seed: int) -> Tracker:
    """Return a device's tracker: a separate process on a GPU; on a CPU, which that would disturb, in this process."""
    return SideTracker(device, seed) if device.kind == "cuda" else InlineTracker(device, seed)


class InlineTracker:
    """Tracks each case when its result is requested."""

    def __init__(self, device: Device, seed: int) -> None:
        self._device, self._seed = device, seed

    def start(self, cases: Sequence[TrackedCase]) -> None:
        """See `Tracker.start`."""

    def result(self, case: TrackedCase) -> Tracked:
        """See `Tracker.result`."""
        return track_case(case, self._device, self._seed)

    def processes(self) -> int:
        """See `Tracker.processes`."""
        return 0

    def cpu_s(self) -> float:
        """See `Tracker.cpu_s`; this process counts its own time."""
        return 0.0

    def close(self) -> None:
        """See `Tracker.close`."""


class SideTracker:
    """Tracks all cases in another process, one after another."""

    def __init__(self, device: Device, seed: int, limit_s: float = RESULT_LIMIT_S) -> None:
        self._device, self._seed, self._limit_s = device, seed, limit_s
        self._results: dict[TrackedCase, Tracked | str] = {}
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None

    def start(self, cases: Sequence[TrackedCase]) -> None:
        """See `Tracker.start`."""
        context = multiprocessing.get_context("spawn")  # a fork would share the context of this process
        self._pipe, theirs = context.Pipe(duplex=False)
        listed = tuple(dict.fromkeys(cases))
        arguments = (theirs, self._device, self._seed, listed)
        self._process = context.Process(target=serve, args=arguments, name="memory", daemon=True)
        self._process.start()
        theirs.close()  # so that the pipe ends with the process

    def result(self, case: TrackedCase) -> Tracked:
        """See `Tracker.result`.

        Raises:
            TrackingError: the tracking failed, with the reason.
        """
        end = time.monotonic() + self._limit_s
        while case not in self._results:
            self._receive(max(end - time.monotonic(), 0.0))
        result = self._results[case]
        if isinstance(result, str):
            raise TrackingError(result)
        return result

    def processes(self) -> int:
        """See `Tracker.processes`."""
        return int(self._process is not None and self._process.is_alive())

    def cpu_s(self) -> float:
        """See `Tracker.cpu_s`."""
        if self._process is None:
            return 0.0
        try:
            stat = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return 0.0
        user, system = stat.rpartition(")")[2].split()[11:13]  # proc(5): the 14th and 15th field; a name may hold `)`
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """See `Tracker.close`."""
        if self._process is not None:
            self._process.terminate()
            self._process.join(END_LIMIT_S)
        if self._pipe is not None:
            self._pipe.close()

    def _receive(self, wait_s: float) -> None:
        """Receive the next result."""
        if self._pipe is None:
            raise TrackingError("memory tracking was not started")
        if not self._pipe.poll(wait_s):
            raise TrackingError(f"memory tracking took more than {self._limit_s:.0f} s")
        try:
            case, result = self._pipe.recv()
        except EOFError:
            raise TrackingError("the process that tracks memory has ended") from None
        self._results[case] = result


def track_case(case: TrackedCase, device: Device, seed: int) -> Tracked:
    """Track one step in this process."""
    device.as_current(runs=False)
    recipe = recipe_by_id(case.recipe_id)
    recipe.activate()
    return track(partial(build_model_trial, case.model, case.recipe_id, seed, device), device)


def end_with_parent() -> None:
    """Have the system end this process together with the one that started it, even if that one is killed.

    The next process of the run would otherwise take this one, with its context, for someone else on the GPU, and call
    everything contended.
    """
    if sys.platform == "linux" and multiprocessing.parent_process() is not None:
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def serve(pipe: Connection, device: Device, seed: int, cases: Sequence[TrackedCase]) -> None:
    """Track cases and send each result, or the reason why there is none, as soon as it is known."""
    import torch

    end_with_parent()
    torch.set_num_threads(1)
    with suppress(BrokenPipeError, KeyboardInterrupt):  # the measuring process is gone, or is being ended
        for case in cases:
            result: Tracked | str
            try:
                result = track_case(case, device, seed)
            except Exception as error:
                result = cleaned(error)
            pipe.send((case, result))
