"""Cost of a kernel beyond its work: launched by the host one by one, and replayed from a CUDA graph."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from planner.records.work import RunSetup
from probes.device.device import Device
from probes.precisions import recipe_by_id
from probes.timing.graphs import captured
from probes.timing.trial import CallTrial, Point, PointGroup, ProbePlan
from probes.workloads.expected import group_s

KERNELS = 200
"""Kernels per iteration."""


class Launch:
    """Fixed time per kernel."""

    name = "launch"
    summary = "time to launch a kernel, and to start one from a graph"

    def groups(self, plan: ProbePlan) -> Sequence[PointGroup]:
        """Return a point for launches one by one and, on a GPU, one for launches from a graph."""
        modes = ("host", "graph") if plan.on_gpu else ("host",)
        points = [_point(mode) for mode in modes]
        return [
            PointGroup(name="kernel launch", points=points, estimate_s=group_s(plan, points) if plan.on_gpu else 1.0)
        ]


def _point(mode: str) -> Point:
    return Point(
        probe_id=f"launch/{mode}",
        kind="launch",
        workload="launch",
        recipe=recipe_by_id("fp32"),
        setup=RunSetup(role=mode),
        records_recipe=False,
        build=partial(_build, mode),
    )


def _build(mode: str, device: Device) -> CallTrial:
    import torch

    x = torch.randn(64, device=device.torch)

    def kernels() -> None:
        for _ in range(KERNELS):
            x.mul_(1.0)

    if mode == "host":
        return CallTrial(call=kernels, steps=KERNELS)
    graph = captured(kernels)

    def replay() -> None:
        graph.replay()
        _ = x  # the graph only knows its address; if `x` were freed, the memory might be given to another tensor

    return CallTrial(call=replay, steps=KERNELS)
