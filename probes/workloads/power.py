"""Sustained power and clock of each precision: large matrix products at operating temperature, for several seconds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from planner.records.work import RunSetup, WorkCounts, WorkShape
from probes.device.device import Device
from probes.precisions.interface import PrecisionRecipe
from probes.timing.trial import CallTrial, Point, PointGroup, ProbePlan
from probes.workloads.expected import group_s

SIZE = 8192
COPY_BYTES = 2**30
WINDOW_S = {"quick": 3.0, "default": 3.0, "thorough": 10.0}

USUAL = ("bf16-autocast", "fp8", "tf32", "fp32", "mxfp8")
"""The precisions that plans use most often come first, in case the time does not suffice for all."""


class PowerWorkload:
    """The power of a precision when its matrix units never wait, and the power of memory traffic."""

    name = "power"
    summary = "sustained power and clock per precision"

    def groups(self, plan: ProbePlan) -> Sequence[PointGroup]:
        """Return one point per kind of product and one for memory traffic; nothing without a sensor or on a CPU."""
        if not (plan.has_sensor and plan.on_gpu):
            return []
        window_s = WINDOW_S[plan.suite]
        measured = _measured(plan)
        # Traffic comes first, because every plan has it, whatever its precision.
        points = {"memory": _copy_point(measured[0], window_s)} if measured else {}
        points |= {recipe.id: _point(recipe, window_s) for recipe in measured}
        return [
            PointGroup(name=f"sustained power {activity}", points=[point], estimate_s=group_s(plan, [point]))
            for activity, point in points.items()
        ]


def _measured(plan: ProbePlan) -> list[PrecisionRecipe]:
    """Return one recipe per kind of matrix unit: FP16 draws as much as BF16, and scales per row change no product."""
    if plan.suite == "thorough":
        return list(plan.kernel_recipes)
    named = USUAL[:2] if plan.suite == "quick" else USUAL
    known = {recipe.id: recipe for recipe in plan.kernel_recipes}
    return [known[name] for name in named if name in known] or list(plan.kernel_recipes[:1])


def _point(recipe: PrecisionRecipe, window_s: float) -> Point:
    return Point(
        probe_id=f"power/{recipe.id}",
        kind="power",
        workload="power",
        recipe=recipe,
        setup=RunSetup(role="forward", data_distribution="normal"),
        shape=WorkShape(gemm_m=SIZE, gemm_n=SIZE, gemm_k=SIZE),
        counts=WorkCounts(flop_model=2.0 * SIZE**3, flop_hardware=2.0 * SIZE**3),
        build=partial(_build, recipe, SIZE),
        energy_s=window_s,
        cap_s=0.2,
    )


def _build(recipe: PrecisionRecipe, size: int, device: Device) -> CallTrial:
    return CallTrial(call=recipe.product(recipe, "forward", size, size, size, device, 3), flags=recipe.flags)


def _copy_point(recipe: PrecisionRecipe, window_s: float) -> Point:
    return Point(
        probe_id="power/memory",
        kind="power",
        workload="power",
        recipe=recipe,
        setup=RunSetup(role="copy"),
        counts=WorkCounts(bytes_min=2.0 * COPY_BYTES),
        records_recipe=False,
        build=partial(_build_copy, COPY_BYTES),
        energy_s=window_s,
        cap_s=0.2,
    )


def _build_copy(size: int, device: Device) -> CallTrial:
    import torch

    a, b = (torch.randn(size // 4, device=device.torch) for _ in range(2))
    return CallTrial(call=lambda: b.copy_(a))
