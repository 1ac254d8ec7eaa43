"""Peak memory of a step: CUDA's allocator statistics, or on a CPU the allocator's own events.

Both count live tensors to the byte. On a GPU, this also gives the memory that the allocator takes from the driver for
them (`reserved`), and what the process holds beyond that: context, libraries and loaded kernels (`of_process`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from planner.lazy import dataclass
from planner.records.figures import PeakMemory
from probes.device.device import Device

SMALL_BYTES = 2**20
"""Requests up to this size come from a separate kind of segment (PyTorch's caching allocator)."""

Mark = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Memory held before a trial is made; nothing on a CPU, where only changes can be seen."""

    allocated_bytes: float = 0.0
    """Bytes of live tensors, including `plugs`."""
    reserved_bytes: float = 0.0
    """Bytes held by the caching allocator."""
    plugs: tuple[Any, ...] = ()
    """Tensors that fill the holes left by other trials, so that the trial has to take its memory from the driver, as it
    would alone. They must be dropped once the peak is known."""


def baseline(device: Device) -> Baseline:
    """Return unused memory to the driver, fill the remaining holes, and note what is held."""
    if device.kind != "cuda":
        return Baseline()
    import torch

    return_cached(device)
    try:
        segments = torch.cuda.memory_snapshot()
    except RuntimeError:  # the allocator `cudaMallocAsync` tracks no blocks
        segments = []
    holes = [
        block["size"]
        for segment in segments
        if tuple(segment["segment_pool_id"]) == (0, 0) and segment["stream"] == torch.cuda.current_stream().cuda_stream
        for block in segment["blocks"]
        if block["state"] == "inactive" and block["size"] > SMALL_BYTES
    ]
    plugs = tuple(torch.empty(size, dtype=torch.uint8, device=device.torch) for size in sorted(holes, reverse=True))
    return Baseline(
        allocated_bytes=float(torch.cuda.memory_allocated()),
        reserved_bytes=float(torch.cuda.memory_reserved()),
        plugs=plugs,
    )


def return_cached(device: Device) -> None:
    """Return cached memory to the driver; after a trial is made, this frees what only its construction needed."""
    if device.kind == "cuda":
        import torch

        torch.cuda.synchronize()
        torch.cuda.empty_cache()


def warm_libraries(device: Device) -> None:
    """Make the matrix libraries allocate their permanent workspaces, which would else count towards the first trial.

    cuBLAS holds a workspace (32 MiB on Hopper) for each thread that uses it: this one, and autograd's, which runs the
    backward pass.
    """
    import torch

    for dtype in (torch.float32, torch.float16):
        x = torch.randn(256, 256, device=device.torch).to(dtype).requires_grad_()
        (x @ x).float().sum().backward()


def peak_of(device: Device, step: Callable[[Mark], None], *, before: Baseline, held_bytes: float) -> PeakMemory:
    """Run a step once and return its peak, in bytes above what was live before the trial was made.

    Args:
        device: device that runs the step.
        step: takes a mark that it calls at the end of each phase.
        before: the `baseline` before the trial was made.
        held_bytes: bytes that the trial holds between steps, by its own count (used on a CPU, which has no other
            count).
    """
    if device.kind == "cuda":
        return _peak_cuda(step, before)
    return _peak_cpu(step, held_bytes)


def of_process(memory: PeakMemory, process_bytes: float | None, before: Baseline) -> PeakMemory:
    """Add the memory of the process on a GPU, read right after the step, to the memory of the step.

    Args:
        memory: memory of the step.
        process_bytes: memory of the process by the driver's count; None if it is not reported.
        before: what the process held for other trials, which is not counted here.
    """
    if process_bytes is None:
        return memory
    import torch

    context_bytes = max(process_bytes - float(torch.cuda.memory_reserved()), 0.0)
    own_bytes = max(process_bytes - before.reserved_bytes, 0.0)
    return replace(memory, process_bytes=own_bytes, context_bytes=context_bytes)


def _peak_cuda(step: Callable[[Mark], None], before: Baseline) -> PeakMemory:
    import torch

    before_bytes = before.allocated_bytes
    phases: dict[str, float] = {}
    torch.cuda.synchronize()
    whole = {"peak": 0.0, "active": 0.0, "reserved": 0.0}
    start = torch.cuda.memory_stats()

    def take() -> float:
        stats = torch.cuda.memory_stats()
        peak = float(stats.get("allocated_bytes.all.peak", 0))
        whole["peak"] = max(whole["peak"], peak)
        whole["active"] = max(whole["active"], float(stats.get("active_bytes.all.peak", 0)))
        whole["reserved"] = max(whole["reserved"], float(stats.get("reserved_bytes.all.peak", 0)))
        torch.cuda.reset_peak_memory_stats()
        return peak

    def mark(phase: str) -> None:
        phases[phase] = max(phases.get(phase, 0.0), take() - before_bytes)

    torch.cuda.reset_peak_memory_stats()
    step(mark)
    torch.cuda.synchronize()
    take()
    end = torch.cuda.memory_stats()
    return PeakMemory(
        allocated_peak_bytes=whole["peak"] - before_bytes,
        persistent_bytes=float(torch.cuda.memory_allocated()) - before_bytes,
        active_peak_bytes=whole["active"] - before_bytes,
        reserved_peak_bytes=whole["reserved"] - before.reserved_bytes,
        alloc_retries=int(end.get("num_alloc_retries", 0) - start.get("num_alloc_retries", 0)),
        ooms=int(end.get("num_ooms", 0) - start.get("num_ooms", 0)),
        forward_peak_bytes=phases.get("forward"),
        backward_peak_bytes=phases.get("backward"),
        optimizer_peak_bytes=phases.get("optimizer"),
        source="cuda_allocator",
    )


def _peak_cpu(step: Callable[[Mark], None], held_bytes: float) -> PeakMemory:
    """Add up the profiler's allocation events in order of time; phases end at the times of their marks."""
    import time

    from torch.profiler import ProfilerActivity, profile

    marks: list[tuple[str, int]] = []
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        step(lambda phase: marks.append((phase, time.time_ns())))
    results = profiler.profiler.kineto_results
    events = sorted((e.start_ns(), e.nbytes()) for e in results.events() if e.name() == "[memory]")
    live = peak = 0.0
    phases: dict[str, float] = {}
    for at_ns, change in events:
        live += change
        peak = max(peak, live)
        phase = next((name for name, end_ns in marks if at_ns <= end_ns), None)
        if phase is not None:
            phases[phase] = max(phases.get(phase, 0.0), live + held_bytes)
    return PeakMemory(
        allocated_peak_bytes=peak + held_bytes,
        persistent_bytes=live + held_bytes,
        forward_peak_bytes=phases.get("forward"),
        backward_peak_bytes=phases.get("backward"),
        optimizer_peak_bytes=phases.get("optimizer"),
        source="cpu_allocator_events",
    )


_OUT_OF_MEMORY = (
    "can't allocate memory",  # the host
    "CUDA out of memory",  # torch's allocator
    "CUDA error: out of memory",  # the driver: a context, a graph, a module
    "_STATUS_ALLOC_FAILED",  # cuBLAS and cuDNN
    "Triton Error [CUDA]: out of memory",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that the device or the host ran out of memory."""
    if isinstance(error, MemoryError):
        return True
    text = str(error)
    return type(error).__name__ == "OutOfMemoryError" or any(part in text for part in _OUT_OF_MEMORY)


def release() -> None:
    """Return all unreferenced memory to the device."""
    import gc

    import torch

    gc.collect()
    if torch.cuda.is_initialized() and torch.cuda.memory_reserved():
        torch.cuda.empty_cache()
