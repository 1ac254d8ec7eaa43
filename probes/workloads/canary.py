"""One fixed matrix product, measured repeatedly: drift shows that the machine has changed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from planner.records.work import RunSetup, WorkCounts, WorkShape
from probes.device.canary_clock import CanaryClock
from probes.device.clock import no_mark
from probes.device.device import Device
from probes.precisions import recipe_by_id
from probes.timing.trial import CallTrial, Point, PointGroup, ProbePlan

GPU_SIZE = 8192
CPU_SIZE = 512


class Canary:
    """The reference that shows whether the machine drifts during a run."""

    name = "canary"
    summary = "one fixed matrix product, about once a minute"

    def groups(self, plan: ProbePlan) -> Sequence[PointGroup]:
        """Return one point, which the session repeats."""
        return [PointGroup(name="canary", points=[canary_point(plan)], estimate_s=0.4)]


def canary_clock(plan: ProbePlan, usual_s: float | None) -> CanaryClock:
    """Make a CPU's clock with the canary beside each batch, watched for a while first; `usual_s`: from the record."""
    import torch

    point = canary_point(plan)
    point.recipe.activate()
    trial = point.build(plan.device)
    threads = torch.get_num_threads() * plan.team.size  # time that ranks spend waiting is not in their CPU time
    return CanaryClock(lambda: trial.step(no_mark), threads=threads, usual_s=usual_s)


def canary_point(plan: ProbePlan) -> Point:
    """Return the canary of a device: BF16 on a GPU that supports it, else FP32."""
    bf16 = recipe_by_id("bf16-autocast")
    recipe = bf16 if plan.on_gpu and bf16.unsupported_on(plan.device) is None else recipe_by_id("fp32")
    size = GPU_SIZE if plan.on_gpu else CPU_SIZE
    return Point(
        probe_id="canary",
        kind="canary",
        workload="canary",
        recipe=recipe,
        setup=RunSetup(role="forward"),
        shape=WorkShape(gemm_m=size, gemm_n=size, gemm_k=size),
        counts=WorkCounts(flop_model=2.0 * size**3),
        build=partial(_build, recipe.id, size),
        cap_s=0.25,
    )


def _build(recipe_id: str, size: int, device: Device) -> CallTrial:
    recipe = recipe_by_id(recipe_id)
    return CallTrial(call=recipe.product(recipe, "forward", size, size, size, device, 2))
