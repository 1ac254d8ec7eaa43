"""Memory bandwidth in four patterns: read, write, copy, and two reads with one write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from planner.records.work import RunSetup, WorkCounts
from probes.device.device import Device
from probes.precisions import recipe_by_id
from probes.timing.trial import CallTrial, Point, PointGroup, ProbePlan
from probes.workloads.expected import group_s

GPU_BYTES = 2**30
CPU_BYTES = 2**27
CPU_POINT_S = 0.7
"""Approximate time of one pattern on a CPU; for the time budget only."""
PATTERNS = {"read": 1.0, "write": 1.0, "copy": 2.0, "add": 3.0}
"""Number of buffers that each pattern moves."""


class Bandwidth:
    """Memory bandwidth, the roof of memory-bound work."""

    name = "bandwidth"
    summary = "memory bandwidth: read, write, copy, add"

    def groups(self, plan: ProbePlan) -> Sequence[PointGroup]:
        """Return one group with all patterns side by side."""
        size = GPU_BYTES if plan.on_gpu else CPU_BYTES
        is_short = plan.suite == "quick" or (not plan.on_gpu and plan.suite != "thorough")
        points = [_point(pattern, size) for pattern in (("copy", "add") if is_short else PATTERNS)]
        estimate_s = group_s(plan, points) if plan.on_gpu else CPU_POINT_S * len(points)
        return [PointGroup(name="memory bandwidth", points=points, estimate_s=estimate_s)]


def _point(pattern: str, size: int) -> Point:
    return Point(
        probe_id=f"bandwidth/{pattern}",
        kind="bandwidth",
        workload="bandwidth",
        recipe=recipe_by_id("fp32"),
        setup=RunSetup(role=pattern, data_distribution="normal"),
        counts=WorkCounts(bytes_min=PATTERNS[pattern] * size),
        build=partial(_build, pattern, size),
    )


def _build(pattern: str, size: int, device: Device) -> CallTrial:
    import torch

    a = torch.randn(size // 4, device=device.torch, dtype=torch.float32)
    b, c = a.flip(0), a.clone()
    calls: dict[str, Callable[[], object]] = {
        "read": lambda: a.sum(),
        "write": lambda: c.fill_(1.5),
        "copy": lambda: c.copy_(a),
        "add": lambda: torch.add(a, b, out=c),
    }
    return CallTrial(call=calls[pattern], held_bytes=3.0 * size)
