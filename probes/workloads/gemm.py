"""Matrix products in their three roles, at squares and at the shapes that shards of real models have."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from planner.records.work import RunSetup, WorkCounts, WorkShape
from probes.device.device import Device
from probes.models.shapes import LLAMA_8B, LLAMA_70B_TP8, LLAMA_405B_TP8, SMALL, TINY, LayerShape
from probes.precisions.interface import ROLES, PrecisionRecipe
from probes.timing.trial import CallTrial, Point, PointGroup, ProbePlan

MNK = tuple[int, int, int]
TOKENS = 8192
"""Rows of the products at model shapes: one sequence of 8192 tokens."""
COPIES_BYTES = 256e6
"""Operand sets rotate until they hold this much, more than any cache."""

_EXPERT: MNK = (512, 4096, 7168)
"""One expert of a fine-grained mixture with few rows (DeepSeek-V3's sizes)."""
_HEAD: MNK = (TOKENS, 16032, 8192)
"""An eighth of a 70B model's output layer."""


def layer_shapes(layer: LayerShape, tokens: int) -> list[MNK]:
    """`(M, N, K)` of a layer's products."""
    return [(tokens, n, k) for k, n in layer.products]


class Gemm:
    """Rates of matrix products by shape, role and precision."""

    name = "gemm"
    summary = "matrix products at squares and shard shapes, forward and both gradients"

    def groups(self, plan: ProbePlan) -> Sequence[PointGroup]:
        """One group per shape and role, all precisions side by side."""
        groups = []
        for mnk, roles in self._shapes(plan):
            for role in roles:
                points = [
                    _point(plan, recipe, role, mnk) for recipe in plan.kernel_recipes if _worth(recipe, mnk, plan)
                ]
                if points:
                    name = f"matrix product {mnk[0]}×{mnk[1]}×{mnk[2]} {role}"
                    each = 0.35 if plan.on_gpu else 0.8
                    groups.append(PointGroup(name=name, points=points, estimate_s=each * len(points)))
        return groups

    def _shapes(self, plan: ProbePlan) -> list[tuple[MNK, tuple[str, ...]]]:
        if not plan.on_gpu:
            return _cpu_shapes(plan.suite)
        squares: list[tuple[MNK, tuple[str, ...]]] = [
            ((8192, 8192, 8192), ROLES),
            *(((n, n, n), ("forward",)) for n in (4096, 16384, 2048, 1024)),
        ]
        if plan.suite == "quick":
            return [squares[0], *[(mnk, ("forward",)) for mnk in layer_shapes(LLAMA_70B_TP8, TOKENS)]]
        shards = [mnk for layer in (LLAMA_70B_TP8, LLAMA_8B) for mnk in layer_shapes(layer, TOKENS)]
        shards += layer_shapes(LLAMA_405B_TP8, TOKENS)[2:]
        if plan.suite == "thorough":
            shards += [(m, n, k) for m in (1024, 2048, 4096) for _, n, k in layer_shapes(LLAMA_8B, TOKENS)]
        listed = [*squares, *((mnk, ROLES) for mnk in shards), (_HEAD, ROLES), (_EXPERT, ROLES)]
        return list({mnk: (mnk, roles) for mnk, roles in listed}.values())


def _cpu_shapes(suite: str) -> list[tuple[MNK, tuple[str, ...]]]:
    squares: list[tuple[MNK, tuple[str, ...]]] = [((n, n, n), ("forward",)) for n in (1024, 512, 256)]
    if suite == "quick":
        return squares[1:]
    roles: list[tuple[MNK, tuple[str, ...]]] = [((256, 1408, 256), ROLES), ((512, 512, 1408), ("forward",))]
    if suite == "thorough":
        roles += [(mnk, ROLES) for layer in (TINY, SMALL) for mnk in layer_shapes(layer, 256)]
        roles.append(((2048, 2048, 2048), ("forward",)))
    return list(dict([*squares, *roles]).items())


def _worth(recipe: PrecisionRecipe, mnk: MNK, plan: ProbePlan) -> bool:
    """FP8 needs multiples of 16; strict FP32 at the largest size takes seconds and adds no information."""
    M, N, K = mnk
    if recipe.precision in ("fp8", "mxfp8") and any(size % 16 for size in mnk):
        return False
    return not (plan.on_gpu and recipe.id == "fp32" and 2.0 * M * N * K > 4e12)


def _point(plan: ProbePlan, recipe: PrecisionRecipe, role: str, mnk: MNK) -> Point:
    M, N, K = mnk
    size = 1 if recipe.precision in ("fp8", "mxfp8") else 4 if recipe.operand == "float32" else 2
    out = 2 if size < 4 else 4
    flop = 2.0 * M * N * K
    return Point(
        probe_id=f"gemm/{M}x{N}x{K}/{role}/{recipe.id}",
        kind="gemm",
        workload="gemm",
        recipe=recipe,
        setup=RunSetup(role=role, data_distribution="normal"),
        shape=WorkShape(gemm_m=M, gemm_n=N, gemm_k=K),
        counts=WorkCounts(flop_model=flop, flop_hardware=flop, bytes_min=least_bytes(role, mnk, size, out)),
        build=partial(_build, recipe, role, mnk, size),
        graph=True,
    )


def least_bytes(role: str, mnk: MNK, size: int, out: int) -> float:
    """Operands read once, result written once."""
    M, N, K = mnk
    sizes = {"forward": (M * K, N * K, M * N), "dgrad": (M * N, N * K, M * K), "wgrad": (M * N, M * K, N * K)}
    left, right, result = sizes[role]
    return float((left + right) * size + result * out)


def _build(recipe: PrecisionRecipe, role: str, mnk: MNK, size: int, device: Device) -> CallTrial:
    M, N, K = mnk
    operands = float((M * K + N * K) * size)
    copies = int(min(max(-(-COPIES_BYTES // operands), 3), 16)) if device.kind == "cuda" else 2
    call = recipe.product(recipe, role, M, N, K, device, copies)
    return CallTrial(call=call, held_bytes=copies * operands, flags=recipe.flags)
