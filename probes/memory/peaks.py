"""Peak memory of a step: CUDA's allocator statistics, and on a CPU the allocator's own events.

Both count live tensors to the byte. What the process holds beyond them (context, caching, libraries) is not in it.
"""

from __future__ import annotations

from collections.abc import Callable

from planner.records.figures import PeakMemory
from probes.device.device import Device

LIBRARY_BYTES = 2**28
"""What is live without any trial is less: workspaces of the matrix libraries."""


Mark = Callable[[str], None]


def live_bytes(device: Device) -> float:
    """Bytes of live tensors now; 0 on a CPU, where only changes can be seen."""
    if device.kind != "cuda":
        return 0.0
    import torch

    torch.cuda.synchronize()
    return float(torch.cuda.memory_allocated())


def warm_libraries(device: Device) -> None:
    """Let the matrix libraries allocate their permanent workspaces, which would else count towards the first trial.

    cuBLAS holds a workspace (32 MiB on Hopper) for each thread that uses it: this one, and autograd's, which runs the
    backward pass.
    """
    import torch

    for dtype in (torch.float32, torch.float16):
        x = torch.randn(256, 256, device=device.torch).to(dtype).requires_grad_()
        (x @ x).float().sum().backward()


def peak_of(device: Device, step: Callable[[Mark], None], *, before_bytes: float, held_bytes: float) -> PeakMemory:
    """Run a step once and read its peak, in bytes above what was live before the trial was made.

    Args:
        device: where it runs.
        step: takes a mark that it calls at the end of each phase.
        before_bytes: `live_bytes` before the trial was made (CUDA).
        held_bytes: what the trial holds between steps, by its own count (CPU, where nobody else knows).
    """
    if device.kind == "cuda":
        return _peak_cuda(step, before_bytes)
    return _peak_cpu(step, held_bytes)


def _peak_cuda(step: Callable[[Mark], None], before_bytes: float) -> PeakMemory:
    import torch

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
        reserved_peak_bytes=whole["reserved"] if before_bytes < LIBRARY_BYTES else None,
        alloc_retries=int(end.get("num_alloc_retries", 0) - start.get("num_alloc_retries", 0)),
        ooms=int(end.get("num_ooms", 0) - start.get("num_ooms", 0)),
        forward_peak_bytes=phases.get("forward"),
        backward_peak_bytes=phases.get("backward"),
        optimizer_peak_bytes=phases.get("optimizer"),
        source="cuda_allocator",
    )


def _peak_cpu(step: Callable[[Mark], None], held_bytes: float) -> PeakMemory:
    """Add up the profiler's allocation events, in order of time; phases end at the moments of their marks."""
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
    """Whether an error means that the device or the host had no memory left."""
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
